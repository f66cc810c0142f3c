# SPDX-License-Identifier: Apache-2.0
"""Sessions and controllers made anew with what a drop declares; what cannot be is refused before anything goes."""

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
NVME = "uuid.11111111-2222-3333-4444-555555555555"
RECOVERY = "/sys/devices/platform/host3/session1/iscsi_session/session1/recovery_tmo"


class Bench:
    """One iSCSI LUN and one NVMe namespace; open-iscsi and the kernel make their sessions as they were asked."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = FabricTree(root / "bench").session()
        self.tree.lun("sdb", through="session1", hctl="3:0:0:0")
        self.tree.nvme_fabric(("tcp", "traddr=192.0.2.7,trsvcid=4420,src_addr=192.0.2.9", "optimized"))
        self.place = "/sys/devices/virtual/nvme-fabrics/ctl/nvme0"
        self.tree.text_files(self.place, {"sqsize": "127", "kato": "5", "subsysnqn": "nqn.2014-08.org.example:s1"})
        self.tree.write("/proc/cpuinfo", "processor : 0\nprocessor : 1\n")
        self.record = {"cmds_max": "128", "header_digest": "None", "data_digest": "None"}
        self.record.update(noop_out_interval="5", noop_out_timeout="5", nr_sessions="1")
        self.seen: list[str] = []
        self.refused, self.held = "", False
        self.state = str(root / "state")
        self._log_in()
        self.seen.clear()
        self._write = Path.write_text
        # a bound method would not get the path
        monkeypatch.setattr(Path, "write_text", lambda *given, **words: self._kernel(*given, **words))  # noqa: PLW0108

    def _log_in(self) -> None:
        for name, place in SHOWN.items():
            kept = self.record[name]
            shown = int(kept) - 15 if name == "cmds_max" else {"None": 0, "CRC32C": 1}.get(kept, kept)
            self.tree.write(place, f"{shown}\n")
        self.tree.write(RECOVERY, "120\n")

    def _kernel(self, path: Path, text: str, **words: Any) -> int:
        if path.name != "nvme-fabrics":
            return self._write(path, text, **words)
        self.seen.append(text)
        asked = dict(word.split("=", 1) for word in text.split(","))
        if self.refused and asked.get(self.refused.partition("=")[0]) == self.refused.partition("=")[2]:
            raise OSError(22, "Invalid argument")
        shown = {"queue_count": int(asked["nr_io_queues"]) + 1, "sqsize": int(asked["queue_size"]) - 1}
        texts = {"kato": asked["keep_alive_tmo"], **{name: str(number) for name, number in shown.items()}}
        self.tree.text_files(self.place, texts)
        return len(text)

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        words = list(argv)
        # a drive that we hold is in use, and its session may not go
        assert not self.held
        assert words[:7] == ["iscsiadm", "-m", "node", "-T", "iqn.2003-01.org.example:t1", "-p", "192.0.2.1:3260"]
        self.seen.append(" ".join(words[7:]))
        if words[7:9] == ["-o", "update"]:
            self.record[NAMES[words[10]]] = words[12]
        elif words[7:] == ["--login"]:
            if self.refused in [f"{name}={value}" for name, value in self.record.items()]:
                return Completed(tuple(argv), 24, "", "login rejected: digests do not fit", 0.0)
            self._log_in()
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
    assert bench.tree.machine.text(f"{bench.place}/delete_controller") == "1"
    given = "transport=tcp nqn=nqn.2014-08.org.example:s1 hostnqn=nqn.2014-08.org.example:bench ctrl_loss_tmo=600"
    address = "reconnect_delay=10 traddr=192.0.2.7 trsvcid=4420"
    asked = "nr_io_queues=1 queue_size=64 keep_alive_tmo=9"
    assert bench.seen[1].split(",") == f"{given} {address} {asked}".split()


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
    with pytest.raises(PartialError, match="it has its former parameters again"):
        bench.provision(drive, **values)
    # the last login, or the last line to the kernel
    given = dict(word.split("=", 1) for word in bench.seen[-1].split(",") if bench.seen[-1] != "--login")
    assert {**bench.record, **given}[next(iter(values))] == former


def test_a_session_that_does_not_come_back_at_all_is_told_with_both_reasons(bench: Bench) -> None:
    bench.refused = "header_digest=None"
    with pytest.raises(PartialError, match="nor is it back with its former parameters"):
        bench.provision(cmds_max=64)


@pytest.mark.parametrize(
    ("drive", "values", "why"),
    [
        (LUN, {"cmds_max": 100}, "no power of two"),
        (LUN, {"nr_io_queues": 1}, "no iSCSI session or NVMe controller"),
        (LUN, {"nr_sessions": 2}, "start multipathd"),
        (NVME, {"nr_io_queues": 3}, "takes 2, one for each CPU"),
        (NVME, {"header_digest": "None"}, "no iSCSI session or NVMe controller"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_goes(
    bench: Bench, drive: str, values: dict[str, object], why: str
) -> None:
    with pytest.raises(ToolError, match=why):
        bench.provision(drive, **values)
    assert not [line for line in bench.seen if "-o" in line or "log" in line or "transport" in line]


def test_a_controller_with_a_secret_is_left_alone(bench: Bench) -> None:
    bench.tree.write(f"{bench.place}/dhchap_secret", "DHHC-1:00:hidden:\n")
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
