# SPDX-License-Identifier: Apache-2.0
"""The rate of a drive's SAS link, on a tree like sysfs whose phys do what those of a driver do."""

from pathlib import Path

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.errors import BadInputError, ToolError
from storqual_core.kit.results import PartialError
from storqual_core.kit.settings import check_section
from storqual_core.provision import mode_pages
from storqual_core.provision.drives import DriveSettings
from storqual_core.provision.engine import StepOutcome, apply, plan
from tests.support.bench_tree import BenchTree

HOST = "/sys/devices/pci0000:00/0000:00:06.0/host2"
TARGET = DriveTarget("0x5000", "sda", "/dev/sg0")


class Phy:
    """One phy of a direct-attached drive: `drive` is the highest rate that the drive itself can run at."""

    def __init__(self, tree: BenchTree, *, drive: str = "6.0 Gbit", number: int = 3) -> None:
        self.tree, self.drive = tree, drive
        self.folder = f"{HOST}/port-2:3/phy-2:{number}/sas_phy/phy-2:{number}"
        self.negotiates = True
        for name, text in {
            "negotiated_linkrate": drive,
            "maximum_linkrate": "12.0 Gbit",
            "maximum_linkrate_hw": "12.0 Gbit",
            "minimum_linkrate": "3.0 Gbit",
            "minimum_linkrate_hw": "1.5 Gbit",
        }.items():
            self.put(name, text)

    def path(self, name: str) -> Path:
        return Path(self.tree.machine.path(f"{self.folder}/{name}"))

    def put(self, name: str, text: str) -> None:
        """What the kernel shows of an attribute."""
        self.tree.write(f"{self.folder}/{name}", f"{text}\n")

    def text(self, name: str) -> str:
        return self.path(name).read_text().strip()

    def wait(self, seconds: float) -> None:
        """Time in which the link is negotiated."""
        del seconds
        if self.negotiates:
            rate = min(self.text("maximum_linkrate"), self.drive, key=lambda text: float(text.split()[0]))
            self.put("negotiated_linkrate", rate)


@pytest.fixture
def phy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Phy:
    """A drive of 6 Gbit on an adapter of 12, and another drive on a port of its own."""
    tree = BenchTree(tmp_path)
    made = Phy(tree)
    tree.disk("sda", f"{HOST}/port-2:3/end_device-2:3/target2:0:3/2:0:3:0")
    tree.disk("sdb", f"{HOST}/port-2:4/end_device-2:4/target2:0:4/2:0:4:0")
    tree.write("/sys/block/sda/device/state", "running\n")
    monkeypatch.setattr("storqual_core.kit.machine.Machine.wait", lambda _self, seconds: made.wait(seconds))
    return made


def run_step(phy: Phy, rate: object, target: DriveTarget = TARGET, kept: list | None = None) -> StepOutcome:
    """Carry the step out for one drive."""
    declared = check_section("drive", {"link_rate": rate})
    subsystem = DriveSettings(sysfs=phy.tree.machine.path("/sys"))
    memory = [] if kept is None else kept
    return apply(subsystem, [plan(subsystem, target.id, target, declared)], save=memory.append)


def test_a_rate_is_set_read_back_and_shown_by_what_is_negotiated(phy: Phy) -> None:
    kept: list = []
    outcome = run_step(phy, "3 Gbit/s", kept=kept)
    (entry,) = outcome.settings
    assert (entry.before, entry.read_back, entry.proven) == ("12.0 Gbit", "3.0 Gbit", True)
    assert entry.proof == "negotiated_linkrate is 3.0 Gbit"
    assert kept == [{"drive.link_rate@0x5000": "12.0 Gbit"}]
    assert outcome.steps == ["0x5000: link_rate set to 3.0 Gbit, the link came back at 3.0 Gbit"]


def test_the_remembered_rate_is_put_back_although_the_drive_is_slower(phy: Phy) -> None:
    run_step(phy, "3.0 Gbit")
    (entry,) = run_step(phy, "12.0 Gbit").settings
    assert (phy.text("maximum_linkrate"), phy.text("negotiated_linkrate")) == ("12.0 Gbit", "6.0 Gbit")
    assert (entry.proven, entry.proof) == (None, "negotiated_linkrate is 6.0 Gbit: the drive or the cable is slower")


def test_a_link_that_stays_faster_than_declared_is_an_error(phy: Phy) -> None:
    phy.negotiates = False
    with pytest.raises(PartialError, match=r"20 s after 3.0 Gbit was set its link is at 6.0 Gbit, the drive running"):
        run_step(phy, "3.0 Gbit")


def test_a_drive_that_the_kernel_still_blocks_is_waited_for(phy: Phy) -> None:
    phy.tree.write("/sys/block/sda/device/state", "blocked\n")
    with pytest.raises(PartialError, match=r"link is at 3.0 Gbit, the drive blocked"):
        run_step(phy, "3.0 Gbit")


def test_a_faster_link_than_was_read_back_is_no_proof(phy: Phy) -> None:
    links = mode_pages.LinkRates(machine=phy.tree.machine)
    assert links.prove(TARGET, "3.0 Gbit") == (False, "negotiated_linkrate is 6.0 Gbit")
    phy.put("negotiated_linkrate", "Spin-up hold")
    assert links.prove(TARGET, "3.0 Gbit") == (None, "negotiated_linkrate is Spin-up hold")


@pytest.mark.parametrize(
    ("attribute", "text", "rate", "told"),
    [
        ("minimum_linkrate", "3.0 Gbit", "1.5 Gbit", "minimum_linkrate of the phys of sda is 3.0 Gbit"),
        ("minimum_linkrate_hw", "6.0 Gbit", "3.0 Gbit", "minimum_linkrate_hw of the phys of sda is 6.0 Gbit"),
        ("maximum_linkrate_hw", "12.0 Gbit", "22.5 Gbit", "maximum_linkrate_hw of the phys of sda is 12.0 Gbit"),
        ("maximum_linkrate", "Unknown", "3.0 Gbit", "highest rates that could not be put back: Unknown"),
    ],
)
def test_a_rate_that_the_phys_do_not_have_is_refused_before_a_write(
    phy: Phy, attribute: str, text: str, rate: str, told: str
) -> None:
    phy.put(attribute, text)
    before = phy.text("maximum_linkrate")
    with pytest.raises(ToolError, match=told):
        run_step(phy, rate)
    assert phy.text("maximum_linkrate") == before


def test_a_driver_that_cannot_set_it_is_refused_before_a_write(phy: Phy) -> None:
    phy.path("maximum_linkrate").chmod(0o444)
    with pytest.raises(ToolError, match="driver of sda does not let the rate of its link be changed"):
        run_step(phy, "3.0 Gbit")
    assert phy.text("maximum_linkrate") == "12.0 Gbit"
    # what already is as declared needs no write
    assert run_step(phy, "12.0 Gbit").steps == []


def test_phys_of_a_wide_port_that_differ_are_refused_and_equal_ones_are_all_set(phy: Phy) -> None:
    other = Phy(phy.tree, number=4)
    other.put("maximum_linkrate", "6.0 Gbit")
    with pytest.raises(ToolError, match=r"could not be put back: 12.0 Gbit, 6.0 Gbit"):
        run_step(phy, "3.0 Gbit")
    other.put("maximum_linkrate", "12.0 Gbit")
    other.put("negotiated_linkrate", "3.0 Gbit")
    run_step(phy, "3.0 Gbit")
    assert other.text("maximum_linkrate") == "3.0 Gbit"


def test_a_link_that_carries_another_unit_too_is_refused(phy: Phy) -> None:
    phy.tree.disk("sdc", f"{HOST}/port-2:3/end_device-2:3/target2:0:3/2:0:3:1")
    with pytest.raises(ToolError, match="the link of sda also carries sdc"):
        run_step(phy, "3.0 Gbit")


def test_a_drive_on_no_sas_link_is_refused_with_what_there_is_instead(phy: Phy) -> None:
    phy.tree.disk("sdd", f"{HOST}/target2:0:5/2:0:5:0")
    with pytest.raises(ToolError, match=r"sdd is on no SAS link, 3.0 Gbit is declared; .*lpfc_link_speed"):
        run_step(phy, "3.0 Gbit", DriveTarget("0x6000", "sdd", "/dev/sg3"))


@pytest.mark.parametrize("text", ["2 Gbit", "3.0 GB", "fast", "", "33.0 Gbit", True])
def test_what_is_no_rate_of_sas_is_refused(text: object) -> None:
    with pytest.raises(BadInputError, match=r"is not one of 1.5 Gbit, 3.0 Gbit, 6.0 Gbit, 12.0 Gbit, 22.5 Gbit"):
        check_section("drive", {"link_rate": text})
