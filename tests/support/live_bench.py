# SPDX-License-Identifier: Apache-2.0
"""The gate bench: a small virtual bench on which the real main job meets drops whose effect is known."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from storqual.bench.follow import Connection
from storqual.console.console import VirtualConsole
from storqual.turns.bring_back import BenchHere
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_off, power_state, reset
from storqual.virtual_bench.qmp import converse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


REPOSITORY = Path(__file__).resolve().parents[2]
INVENTORY = REPOSITORY / "inventories" / "virtual"
BIN = Path(sys.executable).parent


def ran(log: Path, program: str, *words: object, **environment: str) -> tuple[int, str]:
    """Exit code and output of a program, by a file: an SSH master that stays behind would hold a pipe."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab+") as stream:
        begin = stream.tell()
        code = subprocess.run(
            [BIN / program, *map(str, words)],
            cwd=REPOSITORY,
            env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), **environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            check=False,
        ).returncode
        stream.seek(begin)
        return code, stream.read().decode(errors="replace")


def play(log: Path, inventory: Path, name: str, *words: object, **environment: str) -> tuple[int, str]:
    return ran(log, "ansible-playbook", "-i", inventory, REPOSITORY / "playbooks" / name, *words, **environment)


def qualified(folder: Path, inventory: Path, *words: object) -> tuple[int, str, Path]:
    """A campaign whose runs are in `folder`: its exit code, what it printed, and the run."""
    code, output = ran(folder / "output", "storqual", "qualify", "-i", inventory, "--runs", folder, *words)
    (run,) = (path.parent for path in folder.glob("*/run.json"))
    return code, output, run


def power_fixture(inventory: Path, state: Path) -> Any:
    """A fixture for a module of tests: the bench of an inventory is on."""

    @pytest.fixture(scope="module", autouse=True)
    def powered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        state.mkdir(parents=True, exist_ok=True)
        with powered_on(tmp_path_factory.mktemp("power") / "log", inventory):
            yield

    return powered


@contextmanager
def powered_on(log: Path, inventory: Path) -> Iterator[None]:
    code, output = play(log, inventory, "bench_up.yml")
    assert code == 0, output[-3000:]
    try:
        yield
    finally:
        code, output = play(log, inventory, "bench_down.yml")
    assert code == 0, output[-3000:]


def over_ssh(state: Path, host: str, line: str, *, data: bytes = b"", limit_s: float = 300) -> str:
    words = ["ssh", "-F", state / "ssh_config", host, line]
    ended = subprocess.run(words, input=data, capture_output=True, timeout=limit_s, check=False)
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")[-2000:]
    return ended.stdout.decode()


def put_guest(state: Path, host: str) -> None:
    """The core and the scripts of `tests/virtual/guest` into /root/trial of a bench."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        guest = REPOSITORY / "tests" / "virtual" / "guest"
        for folder, below in ((REPOSITORY / "library/module_utils/storqual_core", "storqual_core"), (guest, ".")):
            for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.sh"))):
                archive.add(path, arcname=f"{below}/{path.relative_to(folder)}")
        archive.add(REPOSITORY / "tests" / "support" / "hidden_writers.py", arcname="hidden_writers.py")
    line = "rm -rf /root/trial && mkdir /root/trial && tar -C /root/trial -xf -"
    over_ssh(state, host, line, data=packed.getvalue())


def bench_here(state: Path, host: str, program: Path) -> BenchHere:
    """A virtual bench for a session that is made without the plays around it; `program` is to be put there."""
    ssh = ["ssh", "-F", str(state / "ssh_config"), "-o", "ServerAliveInterval=5", "-o", "ConnectTimeout=10", host]
    connection, folder = Connection(host, lambda command: [*ssh, command], ["true"]), "/var/lib/storqual"
    return BenchHere(host, connection, "/usr/bin/python3", folder, f"{folder}/{program.name}", BenchPlaces.of(state))


# a line for each thing that provisioning could change, from the bench's own tools
LOOK = Path(__file__).with_suffix(".look").read_text(encoding="utf-8")
# a drive of the kernel's scsi_debug, as an inventory claims it
_DEBUG_DRIVE = """
disk=$(basename $(grep -l scsi_debug /sys/block/sd*/device/model | cut -d/ -f1-4))
cat /sys/block/$disk/device/wwid /sys/block/$disk/size
dd if=/sys/block/$disk/device/vpd_pg80 bs=1 skip=4 status=none
"""
_WRITTEN = "for disk in /sys/block/sd* /sys/block/nvme*; do set -- $(cat $disk/stat); echo ${disk##*/} $7; done"


@dataclass(frozen=True)
class Played:
    """One run of a playbook."""

    code: int
    output: str

    @property
    def changed(self) -> int:
        found = re.search(r"^vbench .*changed=(\d+)", self.output, re.MULTILINE)
        assert found, self.output
        return int(found.group(1))


@dataclass(frozen=True)
class Bench:
    """One bench: where its disks and keys are, and a folder for drops and logs."""

    state: Path
    drops: Path

    def play(self, name: str, *words: str) -> Played:
        with self._playing(name, *words) as child:
            code = child.wait(timeout=1800)
        return Played(code, self._log.read_text(encoding="utf-8", errors="replace"))

    @property
    def _log(self) -> Path:
        return self.drops / "play.log"

    @contextmanager
    def _playing(self, name: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A playbook that runs, its output to a file: an SSH master that stays behind would hold a pipe."""
        with (
            self._log.open("wb") as stream,
            subprocess.Popen(
                [
                    *(BIN / "ansible-playbook", "-i", INVENTORY, REPOSITORY / "playbooks" / name),
                    *("-e", f"virtual_bench_state={self.state}", *words),
                ],
                env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            ) as child,
        ):
            try:
                yield child
            finally:
                child.terminate()

    def provision(self, drop: str, *words: str) -> Played:
        return self.play("provision.yml", *self._drop(drop), *words)

    def cut_power(self, drop: str, event: str, *words: str) -> Played:
        """Begin to make the bench what a drop says, and press its reset button as soon as `event` holds on it.

        `event` is a condition of the shell. The bench answers again when this returns.
        """
        # Ansible would send the module again to the bench that is coming up
        once = ("-e", "ansible_ssh_retries=0")
        await_event = f"timeout 900 sh -c {shlex.quote(f'until {event}; do sleep 0.02; done >/dev/null 2>&1')}"
        with self._playing("provision.yml", *self._drop(drop), *once, *words) as child:
            self.ask(await_event, limit_s=1000)
            assert child.poll() is None, self._log.read_text(encoding="utf-8", errors="replace")
            reset(BenchPlaces.of(self.state), limit_s=600)
            code = child.wait(timeout=300)
        return Played(code, self._log.read_text(encoding="utf-8", errors="replace"))

    def _drop(self, drop: str) -> tuple[str, ...]:
        file = self.drops / "drop.yml"
        file.write_text(f"name: t\ndescription: of a test\n{drop}", encoding="utf-8")
        also = self.drops / "hosts.yml"
        return (*(("-i", str(also)) if also.exists() else ()), "-e", f"drop={file}", "-e", "prove_s=0")

    def add_debug_drive(self, *parameters: str) -> str:
        """Load scsi_debug and claim its drive for drops, as one of an adapter `debug`; the drive's WWN."""
        self.ask(f"modprobe scsi_debug dev_size_mb=32 {' '.join(parameters)} && udevadm settle")
        wwid, sectors, serial = self.ask(_DEBUG_DRIVE).split()
        drive = {
            "wwn": "0x" + wwid.removeprefix("naa."),
            "serial": serial,
            "vendor": "Linux",
            "model": "scsi_debug",
            "size": int(sectors) * 512,
            "claim": True,
        }
        text = (INVENTORY / "hosts.yml").read_text(encoding="utf-8")
        head, key, rest = text.partition("      storqual_adapters:\n")
        assert key
        entry = json.dumps({"model": "scsi_debug", "drives": [drive]})
        (self.drops / "hosts.yml").write_text(f"{head}{key}        debug: {entry}\n{rest}", encoding="utf-8")
        return drive["wwn"]

    def look(self) -> list[str]:
        return self.ask(LOOK).splitlines()

    def touched(self) -> list[str]:
        """That, with the sectors written to each drive since the boot and the names of storqual's own files."""
        return [*self.look(), self.ask(_WRITTEN), self.ask("ls -A /var/lib/storqual 2>/dev/null || true")]

    def play_module(self, module: str, arguments: dict[str, Any]) -> Played:
        task = {module: {"adapters": "{{ storqual_adapters }}", **arguments}, "register": "called"}
        tell = {"ansible.builtin.debug": {"var": "called.steps"}}
        plays = [
            {"name": "Call", "hosts": "benches", "gather_facts": False, "tasks": [{"name": "Call", **task}, tell]}
        ]
        file = self.drops / "call.yml"
        file.write_text(json.dumps(plays), encoding="utf-8")
        return self.play(str(file))

    def ask(self, command: str, limit_s: float = 300) -> str:
        return over_ssh(self.state, "vbench", command, limit_s=limit_s)

    def send(self, files: Sequence[str], folder: str) -> None:
        self.ask(f"mkdir -p {folder}")
        ended = subprocess.run(
            ["scp", "-q", "-F", str(self.state / "ssh_config"), *files, f"vbench:{folder}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr

    def wait_for_answer(self, limit_s: float = 600) -> None:
        """Wait until a bench that goes down by itself answers again."""
        words = ["ssh", "-F", str(self.state / "ssh_config"), "-o", "ConnectTimeout=10", "vbench", "true"]
        end = time.monotonic() + limit_s
        while subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
            assert time.monotonic() < end, f"the bench did not answer within {limit_s:g} s"
            time.sleep(1)

    def wait_for(self, path: str, limit_s: float) -> None:
        """Wait until a file of the bench is there, for what takes longer than one question may."""
        end = time.monotonic() + limit_s
        question = (
            f"n=0; until [ -e {path} ] || [ $n -ge 120 ]; do n=$((n + 1)); sleep 1; done; ls {path} 2>&1 || true"
        )
        while self.ask(question).strip() != path:
            assert time.monotonic() < end, f"{path} did not come within {limit_s:g} s"


@contextmanager
def one_connection(state: Path) -> Iterator[None]:
    """Every SSH to a bench by one connection: to begin one takes the processor of an emulated bench for a second.

    It is begun anew whenever the bench went down.
    """
    config, ended = state / "ssh_config", threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        config.write_text(f"{config.read_text(encoding='utf-8')}    ControlPath {folder}/%n\n", encoding="utf-8")
        options = ("ControlMaster=yes", "ControlPersist=no", "ServerAliveInterval=5", "ConnectTimeout=10")
        words = ["ssh", "-F", str(config), *(word for option in options for word in ("-o", option)), "-N", "vbench"]
        children: list[subprocess.Popen[bytes]] = []

        def keep() -> None:
            while not ended.is_set():
                quiet = subprocess.DEVNULL
                children[:] = [subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet)]
                children[0].wait()
                ended.wait(2.0)

        thread = threading.Thread(target=keep, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            for child in children:
                child.terminate()
            thread.join(10.0)


def discard(state: Path) -> None:
    """Forget the bench that is kept there: what tests left on it that were cut short is no start for others."""
    power_off(BenchPlaces.of(state), graceful=False)
    shutil.rmtree(state, ignore_errors=True)


@contextmanager
def powered_bench(name: str, drops: Path) -> Iterator[Bench]:
    found = Bench(REPOSITORY / ".cache" / "bench" / name, drops)
    discard(found.state)
    up = found.play("bench_up.yml")
    assert up.code == 0, up.output
    try:
        yield found
    finally:
        down = found.play("bench_down.yml")
    assert down.code == 0, down.output


GATE = REPOSITORY / "tests" / "virtual" / "gate"
STATE = REPOSITORY / ".cache" / "bench" / "gatebench"
SUITE = GATE / "gate.suite.yml"
ASKED = os.environ.get("STORQUAL_LIVE_CAMPAIGNS")
CAMPAIGNS = range(int(ASKED or "3"))
"""How many campaigns of a kind go through the whole pipeline; the seed is the number."""


@dataclass(frozen=True)
class Finished:
    """One run of the main job: its exit code, what it printed, its run directory."""

    code: int
    output: str
    run: Path | None

    @property
    def verdict(self) -> dict[str, Any]:
        assert self.run is not None, self.output
        return dict(json.loads((self.run / "verdict.json").read_text(encoding="utf-8")))

    def events(self, kind: str) -> list[dict[str, Any]]:
        assert self.run is not None, self.output
        lines = (self.run / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]


def command(runs: Path, *words: str) -> list[str]:
    return [str(BIN / "storqual"), "qualify", "-i", str(GATE), "--runs", str(runs), *words]


def drops(baseline: str, candidate: str, *, suite: Path = SUITE, seed: int = 1) -> list[str]:
    return ["--baseline", baseline, "--candidate", candidate, "--suite", str(suite), "--seed", str(seed)]


def qualify(runs: Path, *words: str) -> Finished:
    code, _ = ran(runs / "output.log", "storqual", *command(runs, *words)[1:])
    return finished(code, runs)


def finished(code: int, runs: Path) -> Finished:
    """The newest run in `runs`."""
    made = sorted(path.parent for path in runs.glob("*/run.json"))
    return Finished(
        code, (runs / "output.log").read_text(encoding="utf-8", errors="replace"), made[-1] if made else None
    )


def on_bench(line: str) -> str:
    return over_ssh(STATE, "gatebench", line, limit_s=60).strip()


@contextmanager
def powered() -> Iterator[None]:
    """The gate bench, powered on, and off again in the end; a run that finds it on leaves it on."""
    STATE.mkdir(parents=True, exist_ok=True)
    with powered_on(STATE.parent / "gate-playbook.log", GATE):
        yield


def disconnect(seconds: float) -> None:
    """Pull the network cable of the gate bench for so long."""
    state = power_state(BenchPlaces.of(STATE))
    assert state is not None
    monitor = Path(state.monitor)
    converse(monitor, lambda qmp: qmp.ask("set_link", {"name": "network", "up": False}))
    try:
        time.sleep(seconds)  # the time without a cable is the trouble itself
    finally:
        converse(monitor, lambda qmp: qmp.ask("set_link", {"name": "network", "up": True}))


HANGS = {
    "panic": ("sysctl -qw kernel.panic=0; echo c > /proc/sysrq-trigger", "Kernel panic"),
    # processors halted with interrupts off
    "halt": ("python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0xcdef0123)'", "System halted"),
}
"""What makes the bench hang, and what its console says of it."""


def make_trouble(trouble: str, child: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Kill a campaign, or do to the gate bench beneath it what its hang, its reset and a pulled cable would."""
    if trouble == "kill":
        os.killpg(child.pid, signal.SIGKILL)
    elif trouble == "disconnect":
        disconnect(chance.uniform(1.0, 40.0))
    elif trouble == "reset":
        reset(BenchPlaces.of(STATE))
    else:
        line, sign = HANGS[trouble]
        console = VirtualConsole(BenchPlaces.of(STATE))
        mark, end = console.mark(), time.monotonic() + 180
        # a bench that is busy with its fault may take no connection at first
        while sign not in console.text_since(mark):
            assert time.monotonic() < end
            with suppress(AssertionError, subprocess.TimeoutExpired):
                over_ssh(STATE, "gatebench", line, limit_s=30)


def own_lab(folder: Path, inventory: Path, state: Path, **variables: object) -> Path:
    """An inventory in `folder`: that of a virtual bench, with its state in `state` and with `variables` besides."""
    lab = folder / "lab"
    # Ansible would read the suites beside an inventory as parts of it
    shutil.copytree(inventory, lab, ignore=shutil.ignore_patterns("*.suite.yml"))
    document = yaml.safe_load((lab / "hosts.yml").read_text(encoding="utf-8"))
    (bench,) = document["benches"]["hosts"].values()
    bench |= {"virtual_bench_state": str(state), **variables}
    (lab / "hosts.yml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return lab
