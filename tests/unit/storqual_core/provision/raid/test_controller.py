# SPDX-License-Identifier: Apache-2.0
"""Volumes behind an adapter: identity from the adapter's words, consent for what nobody can look at, read back."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual_core.guard.claims import Claim, claims_of_adapters
from storqual_core.kit.errors import BadInputError, GuardRefusalError, ToolError
from storqual_core.kit.labelled_text import size_range
from storqual_core.kit.results import PartialError
from storqual_core.provision.raid.layout import Chooser, RaidRequest, provision_volumes, restore_volume, volumes_of
from storqual_core.provision.raid.volume_plan import ControllerVolumes, Existing, read_layouts, same_drive
from storqual_core.tools import storcli
from storqual_core.tools.capabilities import AdapterFacts, DriveFacts, ToolFacts, VolumeFacts, VolumeRequest
from tests.support.bench_tree import STATE, BenchTree

IDS = [f"0x5000c5000000000{place}" for place in range(1, 5)]
CONSENT = [drive[-8:] for drive in IDS[:3]]
DRIVES = [
    {"wwn": wwn, "serial": f"S{place}", "model": "EXAMPLE1000", "size": 1 << 30, "claim": True}
    for place, wwn in enumerate(IDS)
]
ADAPTERS = {"raid0": {"driver": "megaraid_sas", "pci": "0000:3b:00.0", "drives": DRIVES}}
VOLUME = {"adapter": "raid0", "level": "5", "strip": "64k", "members": IDS[:3], "write_policy": "wt"}


@dataclass
class FakeTool:
    """An adapter with four drives; it does what storcli's module does, without a command."""

    FREE = ("UGood",)
    SETTINGS = storcli.SETTINGS
    objections = staticmethod(storcli.objections)

    drives: list[DriveFacts]
    volumes: list[VolumeFacts] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    rate: int = 30
    under_way: dict[str, float] = field(default_factory=dict)
    broken: bool = False

    def read_facts(self, _runner: Any) -> ToolFacts:
        return ToolFacts((AdapterFacts("7", drives=tuple(self.drives), volumes=tuple(self.volumes)),))

    def read_settings(self, _runner: Any, index: str) -> Mapping[str, int]:
        assert index == "7"
        return {"rebuild_rate": self.rate}

    def create(self, _runner: Any, index: str, request: VolumeRequest) -> None:
        if self.broken:
            raise ToolError("a volume on controller 7 could not be made: out of order")
        assert index == "7"
        policies = {name: value for name, value in request.policies.items() if name != "rebuild_rate"}
        made = VolumeFacts(
            "239", request.name, level=request.level, state="Optl", strip=request.strip, members=request.members
        )
        self.volumes.append(
            replace(made, policies={"disk_cache": "default", **policies}, device="/dev/sdx", healthy=True)
        )
        self.done.append(f"create {','.join(request.members)}")

    def delete(self, _runner: Any, _index: str, volume: VolumeFacts) -> None:
        self.volumes = [other for other in self.volumes if other.id != volume.id]
        self.done.append(f"delete {volume.id}")

    def set_policy(self, _runner: Any, _index: str, volume: VolumeFacts, name: str, value: Any) -> None:
        if name == "rebuild_rate":
            self.rate = value
        self.volumes = [
            replace(other, policies={**other.policies, name: value}) if other.id == volume.id else other
            for other in self.volumes
        ]
        self.done.append(f"set {name}")

    def initialise(self, _runner: Any, _index: str, volume: VolumeFacts, kind: str) -> None:
        self.under_way = {"initialise": 1.0}
        self.done.append(f"initialise {volume.id} {kind}")

    def progress(self, _runner: Any, _index: str, _volume: VolumeFacts) -> dict[str, float]:
        return self.under_way


@pytest.fixture
def tool() -> FakeTool:
    """Four free drives that are the claimed ones."""
    drives = [
        DriveFacts(f"252:{place}", wwn, f"S{place}", model="EXAMPLE1000", size=1 << 30, state="UGood")
        for place, wwn in enumerate(IDS)
    ]
    return FakeTool(drives)


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench whose kernel sees none of them."""
    return BenchTree(tmp_path).adapter()


def backends(tool: FakeTool, tree: BenchTree, consent: Any = ()) -> Any:
    return lambda name, claims, made: ControllerVolumes(name, tool, claims, STATE, consent, made, tree.machine)


def provision(
    tool: FakeTool, tree: BenchTree, *volumes: dict[str, Any], consent: Any = CONSENT, **options: Any
) -> dict[str, Any]:
    given = {"run": "r", **options}
    request = RaidRequest(volumes=volumes, adapters=ADAPTERS, state_dir=tree.machine.path(STATE), **given)
    return provision_volumes(request, backends(tool, tree, consent), lambda _wish: "storcli")


def test_a_volume_is_made_read_back_and_found_again(tool: FakeTool, tree: BenchTree) -> None:
    first = provision(tool, tree, VOLUME)
    assert tool.done == ["create 252:0,252:1,252:2"]
    assert {entry["name"]: entry["read_back"] for entry in first["settings"]}["raid.strip"] == 65536
    assert provision(tool, tree, VOLUME)["changed"] is False
    assert len(tool.done) == 1


def test_what_nobody_can_look_at_needs_consent(tool: FakeTool, tree: BenchTree) -> None:
    for check in (True, False):
        with pytest.raises(GuardRefusalError, match="there is no consent to it; add -e consent=00000003"):
            provision(tool, tree, VOLUME, consent=CONSENT[:2], check=check)
    assert tool.done == []


def test_check_mode_shows_the_drift(tool: FakeTool, tree: BenchTree) -> None:
    said = provision(tool, tree, VOLUME, check=True)
    assert any("raid.level: None, declared 5" in line for line in said["drift"])
    assert tool.done == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"wwn": "0x5000c500000000ff"}, "shows no drive with the WWN, serial and model of 0x5000c50000000001"),
        ({"serial": "OTHER"}, "shows no drive with the WWN, serial and model"),
        ({"model": "OTHER"}, "shows no drive with the WWN, serial and model"),
        ({"size": 5}, "shows no drive with the WWN, serial and model"),
        ({"state": "JBOD"}, "is JBOD in the words of storcli, expected UGood"),
        ({"state": ""}, "is in no known state"),
        ({"state": "UGood foreign"}, "it has a configuration of another controller: import or clear that first"),
    ],
)
def test_a_drive_that_is_not_the_claimed_one_or_not_free_is_refused(
    tool: FakeTool, tree: BenchTree, change: dict[str, Any], words: str
) -> None:
    tool.drives[0] = replace(tool.drives[0], **change)
    with pytest.raises(ToolError, match=words):
        provision(tool, tree, VOLUME)
    assert tool.done == []


TRUE_SIZE = 960197124096
CLAIM = Claim("0x5000c5000000000c", "0x5000c5000000000c", "SN1", "ATA", "MK000960GWSSD", TRUE_SIZE)


@pytest.mark.parametrize(
    "drive",
    [
        DriveFacts(
            "1I:1:1", "", "SN1", "ATA", "MK000960GWSSD", size=960 * 10**9, size_range=size_range("960 GB", base=1000)
        ),
        DriveFacts(
            "0 1", "", "SN1", "", "MK000960GWSSD", size=915715 << 20, size_range=size_range("915715 MB", base=1024)
        ),
        DriveFacts("2:0", "0x5000c5000000000c", "SN1", "ATA", "MK000960GWSSD", size=TRUE_SIZE),
        DriveFacts("2:0", "0x5000c5000000000c", "", "ATA", ""),
        DriveFacts("2:0", "0x5000c5000000000d", "SN1", "ATA", "MK000960GWSSD"),
        DriveFacts("2:0", "", "SN1", "HPE", "ATA MK000960GWSSD"),
        DriveFacts("0 1", "", "SN1", "MK000960", "GWSSD"),
    ],
    ids=[
        *("ssacli", "arcconf", "sas3ircu", "by WWN alone", "the WWN of a port", "another column for the vendor"),
        "a model that begins where the vendor stands",
    ],
)
def test_a_claim_matches_the_drive_whose_size_the_tool_rounds(drive: DriveFacts) -> None:
    assert same_drive(CLAIM, drive)


@pytest.mark.parametrize(
    "change",
    [
        {"size_range": size_range("480 GB", base=1000)},
        {"size": TRUE_SIZE - 512, "size_range": None},
        {"serial": "SN2"},
        {"serial": ""},
        {"serial": "", "wwn": "0x5000c5000000000d"},
        {"wwn": "0x5000c50000000fff"},
        {"model": "MK000480GWSSD"},
    ],
    ids=str,
)
def test_a_claim_does_not_match_what_speaks_against_it(change: dict[str, Any]) -> None:
    drive = DriveFacts(
        "1", "", "SN1", "ATA", "MK000960GWSSD", size=960 * 10**9, size_range=size_range("960 GB", base=1000)
    )
    assert same_drive(CLAIM, drive)
    assert not same_drive(CLAIM, replace(drive, **change))


def test_a_claim_that_two_drives_answer_to_names_neither(tool: FakeTool, tree: BenchTree) -> None:
    tool.drives.append(replace(tool.drives[0], position="252:9"))
    with pytest.raises(ToolError, match="shows no drive with the WWN, serial and model of 0x5000c50000000001"):
        provision(tool, tree, VOLUME)


def test_another_level_of_the_same_run_takes_the_place_of_the_first(tool: FakeTool, tree: BenchTree) -> None:
    provision(tool, tree, VOLUME)
    provision(tool, tree, {**VOLUME, "level": "0"}, consent=())
    assert tool.done[1:] == ["delete 239", "create 252:0,252:1,252:2"]


def test_a_volume_of_somebody_is_deleted_by_consent_and_never_while_it_is_used(
    tool: FakeTool, tree: BenchTree
) -> None:
    theirs = VolumeFacts("0", level="1", state="Optl", members=("252:0", "252:1"), device="/dev/sdx", healthy=True)
    tool.volumes.append(theirs)
    tree.scsi("sdx", wwn="0x600062b200000010", serial="V")
    with pytest.raises(GuardRefusalError, match="there is no consent"):
        provision(tool, tree, VOLUME, consent=())
    tree.mount(tree.machine.nodes["/dev/sdx"].number, "/srv")
    with pytest.raises(GuardRefusalError, match="volume 0: sdx is mounted on /srv"):
        provision(tool, tree, VOLUME)
    assert tool.volumes == [theirs]


def test_policies_that_cannot_be_said_at_the_creation_are_set_after_it(tool: FakeTool, tree: BenchTree) -> None:
    volume = {**VOLUME, "disk_cache": "disable", "rebuild_rate": 60, "initialisation": "full"}
    said = provision(tool, tree, volume)
    assert tool.done[1:] == ["set disk_cache", "set rebuild_rate", "initialise 239 full"]
    assert said["progress"] == {"raid0/" + said["settings"][0]["adapter"].partition("/")[2]: {"initialise": 1.0}}
    tool.under_way = {}
    assert provision(tool, tree, volume)["changed"] is False
    assert provision(tool, tree, {**volume, "rebuild_rate": 20})["steps"][0].endswith("rebuild_rate set to 20")


def test_progress_is_read_from_the_volumes_where_the_tool_has_no_question_for_it() -> None:
    volume = VolumeFacts("1", progress={"rebuild": 32.0})
    tool = SimpleNamespace(read_volumes=lambda _runner, index: (volume,) if index == "3" else ())
    backend = ControllerVolumes("ssacli", tool, (), STATE)
    there = Existing(volume, (), (), own=False, adapter="3")
    assert backend.progress(there) == {"rebuild": 32.0}
    with pytest.raises(ToolError, match="ssacli shows no volume 9 of adapter 3 any more"):
        backend.progress(replace(there, facts=replace(volume, id="9")))


def test_a_failure_of_the_tool_says_what_was_begun(tool: FakeTool, tree: BenchTree) -> None:
    tool.broken = True
    with pytest.raises(PartialError, match="could not be made: out of order"):
        provision(tool, tree, VOLUME)
    tool.broken = False
    assert provision(tool, tree, VOLUME)["changed"]


def test_restore_deletes_what_the_run_made(tool: FakeTool, tree: BenchTree) -> None:
    provision(tool, tree, VOLUME)
    claims = {claim.id: vars(claim) for claim in claims_of_adapters(ADAPTERS)}
    volume = tool.volumes[0]
    key = next(v.facts.uuid for v in backends(tool, tree)("storcli", claims_of_adapters(ADAPTERS), ()).look())
    value = {"tool": "storcli", "drives": IDS[:3], "state": "absent"}
    for steps in (1, 0):
        record, done = restore_volume(f"raid.volume@{key}", value, claims, backends(tool, tree), check=False)
        assert (record.as_declared, len(done)) == (True, steps)
    assert volume not in tool.volumes


def test_the_tool_follows_from_what_the_kernel_sees_and_the_driver(tree: BenchTree) -> None:
    (wish,) = read_layouts([VOLUME])
    assert Chooser(ADAPTERS, tree.machine).tool(wish) == "storcli"
    other = {"raid0": {**ADAPTERS["raid0"], "driver": "somebodys"}}
    with pytest.raises(BadInputError, match=r"does not see .*; name the tool that does \(raid\.tool\)"):
        Chooser(other, tree.machine).tool(wish)
    for place, wwn in enumerate(IDS[:3]):
        tree.scsi(f"sd{'abc'[place]}", wwn=wwn, serial=f"S{place}")
    assert Chooser(ADAPTERS, tree.machine).tool(wish) == "mdadm"


def test_every_tool_that_makes_and_deletes_volumes_can_be_named(tree: BenchTree) -> None:
    made = volumes_of(STATE, "r", machine=tree.machine)
    assert isinstance(made("storcli2", (), ()), ControllerVolumes)
    with pytest.raises(BadInputError, match=r"'sg3' makes no volumes; known: .*mdadm, .*storcli2"):
        made("sg3", (), ())


@pytest.mark.parametrize("part", ["volume", "drive"])
def test_no_volume_is_made_or_deleted_on_an_adapter_that_cannot_be_read_whole(
    part: str, tool: FakeTool, tree: BenchTree
) -> None:
    """Whose drives an unread volume has is not known, and consent to those that were read is none to the others."""
    odd = VolumeFacts("5", state="Optl", unread="volume 5 is said to have 8 drives, and lists 6")
    if part == "volume":
        tool.volumes = [odd]
    else:
        tool.drives.append(DriveFacts("252:9", unread="a drive without its state"))
    with pytest.raises(ToolError, match=r"said to have 8 drives|without its state"):
        provision(tool, tree, VOLUME)
    assert tool.done == []
    backend = ControllerVolumes("storcli", tool, [], STATE, CONSENT, (), tree.machine)
    with pytest.raises(GuardRefusalError, match="volume 5 cannot be read whole"):
        backend.delete(Existing(odd, (), (), own=False))
    assert tool.done == []
