# SPDX-License-Identifier: Apache-2.0
"""RAID layouts on the virtual bench: five levels at once, made, found again, shown only, put back; what they cost.

What the bench is like is asked of the bench itself, with mdadm, sysfs and fio, not of what the roles report.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual_core.guard.signatures import volume_path, volume_uuid
from tests.support.live_bench import Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

# none behind `sym`: QEMU's LSI 53C895A loses a reselection, or answers wrongly, when several drives are busy
TEKRAM = ["0x5000e0c001010000", "0x5000e0c001010010"]
MRAID = ["0x5000c50067b10000", "0x5000c50067b10010"]
FUSION = [f"0x5000c5001f2a00{place}0" for place in range(8)]
VSCSI = [f"0x5000cca04e0100{place}0" for place in range(4)]
LEVELS = {"0": TEKRAM, "1": MRAID, "5": FUSION[:4], "6": FUSION[4:], "10": VSCSI}

LAYOUT = "raid:\n" + "".join(
    f"  - {{on: {{adapter: {adapter}}}, level: {level}, strip: 64k, name: r{level}, initialisation: full,"
    f" members: {json.dumps(LEVELS[level])}}}\n"
    for adapter, level in (("dc390", "0"), ("mraid", "1"), ("fusion", "5"), ("fusion", "6"), ("vscsi", "10"))
)

# one line per array and per claimed drive: what raid_layout could change, and every sector that was written
LOOK = Path(__file__).with_suffix(".look").read_text(encoding="utf-8")
WRITTEN = "for disk in /sys/block/sd*; do set -- $(cat $disk/stat); echo ${disk##*/} $7; done"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own, powered on for these tests and off again."""
    with powered_bench("raid", tmp_path_factory.mktemp("raid")) as found:
        yield found


@pytest.fixture
def bare(bench: Bench) -> Bench:
    """The bench without a volume, whatever a test before left."""
    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    return bench


@pytest.fixture
def laid_out(bench: Bench) -> Bench:
    """The bench with the five volumes, whether or not a test before made them."""
    made = bench.provision(LAYOUT)
    assert made.code == 0, made.output
    return bench


def test_check_mode_shows_the_layout_and_touches_nothing(bare: Bench) -> None:
    """Exit code 1 for drift; not a sector is written, no lock file is made."""
    before = bare.ask(LOOK), bare.ask(WRITTEN), bare.ask("ls -A /var/lib/storqual 2>/dev/null || true")
    played = bare.provision(LAYOUT, "--check", "--diff")
    assert played.code == 1, played.output
    for level in LEVELS:
        assert re.search(rf"r{level} raid\.level: None, declared {level}\b", played.output), played.output
    after = bare.ask(LOOK), bare.ask(WRITTEN), bare.ask("ls -A /var/lib/storqual 2>/dev/null || true")
    assert after == before


def test_five_levels_are_made_initialised_and_found_again(bare: Bench) -> None:
    """RAID 0, 1, 5, 6 and 10 behind four drivers; the second time nothing changes."""
    first = bare.provision(LAYOUT)
    assert first.code == 0, first.output
    assert first.changed == 1
    arrays = {
        line.split(" ")[0]: line.split(" ")[1:] for line in bare.ask(LOOK).splitlines() if line.startswith("raid")
    }
    assert arrays == {
        "raid0": ["65536", "2", ""],
        "raid1": ["0", "2", "idle"],
        "raid5": ["65536", "4", "idle"],
        "raid6": ["65536", "4", "idle"],
        "raid10": ["65536", "4", "idle"],
    }
    assert set(bare.ask("cat /sys/block/md*/md/resync_start").split()) == {"none"}
    before = bare.ask(LOOK)
    second = bare.provision(LAYOUT)
    assert (second.code, second.changed) == (0, 0), second.output
    assert bare.ask(LOOK) == before


def test_a_small_random_write_on_raid_5_costs_four_member_ios(laid_out: Bench) -> None:
    """Old data and old parity are read, new data and new parity written: 4 (Patterson, Gibson, Katz 1988)."""
    node = volume_path(volume_uuid(LEVELS["5"]))
    names = laid_out.ask(f"ls /sys/block/$(basename $(readlink -f {node}))/slaves").split()
    count = "; ".join(f"cat /sys/block/{name}/stat" for name in names)

    def ios() -> int:
        fields = [line.split() for line in laid_out.ask(count).splitlines()]
        return sum(int(line[0]) + int(line[4]) for line in fields)

    before = ios()
    # fio takes the colons of the link for separators
    said = laid_out.ask(
        f"fio --name=w --filename=$(readlink -f {node}) --rw=randwrite --bs=4k --direct=1 --ioengine=libaio "
        "--iodepth=1 --norandommap --randrepeat=0 --runtime=20 --time_based --output-format=json"
    )
    writes = json.loads(said[said.index("{") :])["jobs"][0]["write"]["total_ios"]
    cost = (ios() - before) / writes
    print(f"RAID 5 of {len(names)}: {cost:.2f} member I/Os per write of 4 KiB, {writes} writes")
    assert writes > 200
    assert 3.5 <= cost <= 4.6


def test_a_lost_member_is_told_and_its_rebuild_is_awaited(laid_out: Bench) -> None:
    node = volume_path(volume_uuid(MRAID))
    array = laid_out.ask(f"readlink -f {node}").strip()
    member = laid_out.ask(f"ls /sys/block/{array.rsplit('/', 1)[-1]}/slaves").split()[0]
    laid_out.ask(f"mdadm {array} --fail /dev/{member} && mdadm {array} --remove /dev/{member}")
    played = laid_out.provision(LAYOUT)
    assert played.code == 2, played.output
    assert "degraded" in played.output
    laid_out.ask(f"mdadm {array} --add /dev/{member}")
    played = laid_out.provision(LAYOUT)
    assert played.code == 0, played.output
    assert "degraded" not in laid_out.ask(f"mdadm --detail {array} | grep State")


def test_restore_takes_the_volumes_away_and_leaves_scratch(laid_out: Bench) -> None:
    restored = laid_out.play("restore.yml")
    assert restored.code == 0, restored.output
    left = laid_out.ask(LOOK)
    assert "raid" not in left
    assert "ARRAY" not in left
    assert re.search(r"^memory $", left, re.MULTILINE), left
    again = laid_out.play("restore.yml")
    assert (again.code, again.changed) == (0, 0), again.output
    preflight = laid_out.play("preflight.yml")
    assert preflight.code == 0, preflight.output


def test_a_volume_of_somebody_else_is_never_taken_without_consent(bare: Bench) -> None:
    nodes = bare.ask(
        "for wwn in " + " ".join(drive[2:] for drive in MRAID) + "; do "
        "grep -l $wwn /sys/block/sd*/device/wwid | cut -d/ -f4; done"
    ).split()
    devices = " ".join(f"/dev/{name}" for name in nodes)
    bare.ask(f"mdadm --create /dev/md/theirs --run --metadata=1.2 --level=0 --raid-devices=2 {devices}")
    drop = f"raid: {{on: {{adapter: mraid}}, level: 1, members: {json.dumps(MRAID)}}}\n"
    before = bare.ask(LOOK)
    refused = bare.provision(drop)
    assert refused.code == 4, refused.output
    assert "there is no consent to it; add -e consent=67b10000" in refused.output
    assert bare.ask(LOOK) == before
    consent = ",".join(drive[-8:] for drive in MRAID)
    made = bare.provision(drop, "-e", f"consent={consent}")
    assert made.code == 0, made.output
    assert bare.play("restore.yml").code == 0


SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")


def test_a_campaign_makes_the_volume_of_each_arm_measures_it_and_takes_it_away(bare: Bench, tmp_path: Path) -> None:
    """RAID 10 with two strips on the same drives: made, filled through the guard, made again, gone."""
    (tmp_path / "volumes.suite.yml").write_text(SUITE, encoding="utf-8")
    for arm, strip in (("baseline", "64k"), ("candidate", "256k")):
        layout = f"level: 10, strip: {strip}, initialisation: none, members: {json.dumps(VSCSI)}"
        drop = f"name: {arm}\nraid: {{on: {{adapter: vscsi}}, {layout}}}\n"
        (tmp_path / f"{arm}.yml").write_text(drop, encoding="utf-8")
    words = {arm: tmp_path / f"{arm}.yml" for arm in ("baseline", "candidate")}
    words |= {"suite": tmp_path / "volumes.suite.yml", "runs": tmp_path / "runs"}
    given = [word for name, value in words.items() for word in ("-e", f"{name}={value}")]
    played = bare.play("qualify.yml", *given, "-e", "adapters=vscsi")
    (run,) = (tmp_path / "runs").iterdir()
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(samples) == 4, played.output
    assert {(sample["arm"], sample["status"]) for sample in samples} == {("baseline", "ok"), ("candidate", "ok")}
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["sectors_written_outside_claims"] == 0
    provisioned = json.loads((run / "run.json").read_text(encoding="utf-8"))["provisioned"]
    strips = [s["read_back"] for entry in provisioned for s in entry["settings"] if s["name"] == "raid.strip"]
    assert sorted(strips) == [65536, 262144]
    assert "raid" not in bare.ask(LOOK)
