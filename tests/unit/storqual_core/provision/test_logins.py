# SPDX-License-Identifier: Apache-2.0
"""Sessions and controllers made anew with what a drop declares; what cannot be is refused before anything goes."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import GuardRefusalError, ToolError
from storqual_core.kit.results import PartialError
from storqual_core.provision.boot import System
from storqual_core.provision.drives import DriveRequest, provision_drives, provision_sessions
from storqual_core.provision.engine import apply, plan
from storqual_core.provision.logins import Sessions
from storqual_core.provision.restore import Tools, restore
from storqual_core.tools.iscsiadm import PARAMETERS
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import LUN, FabricTree

CONNECTION = "/sys/devices/platform/host3/session1/connection1:0/iscsi_connection/connection1:0"
HOST = "/sys/devices/platform/host3/scsi_host/host3"
SHOWN = {
    "cmds_max": f"{HOST}/can_queue",
    "header_digest": f"{CONNECTION}/header_digest",
    "data_digest": f"{CONNECTION}/data_digest",
    "noop_out_interval": f"{CONNECTION}/recv_tmo",
    "noop_out_timeout": f"{CONNECTION}/ping_tmo",
}
NAMES = {node: name for name, node in PARAMETERS.items()}
TARGET = "iqn.2003-01.org.example:t1"
NVME = "uuid.11111111-2222-3333-4444-555555555555"
SUBSYSTEM = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/"
RECOVERY = "/sys/devices/platform/host3/session1/iscsi_session/session1/recovery_tmo"
PORTAL, SECOND = "192.0.2.1:3260", "192.0.2.2:3260"


def _numbered(place: str, number: int) -> str:
    """A file of the first session (behind host3), as the session with this number has it."""
    return place.replace("host3", f"host{number + 2}").replace("ion1", f"ion{number}")


class Bench:
    """One iSCSI LUN and one NVMe namespace; open-iscsi and the kernel make their sessions as they were asked."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = FabricTree(root / "bench").session()
        self.tree.lun("sdb", through="session1", hctl="3:0:0:0")
        self.tree.nvme_fabric(("tcp", "traddr=192.0.2.7,trsvcid=4420,src_addr=192.0.2.9", "optimized"))
        self.place = "/sys/devices/virtual/nvme-fabrics/ctl/nvme0"
        self.tree.text_files(self.place, {"sqsize": "127", "kato": "5", "subsysnqn": "nqn.2014-08.org.example:s1"})
        # before 6.12 a controller without TLS has this file too, and it is empty
        self.tree.text_files(self.place, {"nvme0c0n1/queue/stable_writes": "0", "tls_key": ""})
        self.tree.write("/proc/cpuinfo", "processor : 0\nprocessor : 1\n")
        self.record = {"cmds_max": "128", "header_digest": "None", "data_digest": "None"}
        self.record.update(noop_out_interval="5", noop_out_timeout="5", nr_sessions="1")
        self.records = {PORTAL: self.record}
        self.seen: list[str] = []
        self.refused, self.held = "", False
        self.carried, self.command = 3169, 72
        self.state = str(root / "state")
        self._log_in(PORTAL)
        self._write = Path.write_text
        # a bound method would not get the path
        monkeypatch.setattr(Path, "write_text", lambda *given, **words: self._kernel(*given, **words))  # noqa: PLW0108

    def second_portal(self) -> None:
        self.records[SECOND] = dict(self.record)
        self.tree.session(2, host=4, address=SECOND.partition(":")[0])
        self.tree.lun("sdc", through="session2", hctl="4:0:0:0")
        self._log_in(SECOND)

    def _log_in(self, portal: str) -> None:
        number = [*self.records].index(portal) + 1
        for name, place in SHOWN.items():
            kept = self.records[portal][name]
            shown = int(kept) - 15 if name == "cmds_max" else {"None": 0, "CRC32C": 1}.get(kept, kept)
            self.tree.write(_numbered(place, number), f"{shown}\n")
        self.tree.write(_numbered(RECOVERY, number), "120\n")

    def _kernel(self, path: Path, text: str, **words: Any) -> int:
        if path.name != "nvme-fabrics":
            return self._write(path, text, **words)
        self.seen.append(text)
        asked = dict((*word.split("=", 1), "")[:2] for word in text.split(","))
        machine = self.tree.machine
        ways = [f"/sys/class/nvme/{name}" for name in machine.names("/sys/class/nvme")]
        (way,) = (each for each in ways if f"={asked['traddr']}," in machine.text(f"{each}/address"))
        place = machine.real(way)
        if [each for each in ways if machine.text(f"{each}/delete_controller")] != [way]:
            raise OSError(114, "Operation already in progress")
        if self.refused in (f"{at}{word}" for word in text.split(",") for at in ("", f"{asked['traddr']} ")):
            raise OSError(22, "Invalid argument")
        shown = {"queue_count": int(asked["nr_io_queues"]) + 1, "sqsize": int(asked["queue_size"]) - 1}
        texts = {"kato": asked["keep_alive_tmo"], **{name: str(number) for name, number in shown.items()}}
        (space,) = (name for name in machine.names(place) if name.startswith("nvme"))
        self.tree.text_files(place, {**texts, f"{space}/queue/stable_writes": str(int("data_digest" in asked))})
        self.command = 76 if "hdr_digest" in asked else 72
        # a controller that is connected anew has another number
        self.tree.write(f"{place}/delete_controller", "")
        for folder in ("/sys/class/nvme/", SUBSYSTEM):
            link = self.tree.root / f"{folder}{way.rpartition('/')[2]}".lstrip("/")
            link.rename(f"{link}0")
        return len(text)

    def second_controller(self) -> None:
        second = self.place.replace("nvme0", "nvme1")
        shutil.copytree(self.tree.root / self.place.lstrip("/"), self.tree.root / second.lstrip("/"))
        self.tree.write(f"{second}/address", "traddr=192.0.2.8,trsvcid=4420\n")
        for folder in ("/sys/class/nvme/", SUBSYSTEM):
            self.tree.link(f"{folder}nvme1", second)

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        words = list(argv)
        # a drive that we hold is in use, and its session may not go
        assert not self.held
        if words[0] == "ss":
            return Completed(tuple(argv), 0, f"0 0 192.0.2.9:7 {words[-1]}\n\t bytes_acked:{self.carried}\n", "", 0.0)
        if words[0] == "nvme":
            self.carried += self.command
            return Completed(tuple(argv), 0, '{"fr": "1.0", "oacs": 0, "frmw": 2}', "", 0.0)
        assert words[:6] == ["iscsiadm", "-m", "node", "-T", TARGET, "-p"]
        portal, record = words[6], self.records[words[6]]
        self.seen.append(" ".join(words[7:]))
        if words[7:9] == ["-o", "update"]:
            record[NAMES[words[10]]] = words[12]
        elif words[7:] == ["--login"]:
            if {f"{at}{name}={value}" for name, value in record.items() for at in ("", f"{portal} ")} & {
                self.refused
            }:
                if record["nr_sessions"] != "1":
                    # of several, the first is there already
                    self._log_in(portal)
                return Completed(tuple(argv), 24, "", "login rejected: digests do not fit", 0.0)
            self._log_in(portal)
        return Completed(tuple(argv), 0, "", "", 0.0)

    @contextmanager
    def access(self, claims: Sequence[Any], _state: str, _run: str) -> Iterator[dict[str, Any]]:
        self.seen.append(f"guard: {', '.join(claim.id for claim in claims)}")
        self.held = True
        yield {claim.id: DriveTarget(claim.id, "sdb", "/dev/sdb") for claim in claims}
        self.held = False

    def provision(self, drive: str = LUN, *, check: bool = False, **values: object) -> Any:
        claims = [{"wwn": LUN, "serial": "APM1"}, {"wwn": NVME, "serial": "NV1"}]
        listed = [{**each, "model": "x", "size": 1 << 30, "claim": True} for each in claims]
        request = DriveRequest({drive: values}, {"a": {"drives": listed}}, self.state, "r1", check=check)
        return provision_sessions(request, self, self.tree.machine, self.access)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_a_session_is_made_anew_and_shown_by_the_kernel(bench: Bench) -> None:
    declared = {"cmds_max": 64, "data_digest": "CRC32C", "noop_out_interval": 0, "header_digest": "None"}
    result = bench.provision(**declared)
    assert [entry["read_back"] for entry in result["settings"]] == list(declared.values())
    assert all(entry["proven"] for entry in result["settings"])
    assert bench.seen[1:-1] == [
        "",
        *(f"-o update -n {PARAMETERS[name]} -v {value}" for name, value in declared.items()),
        "--logout",
        "--login",
    ]
    # asked before, and when the drive is back
    assert [bench.seen[0], bench.seen[-1]] == [f"guard: {LUN}"] * 2
    bench.seen.clear()
    assert bench.provision(**declared)["changed"] is False
    assert not [line for line in bench.seen if "--log" in line]


def test_a_controller_is_made_anew_with_all_that_it_was_connected_with(bench: Bench) -> None:
    bench.provision(NVME, nr_io_queues=1, queue_size=64, keep_alive_tmo=9)
    given = "transport=tcp nqn=nqn.2014-08.org.example:s1 hostnqn=nqn.2014-08.org.example:bench ctrl_loss_tmo=600"
    address = "reconnect_delay=10 traddr=192.0.2.7 trsvcid=4420"
    asked = "nr_io_queues=1 queue_size=64 keep_alive_tmo=9"
    assert bench.seen[1].split(",") == f"{given} {address} {asked}".split()


def test_digests_of_a_controller_are_set_counted_repeated_and_restored(bench: Bench) -> None:
    result = bench.provision(NVME, header_digest="CRC32C", data_digest="CRC32C")
    assert [(entry["read_back"], entry["proven"]) for entry in result["settings"]] == [("CRC32C", True)] * 2
    assert result["settings"][0]["proof"].endswith("takes 76 bytes")
    bench.provision(NVME, keep_alive_tmo=9)
    restore(bench.state, Tools(bench, System(bench), access=bench.access, machine=bench.tree.machine), check=False)
    lines = [line for line in bench.seen if line.startswith("transport")]
    flags = [sorted({"hdr_digest", "data_digest"}.intersection(line.split(","))) for line in lines]
    assert flags == [["data_digest", "hdr_digest"], ["data_digest", "hdr_digest"], []]


@pytest.mark.parametrize("carried", [0, 72 + 76, 72 * 19])
def test_a_header_digest_that_cannot_be_told_is_not_set(bench: Bench, carried: int) -> None:
    """Where nothing was sent, commands of several kinds, and so many that their bytes fit both kinds."""
    bench.command = carried
    with pytest.raises(ToolError, match="or not each shows header_digest"):
        bench.provision(NVME, header_digest="CRC32C")
    assert Sessions(bench, bench.tree.machine, STATE).prove(NVME, "header_digest", None)[0] is None
    # what the kernel shows needs no counting
    assert bench.provision(NVME, data_digest="CRC32C")["changed"]
    bench.second_controller()
    bench.tree.write(f"{bench.place}/kato", "")
    assert Sessions(bench, bench.tree.machine, STATE).read(NVME, ["keep_alive_tmo"]) == {}


def test_a_controller_that_was_made_anew_is_known_by_its_ends(bench: Bench) -> None:
    bench.second_controller()
    bench.refused = "192.0.2.8 queue_size=64"
    with pytest.raises(PartialError, match=r"in force again for nvme1 to 192\.0\.2\.8, nvme0 to 192\.0\.2\.7$"):
        bench.provision(NVME, queue_size=64)
    assert bench.tree.machine.text(f"{bench.place}/sqsize") == "127"


def test_a_timer_that_nobody_declares_outlasts_the_login(bench: Bench) -> None:
    bench.tree.write(RECOVERY, "7\n")
    bench.provision(cmds_max=32)
    assert bench.tree.machine.text(RECOVERY) == "7"


@pytest.mark.parametrize(
    ("drive", "values", "refused", "former"),
    [
        (LUN, {"data_digest": "CRC32C"}, "data_digest=CRC32C", "None"),
        (NVME, {"queue_size": 16}, "queue_size=16", "128"),
    ],
)
def test_what_the_target_does_not_take_leaves_the_former(
    bench: Bench, drive: str, values: dict[str, object], refused: str, former: str
) -> None:
    bench.refused = refused
    with pytest.raises(PartialError, match="the former parameters are in force again for "):
        bench.provision(drive, **values)
    # the last login, or the last line to the kernel
    given = dict(word.split("=", 1) for word in bench.seen[-1].split(",") if bench.seen[-1] != "--login")
    assert {**bench.record, **given}[next(iter(values))] == former


def test_where_the_second_of_a_portals_sessions_is_refused_the_first_goes_again(bench: Bench) -> None:
    bench.record["nr_sessions"] = "2"
    bench.refused = "cmds_max=64"
    with pytest.raises(PartialError, match="in force again for"):
        bench.provision(cmds_max=64)
    assert bench.seen[-2:] == ["--logout", "--login"]
    assert bench.tree.machine.text(SHOWN["cmds_max"]) == str(128 - 15)


@pytest.mark.parametrize(
    ("refused", "problem"),
    [
        (f"{SECOND} cmds_max=64", f"in force again for {TARGET} at {SECOND}, {TARGET} at {PORTAL}$"),
        (f"{SECOND} nr_sessions=1", rf"again for {TARGET} at {PORTAL}; not for {TARGET} at {SECOND} \(.*rejected"),
    ],
)
def test_where_one_session_is_refused_all_have_the_former(bench: Bench, refused: str, problem: str) -> None:
    bench.second_portal()
    bench.tree.write(RECOVERY, "7\n")
    bench.tree.write(_numbered(RECOVERY, 2), "7\n")
    bench.refused = refused
    with pytest.raises(PartialError, match=problem):
        bench.provision(cmds_max=64)
    assert [record["cmds_max"] for record in bench.records.values()] == ["128", "128"]
    assert bench.tree.machine.text(RECOVERY) == "7"


@pytest.mark.parametrize(
    ("drive", "values", "why"),
    [
        (LUN, {"cmds_max": 100}, "no power of two"),
        (LUN, {"nr_io_queues": 1}, "no iSCSI session or NVMe controller"),
        (LUN, {"nr_sessions": 2}, "start multipathd"),
        (NVME, {"nr_io_queues": 3}, "takes 2, one for each CPU"),
        (NVME, {"noop_out_interval": 5}, "no iSCSI session or NVMe controller"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_goes(
    bench: Bench, drive: str, values: dict[str, object], why: str
) -> None:
    with pytest.raises(ToolError, match=why):
        bench.provision(drive, **values)
    assert not [line for line in bench.seen if "-o" in line or "log" in line or "transport" in line]


@pytest.mark.parametrize(("file", "text"), [("dhchap_secret", "DHHC-1:00:hidden:"), ("tls_key", "1a2b3c4d")])
def test_a_controller_with_a_secret_is_left_alone(bench: Bench, file: str, text: str) -> None:
    bench.tree.text_files(bench.place, {file: text})
    with pytest.raises(ToolError, match="storqual does not read") as refused:
        bench.provision(NVME, queue_size=64)
    assert "hidden" not in str(refused.value)


def test_nothing_goes_while_a_drive_behind_it_is_used(bench: Bench) -> None:
    bench.tree.lun("sdc", through="session1", hctl="3:0:0:1", wwn="0x60060160ffffffff", serial="APM2")
    bench.tree.mount(bench.tree.machine.text("/sys/block/sdc/dev"), "/data")
    with pytest.raises(GuardRefusalError, match="/data"):
        bench.provision(cmds_max=64)
    assert bench.record["cmds_max"] == "128"


def test_drives_behind_one_session_have_it_made_anew_once(bench: Bench) -> None:
    other = "0x60060160ffffffff"
    bench.tree.lun("sdc", through="session1", hctl="3:0:0:1", wwn=other, serial="APM2")
    subsystem = Sessions(bench, bench.tree.machine, STATE)
    plans = [plan(subsystem, drive, drive, {"cmds_max": 64}) for drive in (LUN, other)]
    apply(subsystem, plans, save=lambda _memory: None)
    assert bench.seen.count("--login") == 1


def test_check_mode_says_what_would_be(bench: Bench) -> None:
    result = bench.provision(check=True, cmds_max=64)
    assert result["drift"] == [f"{LUN} drive.cmds_max: 128, declared 64"]
    assert (result["changed"], bench.record["cmds_max"]) == (True, "128")


def test_the_kernels_own_settings_are_set_apart_from_a_login(bench: Bench) -> None:
    request = DriveRequest({LUN: {"cmds_max": 64}}, {}, bench.state, "r1")
    assert provision_drives(request, runner=bench)["settings"] == []


def test_a_restore_logs_in_as_it_was(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.provision(cmds_max=64)
    bench.provision(NVME, queue_size=64)
    tools = Tools(bench, System(bench), access=bench.access, machine=bench.tree.machine)
    bench.seen.clear()
    assert restore(bench.state, tools, check=False)["restored"] is True
    assert bench.seen[0] == f"guard: {LUN}"
    assert bench.record["cmds_max"] == "128"
    assert bench.tree.machine.text(f"{bench.place}/sqsize") == "127"
