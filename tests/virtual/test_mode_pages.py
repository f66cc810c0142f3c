# SPDX-License-Identifier: Apache-2.0
"""Fields of mode pages that emulated drives do not let be changed, on the kernel's scsi_debug, which does."""

from collections.abc import Iterator

import pytest

from tests.support.live_bench import Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]

DROP = "drive: {{on: {{adapter: debug}}, {}}}\n"
# where the fields are: page, bit of its byte 2 (SPC-4 7.5.8, SBC-3 6.5.5)
PLACES = {"D_SENSE": ("0a", 0x04), "GLTSD": ("0a", 0x02), "WCE": ("08", 0x04)}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own with a scsi_debug drive that its inventory claims."""
    with powered_bench("pages", tmp_path_factory.mktemp("pages")) as found:
        found.add_debug_drive()
        yield found


def values(bench: Bench, *names: str) -> list[int]:
    """The current value of each field of the debug drive, from its pages."""
    drive = bench.ask("cat $(grep -l scsi_debug /sys/block/sd*/device/model | sed s/model/wwid/)").strip()
    start = f"{drive} page "
    pages = [line.removeprefix(start) for line in bench.look() if line.startswith(start)]
    second = {page[:2]: int(page[4:6], 16) for page in pages}
    return [int(bool(second[page] & bit)) for page, bit in (PLACES[name] for name in names)]


@pytest.mark.parametrize(
    "declared", [{"D_SENSE": 1}, {"GLTSD": 0}, {"D_SENSE": 1, "GLTSD": 0, "WCE": 0}], ids="+".join
)
def test_fields_are_shown_set_found_again_and_put_back(bench: Bench, declared: dict[str, int]) -> None:
    before, found = bench.touched(), values(bench, *declared)
    drop = DROP.format(", ".join(f"{name}: {value}" for name, value in declared.items()))

    shown = bench.provision(drop, "--check", "--diff")
    assert shown.code == 1, shown.output
    for name, value in declared.items():
        assert f"drive.{name}: {1 - value}, declared {value}" in shown.output
    assert bench.touched() == before

    first = bench.provision(drop)
    assert (first.code, first.changed) == (0, 1), first.output
    assert values(bench, *declared) == list(declared.values()) != found
    second = bench.provision(drop)
    assert (second.code, second.changed) == (0, 0), second.output

    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert values(bench, *declared) == found
    again = bench.play("restore.yml")
    assert (again.code, again.changed) == (0, 0), again.output


def test_a_field_that_this_drive_does_not_let_be_changed_is_refused(bench: Bench) -> None:
    before = bench.look()
    played = bench.provision(DROP.format("D_SENSE: 1, NCS: 8"))
    assert played.code == 2, played.output
    assert "NCS is 20 and not changeable on this drive" in played.output
    assert bench.look() == before
