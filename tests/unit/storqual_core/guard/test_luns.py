# SPDX-License-Identifier: Apache-2.0
"""LUNs that other hosts can reach: what the guard refuses, and that nothing was written then."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from storqual_core.guard import hold
from storqual_core.guard.claims import Claim
from storqual_core.guard.rules import PURPOSES
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import GuardRefusalError, MissingToolError
from tests.support.bench_tree import SIZE, STATE, claim, designator, vpd_page
from tests.support.fabric_tree import INITIATOR, LUN, TARGET, FabricTree, fc_bench

KEYS = "  PR generation=0x2, 1 registered reservation key follows:\n    0x123abc\n"
NO_KEYS = "  PR generation=0x2, there are NO registered reservation keys\n"
HELD = "  PR generation=0x2, Reservation follows:\n    Key=0x123abc\n    scope: LU_SCOPE,  type: Write Exclusive\n"
FREE = "  PR generation=0x2, there is NO reservation held\n"
STATUS = Path(__file__).with_suffix(".status").read_text(encoding="utf-8")
HOLDER = "<< Reservation holder >>\n      scope: LU_SCOPE,  type: Write Exclusive"
STRANGER, OWN = "21 00 00 0e 1e 99 99 99", "21 00 00 0e 1e 00 00 01"
NVME = "uuid.11111111-2222-3333-4444-555555555555"


@dataclass
class Array:
    """sg3_utils against one LUN, nvme-cli against one namespace; by default nobody else uses either."""

    keys: str = NO_KEYS
    reservation: str = FREE
    status: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    resv_report: str = '{"gen":0,"rtype":0,"regctl":0,"ptpls":0,"regctls":[]}'
    rc: dict[str, tuple[int, str]] = field(default_factory=dict)
    missing: bool = False
    pages: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], **_: Any) -> Completed:
        line = shlex.join(argv)
        self.asked.append(line)
        if self.missing:
            raise MissingToolError(f"`{argv[0]}` is not installed on this machine")
        for part, (rc, stderr) in self.rc.items():
            if part in line:
                return Completed(tuple(argv), rc, "", stderr, 0.0)
        size = self.sizes.get(argv[-1], SIZE)
        last = size // 512 - 1
        answers = {
            "--read-keys": self.keys,
            "--read-reservation": self.reservation,
            "--read-full-status": self.status,
            "resv-report": self.resv_report,
            "sg_vpd": self.pages.get(argv[-1], vpd_page(0x83, designator(3, bytes.fromhex(LUN[2:])))).hex(" "),
            "sg_readcap": f"Last LBA={last} (0x{last:x}), Number of logical blocks={last + 1}\n"
            "Logical block length=512 bytes\n",
        }
        found = [text for part, text in answers.items() if part in line]
        assert found, f"nobody should ask {line}"
        return Completed(tuple(argv), 0, found[0], "", 0.0)


@pytest.fixture
def tree(tmp_path: Path) -> FabricTree:
    """A claimed empty LUN, sda."""
    return fc_bench(tmp_path)


def mine(**changes: Any) -> Claim:
    return claim(**{"wwn": LUN, "serial": "APM1", "vendor": "DGC", "model": "VRAID", **changes})


def refused(tree: FabricTree, array: Array, purpose: str = "write", **changes: Any) -> list[str]:
    """Why; and that a hold refuses the same and leaves every disk as it was."""
    words: dict[str, Any] = {"purpose": purpose, "consent": [LUN, NVME], "state_dir": STATE, "runner": array}
    refusals = [str(each) for each in hold.check([mine(**changes)], machine=tree.machine, **words)]
    if refusals:
        with pytest.raises(GuardRefusalError), hold.hold([mine(**changes)], machine=tree.machine, **words):
            pass
        assert not any((tree.root / "dev/sda").read_bytes())
    return refusals


def test_a_lun_that_nobody_else_uses_is_taken(tree: FabricTree) -> None:
    assert refused(tree, Array()) == []
    with hold.hold([mine()], purpose="write", state_dir=STATE, machine=tree.machine, runner=Array()) as held:
        assert held.stamped == (LUN,)


@pytest.mark.parametrize("purpose", [name for name in PURPOSES if name != "read"])
def test_a_reservation_of_another_host_is_refused_for_all_that_changes_anything(
    tree: FabricTree, purpose: str
) -> None:
    array = Array(keys=KEYS, reservation=HELD, status=STATUS.format(holder=HOLDER, bytes=STRANGER))
    (reason,) = refused(tree, array, purpose)
    assert "another host holds a reservation of it (Write Exclusive" in reason
    assert "0x2100000e1e999999" in reason


def test_a_lun_is_not_asked_before_it_is_only_read(tree: FabricTree) -> None:
    array = Array(keys=KEYS, reservation=HELD, status=STATUS.format(holder=HOLDER, bytes=STRANGER))
    assert refused(tree, array, "read") == []
    assert array.asked == []


UNKNOWN = "it is not known whether another host uses it"


@pytest.mark.parametrize(
    ("array", "said"),
    [
        # a cluster may take the LUN at any moment
        (
            Array(keys=KEYS, status=STATUS.format(holder="not reservation holder", bytes=STRANGER)),
            "other hosts are registered with it (key 0x123abc of 0x2100000e1e999999)",
        ),
        # this bench's own
        (Array(keys=KEYS, reservation=HELD, status=STATUS.format(holder=HOLDER, bytes=OWN)), ""),
        *(
            (Array(keys=KEYS, rc={"--read-full-status": (rc, "")}), "key 0x123abc of a host that the target does not")
            for rc in (5, 9)
        ),
        # RESERVE(6) of another host: even the question gets a conflict
        (Array(rc={"sg_persist": (24, "PR in: Reservation conflict")}), "another host holds a reservation of it"),
        (Array(rc={"--read-keys": (9, "PR in: command not supported")}), ""),
        (Array(missing=True), UNKNOWN),
        (Array(keys="odd"), UNKNOWN),
        (Array(rc={"sg_persist": (35, "transport")}), UNKNOWN),
        (Array(keys=KEYS.replace("1 registered", "2 registered")), UNKNOWN),
    ],
)
def test_who_else_uses_a_lun(tree: FabricTree, array: Array, said: str) -> None:
    reasons = refused(tree, array)
    assert any(said in reason for reason in reasons) if said else reasons == []


def test_a_lun_whose_size_changed_and_the_kernel_does_not_know_is_refused(tree: FabricTree) -> None:
    (reason,) = refused(tree, Array(sizes={"/dev/sg0": SIZE * 2}))
    assert f"it says that it has {SIZE * 2} bytes, the kernel has {SIZE}" in reason


OTHER = vpd_page(0x83, designator(3, bytes.fromhex("60060160a1b2c3d4e5f60718293a4bff")))


@pytest.mark.parametrize("device", ["/dev/sg0", "/dev/sg1"])
def test_a_path_that_leads_to_another_lun_between_check_and_write_is_refused(tree: FabricTree, device: str) -> None:
    """The kernel keeps the names that it read when it found the disk."""
    array = Mapped()
    assert refused(two_paths(tree), array) == []
    array.pages[device] = OTHER
    (reason,) = refused(tree, array)
    assert "it leads to another LUN now, which calls itself 0x60060160a1b2c3d4e5f60718293a4bff" in reason
    array.pages[device] = vpd_page(0x83, b"")
    assert "calls itself nothing" in refused(tree, array)[0]
    array.rc["sg_vpd"] = (35, "transport")
    assert any("it cannot be asked who it is" in reason for reason in refused(tree, array))


def test_a_lun_that_is_resized_between_check_and_write_is_refused(tree: FabricTree) -> None:
    array = Array()
    assert refused(tree, array) == []
    array.sizes["/dev/sg0"] = SIZE // 2
    assert any("the kernel has" in reason for reason in refused(tree, array))


def test_a_lun_that_is_resized_while_it_is_lent_to_a_program_is_not_taken_again(tree: FabricTree) -> None:
    array = Array()
    with hold.hold([mine()], purpose="write", state_dir=STATE, machine=tree.machine, runner=array) as held:
        held.release(LUN)
        array.sizes["/dev/sg0"] = SIZE * 4
        with pytest.raises(GuardRefusalError, match="the kernel has"):
            held.retake(LUN)


SECOND = "0x5006016800000001"
ROUTES = ((INITIATOR, TARGET), (INITIATOR, SECOND))


def second_path(tree: FabricTree, **changes: Any) -> FabricTree:
    tree.remote_port("rport-2:0-2", wwpn=SECOND, target=1)
    tree.lun("sdb", **{"through": "rport-2:0-2", "hctl": "2:0:1:0", **changes})
    return tree


def two_paths(tree: FabricTree, **changes: Any) -> FabricTree:
    second_path(tree, **changes)
    tree.stacked("dm-3", ["sda", "sdb"], uuid=f"mpath-3{LUN[2:]}", title="m")
    return tree


@dataclass
class Mapped(Array):
    """With a device-mapper that says that dm-3 is a multipath device."""

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        if argv[0] == "dmsetup":
            table = "0 40960 multipath 2 0 0 0 1 1 A 0 2 2 8:16 A 0 0 1 8:32 A 0 0 1\n"
            return Completed(tuple(argv), 0, table, "", 0.0)
        return super().__call__(argv, **options)


def test_two_paths_of_one_lun_are_one_drive(tree: FabricTree) -> None:
    assert refused(two_paths(tree), Mapped()) == []


def test_two_declared_paths_of_one_lun_are_one_drive_before_anything_is_over_them(tree: FabricTree) -> None:
    second_path(tree)
    assert any("2 devices of this bench answer" in reason for reason in refused(tree, Array()))
    assert refused(tree, Array(), routes=ROUTES) == []
    with hold.hold(
        [mine(routes=ROUTES)], purpose="settings", state_dir=STATE, machine=tree.machine, runner=Array()
    ) as held:
        assert (held[LUN], held.paths(LUN)) == ("/dev/sda", ["sda", "sdb"])


@pytest.mark.parametrize(
    ("routes", "changes", "said"),
    [
        # one of them is not declared
        (ROUTES[:1], {}, "2 devices of this bench answer"),
        ((ROUTES[0], (INITIATOR, "0x5006016800000002")), {}, "2 devices of this bench answer"),
        # both came by the same path: one is a copy
        (ROUTES, {"through": "rport-2:0-1", "hctl": "2:0:0:5"}, "2 devices of this bench answer"),
        (ROUTES, {"serial": "APM2"}, "its serial is 'APM2'"),
        (ROUTES, {"size": SIZE * 2}, f"its size is {SIZE * 2} bytes"),
    ],
)
def test_disks_of_one_name_that_are_not_the_declared_paths_of_one_lun_are_refused(
    tree: FabricTree, routes: tuple[tuple[str, ...], ...], changes: dict[str, Any], said: str
) -> None:
    array = Array(sizes={"/dev/sg1": changes.get("size", SIZE)})
    reasons = refused(second_path(tree, **changes), array, routes=routes)
    assert any(said in reason for reason in reasons), reasons


def test_two_luns_of_one_target_with_one_name_are_refused(tree: FabricTree) -> None:
    """Multipath takes them for two paths of one, and would write to both."""
    two_paths(tree, through="rport-2:0-1", hctl="2:0:0:5")
    reasons = refused(tree, Mapped())
    assert any("LUN 0 (sda) and LUN 5 (sdb) of one target have the same name" in reason for reason in reasons)


def test_a_path_whose_lun_has_another_size_is_refused(tree: FabricTree) -> None:
    reasons = refused(two_paths(tree), Mapped(sizes={"/dev/sg1": SIZE * 2}))
    assert any(f"sdb: it says that it has {SIZE * 2} bytes" in reason for reason in reasons)


def test_a_path_that_leads_to_a_lun_of_other_names_is_refused(tree: FabricTree) -> None:
    two_paths(tree)
    names = designator(3, bytes.fromhex(LUN[2:])) + designator(1, b"DGC     COPY-OF-1")
    device = tree.machine.real("/sys/block/sdb/device")
    tree.write(f"{device}/vpd_pg83", vpd_page(0x83, names))
    reasons = refused(tree, Mapped())
    assert any("sda and sdb do not lead to one LUN" in reason for reason in reasons)


def test_a_standby_path_need_not_tell_its_size(tree: FabricTree) -> None:
    array = Mapped(rc={"sg_readcap --long /dev/sg1": (12, "standby")})
    assert refused(two_paths(tree), array) == []
    array.rc["sg_readcap --long /dev/sg0"] = (12, "standby")
    assert any("its size cannot be asked" in reason for reason in refused(tree, array))


def test_a_drive_that_no_fabric_is_in_front_of_is_not_asked(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.adapter().scsi("sda")
    array = Array()
    assert hold.check([claim()], purpose="write", state_dir=STATE, machine=tree.machine, runner=array) == []
    assert array.asked == []


REPORT = (
    '{{"gen":3,"rtype":{kind},"regctl":1,"ptpls":0,"regctls":'
    '[{{"cntlid":2,"rcsts":{held},"rkey":18,"hostid":"{host}"}}]}}'
)
HOST = "7a1b0000000000000000000000000001"
# release 3 of nvme-cli
RENAMED = REPORT.replace("regctls", "registrantext").replace("regctl", "regstrnt")


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ('{"gen":0,"rtype":0,"regctl":0,"ptpls":0,"regctls":[]}', ""),
        (REPORT.format(kind=1, held=1, host=HOST), ""),
        (REPORT.format(kind=1, held=1, host="ff" * 16), "another host holds a reservation of it (Write Exclusive"),
        (RENAMED.format(kind=1, held=1, host=HOST), ""),
        (RENAMED.format(kind=0, held=0, host="ff" * 16), "other hosts are registered with it"),
        (REPORT.format(kind=0, held=0, host="ff" * 16), "other hosts are registered with it"),
        (REPORT.format(kind=0, held=0, host="ff" * 16).replace('"regctl":1', '"regctl":2'), "it is not known"),
        ("[]", "it is not known"),
        # a target that knows no reservations
        ((1, "NVMe status: Invalid Command Opcode: A reserved coded value or an unsupported value (0x2001)"), ""),
    ],
)
def test_a_namespace_is_asked_for_registered_hosts(tmp_path: Path, report: str | tuple[int, str], said: str) -> None:
    tree = FabricTree(tmp_path)
    tree.nvme_fabric(("tcp", "traddr=192.0.2.1,trsvcid=4420", "optimized"))
    tree.write("/sys/class/nvme/nvme0/hostid", "7a1b0000-0000-0000-0000-000000000001\n")
    space = {"wwn": NVME, "serial": "NV1", "vendor": "", "model": "Linux"}
    array = Array(resv_report=report) if isinstance(report, str) else Array(rc={"resv-report": report})
    found = hold.check([claim(**space)], purpose="write", state_dir=STATE, machine=tree.machine, runner=array)
    assert [said in str(reason) for reason in found] == ([True] if said else [])
