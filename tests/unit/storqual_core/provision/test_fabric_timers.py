# SPDX-License-Identifier: Apache-2.0
"""Timers of drives behind fabrics, which the kernel keeps for the remote port, session or controller."""

from pathlib import Path

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.errors import BadInputError, ToolError
from storqual_core.kit.results import PartialError
from storqual_core.kit.settings import check_section
from storqual_core.provision.drives import DriveSettings
from storqual_core.provision.engine import StepOutcome, apply, plan

RPORT = "class/fc_remote_ports/rport-9:0-0"
SESSION = "class/iscsi_session/session1"
CONTROLLER = "devices/virtual/nvme-fabrics/ctl/nvme1"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A LUN of each fabric, and a drive of a card."""
    for name, place in (
        ("sdk", "devices/virtual/net/fc0/ctlr_1/host9/rport-9:0-0/target9:0:0/9:0:0:0"),
        ("sdl", "devices/virtual/net/fc0/ctlr_1/host9/rport-9:0-0/target9:0:0/9:0:0:1"),
        ("sdi", "devices/platform/host6/session1/target6:0:0/6:0:0:0"),
        ("sda", "devices/pci0000:00/0000:00:05.0/host2/target2:0:0/2:0:0:0"),
        ("nvme1n1", "devices/virtual/nvme-subsystem/nvme-subsys1"),
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / "block" / name).mkdir(parents=True)
        (tmp_path / "block" / name / "device").symlink_to(tmp_path / place)
    for place, texts in (
        (RPORT, {"dev_loss_tmo": "60", "fast_io_fail_tmo": "off"}),
        (SESSION, {"recovery_tmo": "120"}),
        (CONTROLLER, {"ctrl_loss_tmo": "600", "reconnect_delay": "10", "fast_io_fail_tmo": "off"}),
    ):
        (tmp_path / place).mkdir(parents=True)
        for name, text in texts.items():
            (tmp_path / place / name).write_text(text + "\n")
    (tmp_path / "devices/virtual/nvme-subsystem/nvme-subsys1/nvme1").symlink_to(tmp_path / CONTROLLER)
    return tmp_path


def run_step(sysfs: Path, *, kept: list[object] | None = None, **declared: dict[str, object]) -> StepOutcome:
    subsystem = DriveSettings(sysfs=str(sysfs))
    plans = [
        plan(subsystem, name, DriveTarget(name, name, f"/dev/{name}"), check_section("drive", values))
        for name, values in declared.items()
    ]
    return apply(subsystem, plans, save=(kept if kept is not None else []).append)


def read(sysfs: Path, place: str) -> str:
    return (sysfs / place).read_text().strip()


def test_timers_are_written_where_the_kernel_keeps_them_and_remembered(sysfs: Path) -> None:
    kept: list[object] = []
    outcome = run_step(
        sysfs,
        kept=kept,
        sdk={"fast_io_fail_tmo": 5, "dev_loss_tmo": 20},
        sdi={"recovery_tmo": 7},
        nvme1n1={"ctrl_loss_tmo": 30, "reconnect_delay": 2},
    )
    assert (read(sysfs, f"{RPORT}/dev_loss_tmo"), read(sysfs, f"{RPORT}/fast_io_fail_tmo")) == ("20", "5")
    assert read(sysfs, f"{SESSION}/recovery_tmo") == "7"
    assert (read(sysfs, f"{CONTROLLER}/ctrl_loss_tmo"), read(sysfs, f"{CONTROLLER}/reconnect_delay")) == ("30", "2")
    assert kept[0]["drive.fast_io_fail_tmo@sdk"] == "off"  # type: ignore[index]
    steps = [step for step in outcome.steps if step.startswith("sdk")]
    # the kernel takes the second only below the first
    assert steps == ["sdk: dev_loss_tmo set to 20", "sdk: fast_io_fail_tmo set to 5"]
    # the kernel shows the first as attempts times the second
    assert outcome.steps[-2:] == ["nvme1n1: reconnect_delay set to 2", "nvme1n1: ctrl_loss_tmo set to 30"]


def test_timers_of_a_drive_of_several_paths_are_those_of_each(sysfs: Path) -> None:
    """Its multipath device has none; a path that had another value gets it back."""
    other = sysfs / "devices/virtual/net/fc0/ctlr_1/host9/rport-9:0-1/target9:0:1/9:0:1:0"
    port = sysfs / RPORT.replace("9:0-0", "9:0-1")
    for place in (other, sysfs / "block/sdm", port):
        place.mkdir(parents=True)
    (sysfs / "block/sdm/device").symlink_to(other)
    second = sysfs / "devices/virtual/nvme-fabrics/ctl/nvme2"
    second.mkdir()
    (sysfs / "devices/virtual/nvme-subsystem/nvme-subsys1/nvme2").symlink_to(second)
    for place, texts in (
        (port, {"dev_loss_tmo": "30", "fast_io_fail_tmo": "off"}),
        (second, {"ctrl_loss_tmo": "600", "reconnect_delay": "10"}),
    ):
        for name, text in texts.items():
            (place / name).write_text(text + "\n")
    kept: list[dict[str, object]] = []
    lun = DriveTarget("lun", "dm-0", "/dev/sg1", ("sdk", "sdm"))
    space = DriveTarget("space", "nvme1n1", "/dev/nvme1")
    subsystem = DriveSettings(sysfs=str(sysfs))

    def timers() -> list[str]:
        return [(place / "dev_loss_tmo").read_text().strip() for place in (sysfs / RPORT, port)]

    wanted = check_section("drive", {"fast_io_fail_tmo": 5, "dev_loss_tmo": 20})
    apply(subsystem, [plan(subsystem, "lun", lun, wanted)], save=kept.append)
    assert timers() == ["20", "20"]
    assert kept[0]["drive.dev_loss_tmo@lun"] == "60 and 30"
    former = {name: kept[0][f"drive.{name}@lun"] for name in wanted}
    apply(subsystem, [plan(subsystem, "lun", lun, former)], save=kept.append)
    assert timers() == ["60", "30"]
    apply(subsystem, [plan(subsystem, "space", space, {"reconnect_delay": 2})], save=kept.append)
    assert [read(sysfs, f"{place}/reconnect_delay") for place in (CONTROLLER, str(second))] == ["2", "2"]
    with pytest.raises(ToolError, match="has 1 paths now"):
        subsystem.write(DriveTarget("lun", "sdk", "/dev/sg1"), {"dev_loss_tmo": "60 and 30"})


def test_what_the_kernel_would_not_take_is_refused_before_any_write(sysfs: Path) -> None:
    for values, words in (
        ({"fast_io_fail_tmo": 60}, "fast_io_fail_tmo 60 must be below dev_loss_tmo, which is 60"),
        ({"dev_loss_tmo": 601}, "dev_loss_tmo 601 is declared, above 600 it needs a fast_io_fail_tmo"),
        (
            {"dev_loss_tmo": 9000, "fast_io_fail_tmo": 601},
            "fast_io_fail_tmo 601 must be below dev_loss_tmo, which is 9000, and at most 600",
        ),
    ):
        with pytest.raises(ToolError, match=words):
            run_step(sysfs, sdk=values)
    assert (read(sysfs, f"{RPORT}/dev_loss_tmo"), read(sysfs, f"{RPORT}/fast_io_fail_tmo")) == ("60", "off")


def test_two_luns_of_one_remote_port_cannot_have_two_values(sysfs: Path) -> None:
    with pytest.raises(PartialError, match=r"sdk: drive\.dev_loss_tmo was set to 20 and reads back 30"):
        run_step(sysfs, sdk={"dev_loss_tmo": 20}, sdl={"dev_loss_tmo": 30})


def test_a_drive_that_is_behind_no_fabric_has_none(sysfs: Path) -> None:
    with pytest.raises(ToolError, match="the driver of sda has no dev_loss_tmo, 20 is declared"):
        run_step(sysfs, sda={"dev_loss_tmo": 20})
    with pytest.raises(ToolError, match="the driver of sdi has no ctrl_loss_tmo, 20 is declared"):
        run_step(sysfs, sdi={"ctrl_loss_tmo": 20})


def test_off_is_a_word_and_a_number_is_seconds(sysfs: Path) -> None:
    run_step(sysfs, nvme1n1={"ctrl_loss_tmo": "off"})
    assert read(sysfs, f"{CONTROLLER}/ctrl_loss_tmo") == "-1"
    with pytest.raises(BadInputError, match="fast_io_fail_tmo"):
        run_step(sysfs, sdk={"fast_io_fail_tmo": "never"})
