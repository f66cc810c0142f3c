# SPDX-License-Identifier: Apache-2.0
"""The guard on live block devices: every state refused with its sentence, nothing written; bare fio beside it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset
from tests.support.live_bench import BIN, REPOSITORY, discard, over_ssh, play, put_guest

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]

INVENTORY = REPOSITORY / "tests" / "virtual" / "guard"
STATE = REPOSITORY / ".cache" / "bench" / "guardbench"
LOG = STATE.parent / "guard-playbook.log"
# on the other controllers the states whose way to the drive differs by controller; the rest is the same code
ELSEWHERE = (
    *("mounted whole disk", "parent of a mounted partition", "sg node of a mounted disk", "active swap"),
    *("LVM logical volume active", "md member, array running", "under dm-linear", "held open with O_EXCL"),
    *("open for commands through its sg node", "unmounted ext4", "GPT alone", "unknown data at the end"),
    *("copy of another scratch drive", "read-only", "offline", "serial right, WWN wrong"),
    *("two drives swapped in the claims", "accept"),
)


# Since 5.19 Linux takes no identifiers from the namespaces that QEMU emulates (NVME_QUIRK_BOGUS_NID), and without any
# nobody can tell two apart. An id that is added at run time is found before the driver's own table with its quirks.
IDENTIFIERS = Path(__file__).with_suffix(".identifiers").read_text(encoding="utf-8")


def playbook(name: str, *words: str) -> tuple[int, str]:
    """Run a playbook on the guard bench."""
    return play(LOG, INVENTORY, name, *words, COLUMNS="1000")


def on_bench(line: str, *, data: bytes = b"", limit_s: float = 1700) -> str:
    """What a command line prints on the bench."""
    return over_ssh(STATE, "guardbench", line, data=data, limit_s=limit_s)


@pytest.fixture(scope="module")
def adapters() -> dict[str, Any]:
    """What the inventory says of the bench's adapters."""
    said = subprocess.run(
        [BIN / "storqual", "inventory", "--json", "-i", INVENTORY], capture_output=True, text=True, check=True
    ).stdout
    return dict(json.loads(said)["guardbench"]["adapters"])


@pytest.fixture(scope="module", autouse=True)
def bench() -> Iterator[None]:
    """The guard bench, powered on for this module, with the core and the guest's scripts on it."""
    discard(STATE)
    code, said = playbook("bench_up.yml")
    assert code == 0, said[-3000:]
    on_bench(IDENTIFIERS)
    put_guest(STATE, "guardbench")
    yield
    code, said = playbook("bench_down.yml")
    assert code == 0, said[-3000:]


def trial(
    adapters: dict[str, Any], adapter: str, only: tuple[str, ...] = (), *, untried: bool = False
) -> list[dict[str, Any]]:
    """One run of the guest's script: many states in one round trip."""
    asked = json.dumps({"adapters": adapters, "adapter": adapter, "only": list(only), "untried": untried}).encode()
    lines = [
        json.loads(line) for line in on_bench("cd /root/trial && python3 guard_trial.py", data=asked).splitlines()
    ]
    assert lines[-1] == {"done": True}
    assert "ways" in lines[-2]
    return lines[:-1]


def table(results: list[dict[str, Any]], adapter: str) -> str:
    """Guard and bare fio beside each other, one line per state."""
    rows = [f"\n{'state (' + adapter + ')':48} {'guard':9} bare fio"]
    for result in results:
        if "state" not in result:
            continue
        if "skipped" in result:
            rows.append(f"{result['state']:48} not made: {result['skipped']}")
            continue
        if "guard" not in result:
            rows.append(f"{result['state']:48} not made: {result['trouble'].splitlines()[-1]}")
            continue
        refused = not any(said.startswith("GIVEN OUT") for said in result.get("guard", {}).get("said", ["GIVEN OUT"]))
        fio = result.get("fio")
        words = "not tried" if fio is None else "WRITTEN" if fio["wrote"] else f"refused, exit {fio['exit']}"
        if fio is not None and fio["wrote"] and fio["exit"]:
            words += f", exit {fio['exit']}"
        rows.append(f"{result['state']:48} {'refused' if refused else 'GIVEN OUT':9} {words}")
    states = [result for result in made(results) if "guard" in result]
    written = sum(bool(result.get("fio") and result["fio"]["wrote"]) for result in states)
    rows.append(f"{len(states)} states; bare fio wrote to {written}, the guard let none through\n")
    return "\n".join(rows)


def made(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The states that this kernel and image could make: only these count."""
    return [result for result in results if "state" in result and "skipped" not in result]


def check_states(results: list[dict[str, Any]]) -> None:
    """Every state was made and refused with its sentence (drive, reason, remedy), and nothing was written."""
    for result in made(results):
        assert "trouble" not in result, (result["state"], result["trouble"])
        said = result["guard"]["said"]
        assert any(result["says"] in sentence for sentence in said), (result["state"], said)
        for sentence in said:
            assert sentence.startswith(("drive ", "volume ")), sentence
            assert ": " in sentence, sentence
            assert "; " in sentence, sentence
        assert result["guard"]["written"] == {}, result


def check_acceptance(accepted: dict[str, Any]) -> None:
    """The claimed empty drive was given out, stamped once, and kept from everyone else meanwhile."""
    assert len(accepted["first"]["stamped"]) == 1
    assert accepted["first"]["window"] == [1 << 20, (512 << 20) - (2 << 20)]
    for name, ended in accepted["intruders"].items():
        assert ended["rc"] != 0, (name, ended)
    assert accepted["stamped_again"] == []
    # two stamps of 4 KiB and fio's two times 64 KiB: no intruder wrote anything
    assert accepted["sectors_on_it"] == (2 * 4096 + 2 * 65536) // 512
    assert accepted["sectors_elsewhere"] == {}


def test_a_preflight_of_the_bench_passes_and_changes_nothing() -> None:
    for words in ((), ("--check",)):
        code, said = playbook("preflight.yml", *words)
        assert code == 0, said[-3000:]
        assert "changed=0" in said


@pytest.fixture(scope="module")
def everything(adapters: dict[str, Any]) -> list[dict[str, Any]]:
    return trial(adapters, "vscsi")


def test_every_state_is_refused_and_nothing_is_written(
    everything: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """At least eighty states; the table shows bare fio on the same targets."""
    states = made(everything)
    with capsys.disabled():
        print(table(everything, "vscsi"))
        print("this kernel tells of writers:", next(result["ways"] for result in everything if "ways" in result))
    assert len(states) >= 80
    check_states(everything)


def test_bare_fio_writes_to_most_of_them(everything: list[dict[str, Any]]) -> None:
    """The states are dangerous: a table in which fio refused everything would prove nothing."""
    tried = [result["fio"] for result in everything if result.get("fio")]
    assert sum(fio["wrote"] for fio in tried) > len(tried) / 2


def test_every_path_led_to_the_drive_it_would_change(everything: list[dict[str, Any]]) -> None:
    for result in everything:
        if "leads_to" in result:
            assert result["leads_to"], result["state"]


def test_the_claimed_empty_drive_is_accepted_and_held(everything: list[dict[str, Any]]) -> None:
    check_acceptance(next(result for result in everything if result.get("accepted") == "claimed empty drive"))


def test_what_storqual_made_is_known_by_its_uuid(everything: list[dict[str, Any]]) -> None:
    own = next(result for result in everything if result.get("accepted") == "what storqual made")
    assert own["stamped_over_a_file_system"] == []
    assert "holds a file system (xfs)" in own["foreign"][0]
    assert own["volume"] == {"mirror": "/dev/md79"}
    assert any("which the claim does not name" in sentence for sentence in own["half_a_volume"])
    assert own["refused_after"] == []


def test_states_that_no_bench_has_made_yet_are_not_given_out(
    adapters: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """What can be made of them is refused; what cannot is told, and its words are not held to."""
    results = trial(adapters, "vscsi", untried=True)
    with capsys.disabled():
        print(table(results, "vscsi, untried"))
    given = {
        result["state"]: said
        for result in results
        for said in result.get("guard", {}).get("said", ())
        if said.startswith("GIVEN OUT")
    }
    assert given == {}


@pytest.mark.parametrize("adapter", ["mraid", "fusion"])
def test_the_same_holds_behind_another_controller(
    adapters: dict[str, Any], adapter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = trial(adapters, adapter, ELSEWHERE)
    with capsys.disabled():
        print(table(results, adapter))
    assert len(results) == len(ELSEWHERE) + 1
    check_states(results)
    check_acceptance(results[-2])


def test_a_refusal_ends_the_preflight_with_code_4(adapters: dict[str, Any]) -> None:
    drive = adapters["vscsi"]["drives"][0]
    node = f"/dev/disk/by-id/wwn-{drive['wwn']}"
    on_bench(f"mkfs.ext4 -q -F {node} 65536k && mkdir -p /mnt/data && mount {node} /mnt/data")
    try:
        code, said = playbook("preflight.yml")
    finally:
        on_bench(f"umount /mnt/data; dd if=/dev/zero of={node} bs=1M count=9 conv=fsync 2>/dev/null; udevadm settle")
    assert code == 4, said[-3000:]
    assert "it is mounted on /mnt/data (ext4); unmount it" in said
    assert "srcversion" not in said


def test_a_bench_that_is_not_the_inventorys_ends_with_code_3(adapters: dict[str, Any], tmp_path: Path) -> None:
    wrong = json.loads(json.dumps(adapters))
    wrong["vscsi"]["driver"] = "mptsas"
    wrong["mraid"]["pci"] = "0000:00:1f.0"
    wrong["fusion"]["drives"][0]["wwn"] = "0x5000c500ffffffff"
    wrong["fusion"]["drives"][1]["serial"] = wrong["fusion"]["drives"][2]["serial"]
    given = tmp_path / "wrong.json"
    given.write_text(
        json.dumps({"preflight_bench": {"kind": "virtual", "state_dir": "/var/lib/storqual", "adapters": wrong}})
    )
    before = on_bench("cat /sys/block/[sn]*/stat | awk '{ print $7 }'")
    code, said = playbook("preflight.yml", "-e", f"@{given}", "-e", "preflight_stamp=true")
    assert code == 3, said[-3000:]
    for words in (
        "its driver is virtio_scsi, the inventory says mptsas",
        "there is no storage adapter at 0000:00:1f.0",
        "no drive of this bench has that WWN",
        "its serial is 'GRDF000002', the inventory says 'GRDF000003'",
        "serial STORQUAL GRDF000003 stands twice in the inventory",
    ):
        assert words in said, words
    assert before == on_bench("cat /sys/block/[sn]*/stat | awk '{ print $7 }'")


def test_facts_are_read_quickly(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import time; a = time.monotonic(); from storqual_core.facts.bench_facts import read_facts;"
        "b = time.monotonic();"
        "f = read_facts(); c = time.monotonic(); print(len(f['drives']), round(b - a, 2), round(c - b, 2))"
    )
    runs = [on_bench(f'cd /root/trial && python3 -c "{code}"').split() for _ in range(3)]
    with capsys.disabled():
        print(f"\nbench_facts in the guest: {runs[0][0]} drives; seconds (import, read) {[run[1:] for run in runs]}")
    assert int(runs[0][0]) == 13
    assert min(float(run[2]) for run in runs) < 10


def test_a_power_cut_leaves_a_drive_that_is_known_and_every_sector_is_counted(adapters: dict[str, Any]) -> None:
    asked = {"adapters": adapters, "adapter": "vscsi", "unclaimed": "GRDV000004"}
    line = "cd /root/trial && python3 guard_reset.py"
    before = json.loads(on_bench(line, data=json.dumps({**asked, "phase": "before"}).encode()))
    reset(BenchPlaces.of(STATE))
    again = {**asked, "phase": "after", "reading": before["reading"]}
    after = json.loads(on_bench(line, data=json.dumps(again).encode()))
    assert after["boots"] == 2
    assert after["outside_before_the_stray_write"] == {}
    assert after["cleared"] == []
    assert "holds a file system (xfs)" in after["foreign"]
    assert list(after["outside"]) == ["0x5000c5006db10030"]
