"""Control nodes that never heard of each other and want the same benches; with real processes on this machine."""

import base64
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storqual.base import child
from storqual.bench.follow import Connection
from storqual.bench.keeper import is_stopped, keep
from storqual.bench.lease import (
    Keeper,
    RefusedError,
    Waiting,
    bench_book,
    boot_clock,
    fence,
    folder_book,
    look_command,
    new_owner,
    renewing,
    reserve,
    unpack_lease,
)
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LAPSE_S, LeaseBook, LeaseLostError

ODD = ['{"refused": 1, "number": ""}', *(f'{{"lease": {one}}}' for one in ("null", "[1]", '{"number": "/../x"}'))]
REPOSITORY = Path(__file__).resolve().parents[4]
LIMIT_S = 60.0


class ControlNode:
    """A process of its own that runs campaigns, and what they said."""

    def __init__(self, folder: Path, user: str) -> None:
        self.said = folder / f"{user}.said"
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / user),
            "LOGNAME": user,
            "PYTHONPATH": str(REPOSITORY),
        }
        with self.said.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.control_node"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    def start(self, name: str, state: Path, *, seconds: float = 0.2, wait_s: float = 0.0) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, str(state), seconds, wait_s]).encode() + b"\n")
        self.process.stdin.flush()

    def of(self, name: str) -> list[str]:
        lines = [json.loads(line) for line in self.said.read_text().splitlines() if line.startswith("[")]
        return [text for who, text, _ in lines if who == name]

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[ControlNode, ControlNode]]:
    made = ControlNode(tmp_path, "ann"), ControlNode(tmp_path, "bob")
    yield made
    for node in made:
        for number in (signal.SIGCONT, signal.SIGKILL):
            node.signal(number)
        node.process.wait()
        assert node.process.stdin is not None
        node.process.stdin.close()


def until(seen: Callable[[], Any], what: str = "") -> Any:
    end = time.monotonic() + LIMIT_S
    while not (value := seen()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return value


def record(state: Path) -> list[str]:
    file = state / "record"
    return file.read_text().splitlines() if file.exists() else []


def runs(state: Path) -> list[str]:
    """Whose writes are in the record, in order, one entry for each stretch."""
    names = [line.split()[1] for line in record(state)]
    return [name for name, before in zip(names, ["", *names], strict=False) if name != before]


def lapse(state: Path) -> None:
    (file,) = state.glob("lease.[0-9]*")
    os.utime(file, (time.time() - LAPSE_S - 60, time.time() - LAPSE_S - 60))


def present(state: Path, name: str) -> bool:
    """Whether a campaign has the bench, or waits for it."""
    lease = LeaseBook(state).read()
    return name in [owner.run for owner in (lease.owner, *(waiter for _, waiter in lease.waiting)) if owner]


def test_ten_campaigns_of_two_control_nodes_share_three_benches_in_order(
    nodes: tuple[ControlNode, ControlNode], tmp_path: Path
) -> None:
    benches = [tmp_path / name for name in ("bench01", "bench02", "bench03")]
    wanted: dict[Path, list[str]] = {bench: [] for bench in benches}
    for number in range(10):
        bench, name = benches[number % 3], f"r{number}"
        nodes[number % 2].start(name, bench, seconds=0.3 if number > 2 else 5.0, wait_s=LIMIT_S)
        wanted[bench].append(name)
        until(lambda name=name, bench=bench: present(bench, name) or name in runs(bench), name)
    for number in range(10):
        until(lambda number=number: nodes[number % 2].of(f"r{number}")[-1:] == ["done"], f"r{number} is lost")
    for bench in benches:
        assert runs(bench) == wanted[bench]
    told = [line for node in nodes for number in range(10) for line in node.of(f"r{number}")]
    assert any("place 1 in the queue" in line for line in told)
    assert any("place 2 in the queue" in line for line in told)


def test_an_owner_that_is_stopped_until_its_lease_is_gone_writes_nothing_when_it_goes_on(
    nodes: tuple[ControlNode, ControlNode], tmp_path: Path
) -> None:
    bench = tmp_path / "bench01"
    ann, bob = nodes
    ann.start("slow", bench, seconds=30)
    until(lambda: "slow" in runs(bench))
    ann.signal(signal.SIGSTOP)
    bob.start("early", bench)
    assert "slow" in until(lambda: bob.of("early"))[0]
    lapse(bench)
    bob.start("next", bench, seconds=1.0)
    until(lambda: bob.of("next")[-1:] == ["done"])
    written = [line for line in record(bench) if "slow" in line]
    ann.signal(signal.SIGCONT)
    last = until(lambda: [line for line in ann.of("slow") if line.startswith("refused")])[0]
    assert [line for line in record(bench) if "slow" in line] == written
    assert "slow" not in runs(bench)[runs(bench).index("next") :]
    assert "counts no longer" in last or "ended with" in last


def test_an_owner_that_is_killed_is_followed_when_its_lease_has_lapsed(
    nodes: tuple[ControlNode, ControlNode], tmp_path: Path
) -> None:
    bench = tmp_path / "bench01"
    ann, bob = nodes
    ann.start("killed", bench, seconds=30)
    until(lambda: "killed" in runs(bench))
    ann.process.kill()
    bob.start("waits", bench, wait_s=LIMIT_S)
    until(lambda: present(bench, "waits"))
    assert "waits" not in runs(bench)
    lapse(bench)
    until(lambda: bob.of("waits")[-1:] == ["done"])
    assert runs(bench) == ["killed", "waits"]


def local(lease: str = "") -> Connection:
    return Connection("bench", lambda command: ["sh", "-c", command], ["true"], remote=False, lease=lease)


def number_of(state: Path, run: str = "r1") -> int:
    return LeaseBook(state).reserve(new_owner("test", 3600, run=run)).number


def test_a_command_of_a_reservation_that_was_taken_does_nothing_and_says_who_has_the_bench(tmp_path: Path) -> None:
    state = tmp_path / "a state's folder"
    token = f"{number_of(state)}@{state}"
    file = shlex.quote(str(tmp_path / "file"))
    assert local(token).run(f"printf '%s' \"$STORQUAL_LEASE\" | tee {file}") == token
    LeaseBook(state).reserve(new_owner("repair", 3600), take=True)
    (tmp_path / "file").unlink()
    with pytest.raises(LeaseLostError, match="repair"):
        local(token).run(f"touch {file}")
    assert not (tmp_path / "file").exists()
    assert local().run(fence("") + "echo x") == "x\n"


def test_who_looks_whether_anything_changed_keeps_its_place(tmp_path: Path) -> None:
    state = tmp_path / "state"
    ask, number = folder_book(state), number_of(state)
    ticket = ask({"act": "ticket"})["ticket"]
    look = look_command(str(state), ticket, number)
    assert local().run(look) == ""
    with pytest.raises(RefusedError):
        reserve(ask, "bench01", new_owner("x", 60, run="r2"), Waiting(0.0, print))
    owner = {"who": "x", "where": "y", "why": "", "until": "2099-01-01T00:00:00+00:00", "run": "r2", "since": ""}
    ask({"act": "reserve", "owner": owner, "ticket": ticket})
    queued = state / "queue" / f"{ticket}.json"
    os.utime(queued, (1, 1))
    assert local().run(look) == "same\n"
    assert queued.stat().st_mtime > 1
    lapse(state)
    assert local().run(look) == ""


def test_who_gives_up_waiting_leaves_the_queue(tmp_path: Path) -> None:
    number_of(tmp_path)
    time_now = [0.0]

    def sleep(seconds: float) -> None:
        time_now[0] += max(seconds, 0.1)

    waiting = Waiting(60.0, lambda _line: None, clock=lambda: time_now[0], sleep=sleep)
    with pytest.raises(RefusedError) as refused:
        reserve(folder_book(tmp_path), "bench01", new_owner("x", 60, run="r2"), waiting)
    assert refused.value.exit_code == 4
    assert not LeaseBook(tmp_path).read().waiting


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def order(state: Path, number: int, record_file: Path, owner: subprocess.Popen[bytes]) -> dict[str, Any]:
    record_file.write_text(json.dumps({"tried": boot_clock()}))
    renewals = [["sh", "-c", renewing(f"{number}@{state}")]]
    ticks = child.ticks_of_start(owner.pid)
    return {"renewals": renewals, "record": str(record_file), "owner": owner.pid, "ticks": ticks}


def keeper_of(state: Path, number: int, monkeypatch: pytest.MonkeyPatch, home: Path) -> Keeper:
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    keeper = Keeper(f"{number}@{state}", "bench01")
    keeper.record.parent.mkdir(parents=True)
    return keeper


def test_a_keeper_renews_while_its_owner_lives_and_not_while_it_is_stopped(
    tmp_path: Path, owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    number = number_of(state)
    keeper = keeper_of(state, number, monkeypatch, tmp_path / "home")
    keeper.start([["sh", "-c", renewing(f"{number}@{state}")]], owner.pid)
    pid = json.loads(keeper.record.read_text())["pid"]
    assert child.is_running(pid, child.ticks_of_start(pid) or 0)
    keeper.stop()
    assert child.await_end(pid, child.ticks_of_start(pid) or 0, LIMIT_S)
    lapse(state)
    asked = order(state, number, keeper.record, owner)
    owner.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(owner.pid))
    looks: list[int] = []

    def await_end(_pid: int, _ticks: int, _limit_s: float) -> bool:
        looks.append(1)
        if len(looks) == 3:
            assert LeaseBook(state).read().owner is None
            owner.send_signal(signal.SIGCONT)
            until(lambda: not is_stopped(owner.pid))
        return len(looks) > 4

    monkeypatch.setattr("storqual.bench.keeper.child.await_end", await_end)
    keep(asked)
    assert LeaseBook(state).read().owner is not None
    assert not keeper.record.exists()


def test_a_keeper_that_lost_the_bench_says_so_before_anything_is_switched(
    tmp_path: Path, owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    number = number_of(state)
    keeper = keeper_of(state, number, monkeypatch, tmp_path / "home")
    keeper.ensure()
    asked = order(state, number, keeper.record, owner)
    keeper.ensure()
    LeaseBook(state).reserve(new_owner("repair", 3600), take=True)
    keep(asked, every_s=0.01)
    with pytest.raises(LeaseLostError, match="taken"):
        keeper.ensure()


def test_a_control_node_that_slept_does_not_switch_before_it_has_asked(
    tmp_path: Path, owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    keeper = keeper_of(state, number_of(state), monkeypatch, tmp_path / "home")
    keeper.record.write_text(json.dumps({"tried": boot_clock() - LAPSE_S - 1}))
    with pytest.raises(LeaseLostError, match="stopped"):
        keeper.ensure()


@pytest.mark.parametrize(
    ("kind", "mode"), [(tarfile.SYMTYPE, "w"), (tarfile.LNKTYPE, "w"), (tarfile.REGTYPE, "w:gz")]
)
def test_a_bench_packs_plain_files_only(kind: bytes, mode: Any, tmp_path: Path) -> None:
    """A link could lead to a file of the control node, and what is packed twice has any size."""
    packed, member = io.BytesIO(), tarfile.TarInfo("lease.json")
    member.type, member.linkname = kind, "saved.json"
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        archive.addfile(member)
    answer = f"{base64.b64encode(packed.getvalue()).decode()}\n--storqual--\n--storqual--\n1 1\n"
    with pytest.raises(StorqualError):
        unpack_lease(answer, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", ["", "Welcome to bench1\n{}", "[]", "[" * 5000, '{"a": 1e999}', *ODD])
def test_a_bench_that_answers_with_no_reservation_is_an_error_that_says_so(answer: str) -> None:
    with pytest.raises(StorqualError, match="cannot be read"):
        bench_book(lambda _: (0, answer, ""), ["core"], "/var/lib/x")({"act": "ticket"})


@pytest.mark.parametrize(("given", "code"), [(0, 2), (1, 2), (4, 4), (70, 2), ([], 2), (True, 2)])
def test_a_bench_that_refuses_ends_with_no_verdict(given: object, code: int) -> None:
    assert RefusedError({"refused": "no", "exit_code": given}).exit_code == code


def test_files_of_a_reservation_that_no_bench_wrote_are_an_error_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "1.json").write_text("[" * 5000, encoding="utf-8")
    assert not LeaseBook(tmp_path).read().waiting
    (tmp_path / "lease.json").write_text("[" * 5000, encoding="utf-8")
    with pytest.raises(StorqualError, match="lease"):
        LeaseBook(tmp_path).read()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a" * 300))
    with pytest.raises(StorqualError, match="cannot be read"):
        unpack_lease(f"{base64.b64encode(packed.getvalue()).decode()}\n--storqual--\n--storqual--\n1 1\n", tmp_path)
