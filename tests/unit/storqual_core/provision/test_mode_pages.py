# SPDX-License-Identifier: Apache-2.0
"""Mode-page fields and write caches of drives: exact commands for read, plan, write, read back."""

from pathlib import Path

import pytest

from storqual_core.host.block_stack import DriveTarget, target_of
from storqual_core.kit.errors import BadInputError, ToolError
from storqual_core.kit.results import PartialError
from storqual_core.provision.drives import DriveRequest, DriveSettings, _chosen, _with_saved
from storqual_core.provision.engine import StepOutcome, apply, plan
from storqual_core.provision.mode_pages import ModePages
from tests.support.replay import Call, Replay

TARGET = DriveTarget("0x5000", "sdb", "/dev/sg1")
OTHER = DriveTarget("0x6000", "sdc", "/dev/sg2")
NVME = DriveTarget("NVME1", "nvme0n1", "/dev/nvme0")


def caching(byte2: int, byte12: int = 0) -> str:
    return " ".join(f"{byte:02x}" for byte in [0x88, 0x12, byte2, *[0] * 9, byte12, *[0] * 7])


def current(page: str, device: str = "/dev/sg1") -> Call:
    return Call(f"sg_modes -R --control=0 --page=0x8,0x0 {device}", page)


def mask(page: str, device: str = "/dev/sg1") -> Call:
    return Call(f"sg_modes -R --control=1 --page=0x8,0x0 {device}", page)


def saved(page: str, rc: int = 0) -> Call:
    return Call("sg_modes -R --control=3 --page=0x8,0x0 /dev/sg1", page if rc == 0 else "", rc=rc)


def write(byte2: str, mask2: str, device: str = "/dev/sg1", rc: int = 0, save: str = "") -> Call:
    """One MODE SELECT of the caching page."""
    zeros = ",".join(["00"] * 17)
    words = f"--page=8 {save}--contents=88,12,{byte2},{zeros} --mask=00,00,{mask2},{zeros}"
    return Call(f"sg_wr_mode {words} {device}", rc=rc)


ALL = caching(0xFF, 0xFF)


@pytest.fixture
def sysfs(tmp_path: Path) -> str:
    """Two drives with what the kernel says of their caches."""
    for node in ("sdb", "sdc"):
        disk = tmp_path / "block" / node / "device" / "scsi_disk" / "0:0:0:0"
        disk.mkdir(parents=True)
        (disk / "cache_type").write_text("write through\n")
        (tmp_path / "block" / node / "device" / "rescan").write_text("")
    return str(tmp_path)


def run_step(
    calls: list[Call],
    declared: dict,
    sysfs: str,
    *,
    check: bool = False,
    save: bool = False,
    kept: list | None = None,
) -> StepOutcome:
    """Carry the step out over a table of commands that must all be used."""
    replay = Replay(calls)
    memory = [] if kept is None else kept
    targets = {target.id: target for target in (TARGET, OTHER, NVME)}
    pages = DriveSettings(replay, save=save, sysfs=sysfs)
    try:
        plans = [
            plan(pages, drive, targets[drive], _with_saved(values, targets[drive], save=save))
            for drive, values in declared.items()
        ]
        return apply(pages, plans, save=None if check else memory.append)
    finally:
        replay.done()


def test_a_field_is_set_saved_first_and_read_back(sysfs: str) -> None:
    """Read, mask, remember, one MODE SELECT, kernel told, read back."""
    kept: list = []
    outcome = run_step(
        [current(caching(4)), mask(ALL), write("00", "04"), current(caching(0))],
        {"0x5000": {"WCE": 0}},
        sysfs,
        kept=kept,
    )
    (entry,) = outcome.settings
    assert (entry.name, entry.declared, entry.before, entry.read_back, entry.changed) == ("drive.WCE", 0, 1, 0, True)
    assert entry.proven is None
    assert "the kernel says write through" in entry.proof
    assert kept == [{"drive.WCE@0x5000": 1}]
    assert outcome.result()["changed"]
    assert outcome.result()["diff"] == {"before": "0x5000 drive.WCE: 1\n", "after": "0x5000 drive.WCE: 0\n"}
    assert Path(sysfs, "block", "sdb", "device", "rescan").read_text() == "1\n"


def test_a_field_that_is_as_declared_is_read_once_and_not_written(sysfs: str) -> None:
    outcome = run_step([current(caching(0))], {"0x5000": {"WCE": 0}}, sysfs)
    assert not outcome.result()["changed"]
    assert outcome.result()["diff"] == {"before": "", "after": ""}
    assert Path(sysfs, "block", "sdb", "device", "rescan").read_text() == ""


def test_check_mode_reads_and_writes_nothing(sysfs: str) -> None:
    kept: list = []
    outcome = run_step([current(caching(4)), mask(ALL)], {"0x5000": {"WCE": 0}}, sysfs, check=True, kept=kept)
    assert outcome.result()["changed"]
    assert outcome.result()["diff"]["after"] == "0x5000 drive.WCE: 0\n"
    assert outcome.settings[0].read_back == 1
    assert not outcome.settings[0].changed
    assert kept == []


def test_several_fields_of_a_page_are_one_command(sysfs: str) -> None:
    outcome = run_step(
        [current(caching(4)), mask(ALL), write("01", "05"), current(caching(1))],
        {"0x5000": {"WCE": 0, "RCD": 1}},
        sysfs,
    )
    assert [entry.read_back for entry in outcome.settings] == [0, 1]


def test_one_drive_that_cannot_keeps_all_from_being_written(sysfs: str) -> None:
    with pytest.raises(ToolError, match="0x6000: WCE is 1 and not changeable on this drive") as caught:
        run_step(
            [current(caching(4)), mask(ALL), current(caching(4), "/dev/sg2"), mask(caching(0), "/dev/sg2")],
            {"0x5000": {"WCE": 0}, "0x6000": {"WCE": 0}},
            sysfs,
        )
    assert not isinstance(caught.value, PartialError)


def test_a_drive_that_does_not_answer_is_named_before_any_write(sysfs: str) -> None:
    gone = Call("sg_modes -R --control=0 --page=0x8,0x0 /dev/sg2", rc=2)
    with pytest.raises(ToolError, match="0x6000: reading mode page 0x08 of /dev/sg2: the drive is not ready"):
        run_step([current(caching(4)), mask(ALL), gone], {"0x5000": {"WCE": 0}, "0x6000": {"WCE": 0}}, sysfs)


def test_a_failure_after_the_first_write_tells_what_was_done_and_read(sysfs: str) -> None:
    with pytest.raises(PartialError, match="yet refused the change") as caught:
        run_step(
            [
                current(caching(4)),
                mask(ALL),
                current(caching(4), "/dev/sg2"),
                mask(ALL, "/dev/sg2"),
                write("00", "04"),
                write("00", "04", "/dev/sg2", rc=5),
                current(caching(0)),
                current(caching(4), "/dev/sg2"),
            ],
            {"0x5000": {"WCE": 0}, "0x6000": {"WCE": 0}},
            sysfs,
        )
    assert [(entry.drive, entry.read_back) for entry in caught.value.settings] == [("0x5000", 0), ("0x6000", 1)]
    assert caught.value.steps[0] == "0x5000: mode page 0x08 written"


def test_a_value_that_did_not_take_is_a_failure(sysfs: str) -> None:
    with pytest.raises(PartialError, match=r"drive\.WCE was set to 0 and reads back 1"):
        run_step(
            [current(caching(4)), mask(ALL), write("00", "04"), current(caching(4))], {"0x5000": {"WCE": 0}}, sysfs
        )


def test_a_null_value_only_reads(sysfs: str) -> None:
    outcome = run_step([current(caching(4))], {"0x5000": {"WCE": None}}, sysfs)
    assert outcome.settings[0].read_back == 1
    assert not outcome.steps


def test_saved_pages_are_compared_and_written_too(sysfs: str) -> None:
    """The current value is right, the saved one is not: it would be wrong after the next power-on."""
    kept: list = []
    everything = caching(0)
    both = write("00", "04", save="--save ")
    outcome = run_step(
        [
            current(everything),
            saved(caching(4)),
            mask(ALL),
            both,
            # writing the saved page writes the current one, too
            current(everything),
            current(everything),
            saved(everything),
        ],
        {"0x5000": {"WCE": 0}},
        sysfs,
        save=True,
        kept=kept,
    )
    assert outcome.steps
    assert kept == [{"drive.WCE.saved@0x5000": 1, "drive.WCE@0x5000": 0}]


def test_a_drive_without_saved_pages_says_so(sysfs: str) -> None:
    with pytest.raises(ToolError, match="0x5000: reading mode page 0x08 of /dev/sg1: the drive refused the request"):
        run_step([current(caching(4)), saved("", rc=5)], {"0x5000": {"WCE": 0}}, sysfs, save=True)


def test_a_drive_that_does_not_save_is_a_failure(sysfs: str) -> None:
    with pytest.raises(PartialError, match=r"drive\.WCE\.saved was set to 0 and reads back 1"):
        run_step(
            [
                current(caching(4)),
                saved(caching(4)),
                mask(ALL),
                write("00", "04", save="--save "),
                current(caching(0)),
                current(caching(0)),
                saved(caching(4)),
            ],
            {"0x5000": {"WCE": 0}},
            sysfs,
            save=True,
        )


def test_the_cache_of_an_nvme_drive_is_a_feature(sysfs: str) -> None:
    get = "nvme get-feature /dev/nvme0 --feature-id=6"
    on, off = (f"get-feature:0x06 (Volatile Write Cache), Current value:0x0000000{value}" for value in (1, 0))
    outcome = run_step(
        [Call(get, on), Call("nvme set-feature /dev/nvme0 --feature-id=6 --value=0"), Call(get, off)],
        {"NVME1": {"WCE": 0}},
        sysfs,
    )
    assert outcome.settings[0].read_back == 0


def test_an_nvme_drive_has_no_other_field(sysfs: str) -> None:
    with pytest.raises(ToolError, match="NVMe drive: it has no mode pages, of these settings only WCE, not DRA"):
        run_step([], {"NVME1": {"DRA": 0}}, sysfs)


def test_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(ToolError, match=r"drive\.queue_depth is not a mode-page field"):
        ModePages(Replay([])).read(TARGET, ["queue_depth"])


def test_both_parts_share_one_declaration() -> None:
    drives = {"a": {"WCE": 0, "queue_depth": 4}, "b": {"scheduler": "none"}, "c": {"DRA": None, "nr_requests": None}}

    def chosen(part: str, declared: dict) -> dict:
        return _chosen(DriveRequest(declared, {}, "/nowhere", "r1", part=part))

    assert chosen("mode_pages", drives) == {"a": {"WCE": 0}, "c": {"DRA": None}}
    assert chosen("queue", drives) == {
        "a": {"queue_depth": 4},
        "b": {"scheduler": "none"},
        "c": {"nr_requests": None},
    }
    assert chosen("all", drives) == drives
    for part in ("mode_pages", "queue", "all"):
        with pytest.raises(BadInputError, match="queue_dept is not a known setting"):
            chosen(part, {"a": {"queue_dept": 4}})
        with pytest.raises(BadInputError, match="WCEE"):
            chosen(part, {"a": {"WCEE": None}})


def test_a_kernel_that_still_goes_by_the_former_cache_is_a_failure(sysfs: str) -> None:
    """It would go on flushing, and a synchronous write would be measured at another cost."""
    Path(sysfs, "block", "sdb", "device", "scsi_disk", "0:0:0:0", "cache_type").write_text("write back\n")
    with pytest.raises(PartialError, match="WCE is 0, and the kernel goes by 'write back'"):
        run_step(
            [current(caching(4)), mask(ALL), write("00", "04"), current(caching(0))], {"0x5000": {"WCE": 0}}, sysfs
        )


def test_fields_of_a_page_are_saved_together(sysfs: str) -> None:
    """The drive saves the page as it is: what only the saved page has right would be lost with its neighbour."""
    outcome = run_step(
        [
            current(caching(5)),
            saved(caching(4)),
            mask(ALL),
            write("00", "05", save="--save "),
            current(caching(0)),
            current(caching(0)),
            saved(caching(0)),
        ],
        {"0x5000": {"WCE": 0, "RCD": 0}},
        sysfs,
        save=True,
    )
    assert {entry.name: entry.read_back for entry in outcome.settings} == dict.fromkeys(
        ["drive.WCE", "drive.RCD", "drive.WCE.saved", "drive.RCD.saved"], 0
    )


def test_the_node_that_a_tool_opens_is_found(tmp_path: Path) -> None:
    (tmp_path / "block" / "sdb" / "device" / "scsi_generic" / "sg7").mkdir(parents=True)
    (tmp_path / "block" / "sdc" / "device").mkdir(parents=True)
    (tmp_path / "devices" / "nvme3").mkdir(parents=True)
    (tmp_path / "devices" / "nvme-subsys0" / "nvme5").mkdir(parents=True)
    for name, place in {"nvme3n1": "nvme3", "nvme0n1": "nvme-subsys0"}.items():
        (tmp_path / "block" / name).mkdir()
        (tmp_path / "block" / name / "device").symlink_to(tmp_path / "devices" / place)
    nodes = ("/dev/sdb", "sdc", "nvme3n1", "nvme0n1")
    assert [target_of("x", node, str(tmp_path)).device for node in nodes] == [
        *("/dev/sg7", "/dev/sdc", "/dev/nvme3", "/dev/nvme5")
    ]
