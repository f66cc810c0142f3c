# SPDX-License-Identifier: Apache-2.0
"""Every step that erases or takes away, on every shape of a shared device: an unclaimed sibling is refused.

A shape is an aimed drive and a sibling that the step reaches. In each state the sibling must be named by the refusal,
whatever it carries, and nothing may be written; where both are claimed, unused and consented to, both are held.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.data.faults import WAYS
from storqual_core.facts.preflight import Request, examine
from storqual_core.guard import hold
from storqual_core.guard.claims import Claim
from storqual_core.guard.reach import STEPS as STEP_NAMES
from storqual_core.host.reach import SCOPES, reached, refuse_when_used
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import GuardRefusalError
from storqual_core.provision.firmware.subject import Access, Adapters, Drives
from storqual_core.tools import nvme
from storqual_core.turns.subject import refuse_beyond
from tests.support.bad_states import written
from tests.support.bench_tree import SIZE, STATE, BenchTree, claim
from tests.support.paths import Paths, two_paths

pytestmark = pytest.mark.slow

A, B = "0x5000c50000000001", "0x5000c50000000002"
NS, OTHER_NS = "eui.0011223344556601", "eui.0011223344556602"
PCI, SECOND, PORT = "0000:3b:00.0", "0000:3b:00.1", "0000:00:1c.0"


def asked(tree: BenchTree, fna: int | None = 0, **words: Any) -> dict[str, Any]:
    return {"state_dir": STATE, "machine": tree.machine, "runner": Tools(tree, fna), **words}


class Tools(Paths):
    """Programs of the bench: nvme tells the format attributes (None: it is not installed), dmsetup its maps."""

    def __init__(self, tree: BenchTree, fna: int | None = 0) -> None:
        super().__init__(tree)
        self.fna = fna

    def __call__(self, argv: Sequence[str], **more: object) -> Completed:
        if argv[0] == "nvme":
            told = "" if self.fna is None else json.dumps({"vid": 1, "fr": "7.2", "fna": self.fna})
            return Completed(tuple(argv), int(not told), told, "", 0)
        return super().__call__(argv, **more)


def drive(wwn: str) -> Claim:
    return claim(wwn=wwn, serial=f"S{wwn[-1]}")


def space(wwid: str) -> Claim:
    return claim(id=wwid, wwn=wwid, serial="NVME1", vendor="", model="QEMU NVMe Ctrl")


def namespaces(tree: BenchTree) -> BenchTree:
    return tree.nvme("nvme0n1", wwid=NS).nvme("nvme0n2", wwid=OTHER_NS)


def controllers(tree: BenchTree, *, named: bool = True) -> BenchTree:
    """Two controllers of one subsystem, each with a namespace of its own; the kernel lists one without a name."""
    tree.nvme("nvme0n1", wwid=NS).nvme("nvme1n1", wwid=OTHER_NS, pci="0000:00:0a.0")
    for name, pci in (("nvme0", "0000:00:09.0"), ("nvme1", "0000:00:0a.0")):
        place = f"/sys/devices/pci0000:00/{pci}/nvme/{name}"
        if named:
            tree.write(f"{place}/subsysnqn", "nqn.2019-08.org.qemu:one\n")
        else:
            tree.link(f"/sys/class/nvme-subsystem/nvme-subsys0/{name}", place)
    return tree


def subsystem(tree: BenchTree) -> BenchTree:
    return controllers(tree, named=False)


def luns(tree: BenchTree) -> BenchTree:
    tree.adapter().scsi("sda", hctl="2:0:4:0", wwn=A, serial="S1")
    return tree.scsi("sdb", hctl="2:0:4:1", wwn=B, serial="S2")


def actuators(tree: BenchTree) -> BenchTree:
    """Two LUNs of one device that two adapters show at targets of their own: both tell the device's name."""
    name = "0x5000c500000000f0"
    tree.adapter().scsi("sda", hctl="2:0:4:0", wwn=A, serial="S1", device_name=name)
    tree.adapter("0000:00:06.0", driver="mptsas")
    return tree.scsi("sdb", pci="0000:00:06.0", hctl="3:0:7:0", wwn=B, serial="S2", device_name=name)


def paths(tree: BenchTree) -> BenchTree:
    """A drive of two paths, and a LUN that only the second path's target shows."""
    tree.adapter().adapter("0000:00:06.0", driver="mptsas")
    tree.scsi("sda", hctl="2:0:4:0", wwn=A, serial="S1")
    tree.scsi("sdc", pci="0000:00:06.0", hctl="3:0:7:0", wwn=A, serial="S1")
    two_paths(tree, "sda", "sdc")
    return tree.scsi("sdb", pci="0000:00:06.0", hctl="3:0:7:1", wwn=B, serial="S2")


def functions(tree: BenchTree) -> BenchTree:
    """A card with two functions in a slot, a drive behind each."""
    place = f"/sys/devices/pci0000:00/{PORT}"
    tree.write(f"{place}/class", "0x060400\n")
    tree.link(f"/sys/bus/pci/devices/{PORT}", place)
    for name, pci, wwn in (("sda", PCI, A), ("sdb", SECOND, B)):
        tree.write(f"{place}/{pci}/class", "0x010700\n")
        tree.link(f"/sys/bus/pci/devices/{pci}", f"{place}/{pci}")
        tree.scsi(name, pci=f"{PORT}/{pci}", hctl=f"{2 + int(pci[-1])}:0:0:0", wwn=wwn, serial=f"S{wwn[-1]}")
    tree.write("/sys/bus/pci/slots/3/address", "0000:3b:00\n")
    return tree


def switch(tree: BenchTree) -> BenchTree:
    """A card in a slot whose switch has two adapters below it, on buses of their own."""
    card = f"/sys/devices/pci0000:00/{PORT}/0000:3a:00.0"
    bridges = {PORT: f"/sys/devices/pci0000:00/{PORT}", "0000:3a:00.0": card}
    for number, (name, wwn) in enumerate((("sda", A), ("sdb", B))):
        bridge, pci = f"0000:3a:0{number + 1}.0", f"0000:3{'bc'[number]}:00.0"
        bridges[bridge] = f"{card}/{bridge}"
        tree.write(f"{card}/{bridge}/{pci}/class", "0x010700\n")
        tree.link(f"/sys/bus/pci/devices/{pci}", f"{card}/{bridge}/{pci}")
        above = f"pci0000:00/{PORT}/0000:3a:00.0/{bridge}/{pci}"
        tree.scsi(name, above=above, hctl=f"{2 + number}:0:0:0", wwn=wwn, serial=f"S{wwn[-1]}")
    for pci, place in bridges.items():
        tree.write(f"{place}/class", "0x060400\n")
        tree.link(f"/sys/bus/pci/devices/{pci}", place)
    tree.write("/sys/bus/pci/slots/3/address", "0000:3a:00\n")
    return tree


@dataclass(frozen=True)
class Shape:
    """How the bench is built, what is claimed and aimed at, and the sibling that is reached by it."""

    build: Callable[[BenchTree], BenchTree]
    aimed: Claim
    sibling: Claim
    node: str
    adapter: str = "0000:00:05.0"


SCSI = {"aimed": drive(A), "sibling": drive(B), "node": "sdb"}
SHAPES: dict[str, Shape] = {
    "namespaces of a controller": Shape(namespaces, space(NS), space(OTHER_NS), "nvme0n2", "0000:00:09.0"),
    "controllers of a subsystem": Shape(controllers, space(NS), space(OTHER_NS), "nvme1n1", "0000:00:09.0"),
    "controllers that sysfs lists": Shape(subsystem, space(NS), space(OTHER_NS), "nvme1n1", "0000:00:09.0"),
    "LUNs of a target": Shape(luns, **SCSI),
    "LUNs of a device": Shape(actuators, **SCSI),
    "LUN behind another path": Shape(paths, **SCSI),
    "functions of a card": Shape(functions, **SCSI, adapter=PCI),
    "adapters below a switch": Shape(switch, **SCSI, adapter="0000:3b:00.0"),
}
DEVICES = [name for name in SHAPES if name not in ("functions of a card", "adapters below a switch")]
# without an entry for the sibling no step may go on
STATES: dict[str, Callable[[BenchTree, str, str], object]] = {
    "simply there": lambda *_: None,
    "carries /": lambda tree, _name, number: tree.mount(number, "/"),
    "carries /srv": lambda tree, _name, number: tree.mount(number, "/srv"),
    "swap": lambda tree, name, _number: tree.swap(f"/dev/{name}"),
    "md member": lambda tree, name, _number: tree.stacked("md5", [name]),
    "LVM member": lambda tree, name, _number: tree.stacked("dm-3", [name], uuid="LVM-x", title="vg-data"),
    "data": lambda tree, name, _number: tree.fill(name, 0, b"somebody's"),
    "open": lambda tree, name, _number: tree.opened(f"/dev/{name}"),
}


def told(act: Callable[[], Any]) -> str:
    """What a refusal says; nothing when there is none."""
    try:
        act()
    except GuardRefusalError as problem:
        return str(problem)
    return ""


def names(claims: Sequence[Claim]) -> list[str]:
    return [one.id[-12:] for one in claims]


def by_guard(purpose: str) -> Callable[..., str]:
    """The guard itself, as a batch asks it for a format."""

    def ask(tree: BenchTree, shape: Shape, beside: Sequence[Claim], tools: Tools) -> str:
        options = {"purpose": purpose, "state_dir": STATE, "machine": tree.machine, "runner": tools}
        consent = names([shape.aimed, *beside])
        said = hold.check([shape.aimed], beside=beside, consent=consent, **options)  # type: ignore[arg-type]

        def take() -> None:
            with hold.hold([shape.aimed], beside=beside, consent=consent, **options) as held:  # type: ignore[arg-type]
                assert set(held) == {shape.aimed.id, *(one.id for one in beside)}

        refused = told(take)
        assert bool(said) == bool(refused)
        return refused

    return ask


def by_flash(*, write: bool) -> Callable[..., str]:
    """The module that flashes drives, before and while it writes."""

    def ask(tree: BenchTree, shape: Shape, beside: Sequence[Claim], tools: Tools) -> str:
        access = Access(STATE, "r", tuple(names([shape.aimed, *beside])), tools, tree.machine)

        def take() -> None:
            with Drives(access, (shape.aimed,), tuple(beside)).hold(nvme, write=write):
                pass

        return told(take)

    return ask


def by_fault(scope: str) -> Callable[..., str]:
    def ask(tree: BenchTree, shape: Shape, beside: Sequence[Claim], tools: Tools) -> str:
        words = {"drive": shape.aimed.id, "adapter": shape.adapter, "scope": scope, "state_dir": STATE}
        return told(lambda: refuse_beyond(tree.machine, [shape.aimed, *beside], **words, runner=tools))

    return ask


def declared(shape: Shape, each: Claim) -> dict[str, Any]:
    fields = {name: getattr(each, name) for name in ("wwn", "serial", "vendor", "model", "size")}
    return {"pci": shape.adapter if each == shape.aimed else SECOND, "drives": [{**fields, "claim": True}]}


def by_adapter_flash(tree: BenchTree, shape: Shape, beside: Sequence[Claim], tools: Tools) -> str:
    access = Access(STATE, "r", tuple(names([shape.aimed, *beside])), tools, tree.machine)
    others = {f"other{number}": declared(shape, each) for number, each in enumerate(beside)}

    class Tool:
        @staticmethod
        def read_facts(_runner: object) -> Any:
            return type("Facts", (), {"adapters": ()})

    def take() -> None:
        with Adapters(access, {"hba": declared(shape, shape.aimed)}, others).hold(Tool, write=True):  # type: ignore[arg-type]
            pass

    return told(take)


def by_redfish(tree: BenchTree, shape: Shape, beside: Sequence[Claim], tools: Tools) -> str:
    """What the role asks before the bench's management controller flashes an adapter."""
    others = {f"other{number}": declared(shape, each) for number, each in enumerate(beside)}
    asked = Request({"hba": declared(shape, shape.aimed)}, purpose="firmware", state_dir=STATE, beside=others)
    asked = replace(asked, consent=names([shape.aimed, *beside]))
    return "\n".join(examine(asked, machine=tree.machine, runner=tools).refusals)


STEPS: dict[str, tuple[Callable[..., str], list[str]]] = {
    "format": (by_guard("format"), DEVICES),
    "firmware": (by_guard("firmware"), DEVICES),
    "reset": (by_guard("reset"), DEVICES),
    "flash of a drive, planned": (by_flash(write=False), DEVICES),
    "flash of a drive": (by_flash(write=True), DEVICES),
    "power of a bay": (by_fault(WAYS["bay_power_off"][1].scope), DEVICES),
    "link of a drive": (by_fault(WAYS["sas_phy_off"][1].scope), ["LUNs of a target"]),
    "reset of the target": (by_fault("target"), ["LUNs of a target"]),
    "reset of the bus": (by_fault("bus"), ["LUNs of a target"]),
    "reset of the adapter": (by_fault("adapter"), ["LUNs of a target", "functions of a card"]),
    "reset of an NVMe controller": (by_fault("adapter"), ["namespaces of a controller"]),
    "driver let go": (by_fault(WAYS["driver_rebind"][1].scope), ["LUNs of a target", "functions of a card"]),
    "adapter removed": (by_fault(WAYS["pci_remove"][1].scope), ["namespaces of a controller", "functions of a card"]),
    "link reset": (by_fault("link"), ["functions of a card"]),
    "power of a slot": (
        by_fault(WAYS["slot_power_off"][1].scope),
        ["functions of a card", "adapters below a switch"],
    ),
    "flash of an adapter": (by_adapter_flash, ["functions of a card"]),
    "flash by the management controller": (by_redfish, ["functions of a card"]),
}
CASES = [(step, shape) for step, (_, shapes) in STEPS.items() for shape in shapes]
LOOKS_AT_CONTENTS = (
    *("format", "firmware", "flash of a drive", "flash of an adapter", "flash by the management controller"),
)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("step", "shape"), CASES)
def test_a_sibling_is_refused_unclaimed_whatever_it_carries_and_claimed_when_it_is_used(
    tmp_path: Path, step: str, shape: str, state: str
) -> None:
    made = SHAPES[shape]
    tree = made.build(BenchTree(tmp_path))
    STATES[state](tree, made.node, tree.machine.text(f"/sys/class/block/{made.node}/dev"))
    written(tree)
    # the controller says that it erases all namespaces
    refused = STEPS[step][0](tree, made, (), Tools(tree, 3))
    assert any(made.sibling.id in line and "not claimed" in line for line in refused.splitlines()), refused
    assert written(tree) == []
    refused = STEPS[step][0](tree, made, (made.sibling,), Tools(tree, 3))
    free = state == "simply there" or (state == "data" and step not in LOOKS_AT_CONTENTS)
    assert (refused == "") if free else (made.sibling.id in refused)
    assert free or written(tree) == []


@pytest.mark.parametrize("purpose", ["firmware", "format"])
@pytest.mark.parametrize("shape", DEVICES)
def test_a_sibling_that_the_consent_does_not_name_is_refused(tmp_path: Path, purpose: str, shape: str) -> None:
    made = SHAPES[shape]
    tree = made.build(BenchTree(tmp_path))
    words = asked(tree, 3, beside=[made.sibling], purpose=purpose, consent=names([made.aimed]))
    said = hold.check([made.aimed], **words)
    assert [made.sibling.id in str(one) and "consent" in str(one) for one in said] == [True]


@pytest.mark.parametrize(("fna", "alone"), [(0, True), (4, True), (1, False), (2, False), (3, False), (None, False)])
def test_a_format_is_of_one_namespace_only_where_the_controller_says_so(
    tmp_path: Path, fna: int | None, *, alone: bool
) -> None:
    """Bit 0: a format is of all. Bit 1: an erasure is. What the controller does not tell is the worse of both."""
    made = SHAPES["namespaces of a controller"]
    tree = namespaces(BenchTree(tmp_path)).mount("259:1", "/srv")
    for purpose, allowed in (("format", alone), ("firmware", False), ("reset", False)):
        refused = by_guard(purpose)(tree, made, (), Tools(tree, fna))
        assert (refused == "") == allowed, (purpose, refused)
        if not allowed:
            assert "drive eui.0011223344556602 (nvme0n2): it is not claimed" in refused
            assert "is mounted on /srv" in refused
            assert f"{STEP_NAMES[purpose]} would reach it" in refused


def test_a_namespace_that_appears_while_the_drives_are_taken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = BenchTree(tmp_path).nvme("nvme0n1", wwid=NS)
    opened = tree.machine.opened

    def attach(descriptor: int) -> str:
        if not tree.machine.exists("/sys/block/nvme0n2"):
            tree.nvme("nvme0n2", wwid=OTHER_NS)
        return opened(descriptor)

    monkeypatch.setattr(tree.machine, "opened", attach)
    with (
        pytest.raises(GuardRefusalError, match=f"{OTHER_NS} .* is not claimed"),
        hold.hold([space(NS)], **asked(tree, purpose="firmware", consent=names([space(NS)]))),
    ):
        pytest.fail("given out")


@pytest.mark.parametrize("purpose", ["read", "settings", "write"])
def test_what_ends_at_the_drive_asks_nothing_of_its_siblings(tmp_path: Path, purpose: str) -> None:
    made = SHAPES["namespaces of a controller"]
    tree = namespaces(BenchTree(tmp_path)).mount("259:1", "/srv")
    assert hold.check([made.aimed], purpose=purpose, state_dir=STATE, machine=tree.machine, runner=Tools(tree)) == []


def test_native_multipath_hides_no_controller(tmp_path: Path) -> None:
    """The namespaces hang below their subsystem; each function that leads to a controller of it leads to them."""
    tree = BenchTree(tmp_path).nvme("nvme0n1", wwid=NS)
    place = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    for name, pci in (("nvme0", "0000:00:09.0"), ("nvme1", "0000:00:0a.0")):
        controller = f"/sys/devices/pci0000:00/{pci}/nvme/{name}"
        tree.write(f"{controller}/serial", "NVME1\n")
        tree.link(f"{place}/{name}", controller)
    device = Path(tree.machine.path("/sys/devices/pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1/device"))
    device.unlink()
    tree.link(str(device).removeprefix(tree.machine.root), place)
    tree.adapter("0000:00:0a.0", driver="nvme").scsi("sda", pci="0000:00:0a.0", hctl="4:0:0:0", wwn=A, serial="S1")
    drives = read_drives(tree.machine)
    (other,) = (one for one in drives if one.name == "sda")
    assert {each.drive.name for each in reached(tree.machine, drives, other, "adapter")} == {"sda", "nvme0n1"}


@pytest.mark.parametrize("state", ["carries /", "carries /srv", "swap", "md member", "LVM member", "open"])
@pytest.mark.parametrize("scope", ["adapter", "driver"])
def test_a_driver_that_starts_again_takes_no_used_drive_away(tmp_path: Path, scope: str, state: str) -> None:
    """NVRAM is read when the driver of a card starts, options and builds when its module is loaded again."""
    tree = functions(BenchTree(tmp_path))
    for pci in (PCI, SECOND):
        tree.link(f"/sys/devices/pci0000:00/{PORT}/{pci}/driver", "/sys/bus/pci/drivers/mpt3sas")
    tree.link("/sys/bus/pci/drivers/mpt3sas/module", "/sys/module/mpt3sas")
    assert len(refuse_when_used(tree.machine, [PCI], STATE, "it starts again", scope=scope)) == 2
    STATES[state](tree, "sdb", tree.machine.text("/sys/class/block/sdb/dev"))
    with pytest.raises(GuardRefusalError, match=f"drive {B}"):
        refuse_when_used(tree.machine, [PCI], STATE, "it starts again", scope=scope)


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
SYMMETRIC = [scope for scope in SCOPES if scope not in ("path", "drive")]


@st.composite
def benches(draw: st.DrawFn) -> list[tuple[str, str, int, int]]:
    """Up to six drives: kind, PCI function, target or controller, and LUN or namespace."""
    pci = st.sampled_from(["0000:3b:00.0", "0000:3b:00.1", "0000:3c:00.0"])
    kinds = st.sampled_from(["scsi", "nvme"])
    return draw(
        st.lists(st.tuples(kinds, pci, st.integers(0, 1), st.integers(0, 2)), min_size=2, max_size=6, unique=True)
    )


def build(tree: BenchTree, bench: Sequence[tuple[str, str, int, int]]) -> dict[str, Claim]:
    """The bench with a claim for each of its drives, by kernel name."""
    found = {}
    for number, (kind, pci, target, unit) in enumerate(bench):
        function = ["0000:3b:00.0", "0000:3b:00.1", "0000:3c:00.0"].index(pci)
        if kind == "scsi":
            name, wwn = f"sd{'abcdef'[number]}", f"0x5000c5000000010{number}"
            tree.scsi(name, pci=pci, hctl=f"{function}:0:{target}:{unit}", wwn=wwn, serial=f"S{number}")
            found[name] = claim(wwn=wwn, serial=f"S{number}")
        else:
            name, wwid = f"nvme{2 * function + target}n{unit + 1}", f"eui.00112233445577{number:02}"
            tree.nvme(name, pci=pci, wwid=wwid)
            found[name] = space(wwid)
        link = f"/sys/bus/pci/devices/{pci}"
        if not tree.machine.exists(link):
            tree.link(link, f"/sys/devices/pci0000:00/{pci}")
    return found


@settings(max_examples=40, deadline=None)
@given(benches(), st.data())
def test_reach_is_symmetric_and_an_unclaimed_drive_that_is_reached_is_refused(
    bench: list[tuple[str, str, int, int]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        tree = BenchTree(Path(folder))
        claims = build(tree, bench)
        drives = read_drives(tree.machine)
        scope = data.draw(st.sampled_from(SYMMETRIC))
        # targets and buses are of SCSI; a fault of one that is aimed at anything else counts as one of the adapter
        drives = [one for one in drives if one.hctl or scope not in ("target", "bus")]
        near = {one.name: {each.drive.name for each in reached(tree.machine, drives, one, scope)} for one in drives}
        for name, others in near.items():
            assert name in others
            assert all(name in near[other] for other in others), (scope, near)
        drives = read_drives(tree.machine)
        aimed = data.draw(st.sampled_from(sorted(claims)))
        unclaimed = data.draw(st.sets(st.sampled_from(sorted(set(claims) - {aimed}))))
        beside = [one for name, one in claims.items() if name != aimed and name not in unclaimed]
        purpose = data.draw(st.sampled_from(["firmware", "format", "reset"]))
        consent = [one.id for one in claims.values()]
        said = hold.check([claims[aimed]], **asked(tree, None, beside=beside, purpose=purpose, consent=consent))
        hit = {each.drive.name for each in reached(tree.machine, drives, _named(drives, aimed), "device")} & unclaimed
        assert {name for name in claims if any(f"{claims[name].id} (" in str(one) for one in said)} == hit


def _named(drives: Sequence[Any], name: str) -> Any:
    return next(one for one in drives if one.name == name)


def test_the_size_of_a_fixture_is_that_of_its_claims() -> None:
    """Otherwise every refusal above might be about a size."""
    assert claim().size == SIZE
