# SPDX-License-Identifier: Apache-2.0
"""The console of a bench, a virtual one too, for whoever asks: its recorder, what that kept, and typing."""

import json
import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.console_log import SAID, said_text
from storqual.base.files import parse_json, state_home
from storqual.bench.ladder import ConsoleTyping
from storqual.console.recorder import RecorderPlaces
from storqual.console.recording import Recording
from storqual.console.sources import missing_program, source_of
from storqual.inputs.console_way import ConsoleWay
from storqual.virtual_bench import boot
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from storqual_core.kit.errors import BadInputError, StorqualError, ToolError

_KEYS = ("alt", "sysrq")


@dataclass(frozen=True)
class VirtualConsole:
    """The console of the bench of a state folder, as the ladder wants one."""

    places: BenchPlaces

    def sysrq(self, letter: str) -> None:
        """Press the key. Raises StorqualError where the bench is off, or QEMU does not answer."""
        state = power_state(self.places)
        if state is None:
            raise StorqualError("the virtual bench is off")
        keys = [{"type": "qcode", "data": key} for key in (*_KEYS, letter)]
        converse(Path(state.monitor), lambda monitor: monitor.ask("send-key", {"keys": keys}))

    def mark(self) -> int:
        return boot.mark(self.places.console)

    def text_since(self, mark: int) -> str:
        return boot.written_since(self.places.console, mark)


_READY_S = 30.0
_ANSWER_S = 15.0
_END_S = 15.0
_MOST_VALUES = 1000


@dataclass(frozen=True)
class Console:
    """The console of `bench`; `virtual` are the places of a virtual one. To ask its recorder raises ToolError."""

    bench: str
    virtual: BenchPlaces | None = None

    @property
    def places(self) -> RecorderPlaces:
        """A virtual bench keeps its recording with its state: benches of one name in two checkouts are two."""
        if self.virtual is not None:
            return RecorderPlaces(self.virtual.recording)
        return RecorderPlaces(state_home() / "storqual" / "consoles" / self.bench)

    @property
    def recording(self) -> Recording:
        return Recording(self.places.folder)

    def running(self) -> dict[str, Any] | None:
        """What was ordered of the recorder that runs; None when none does."""
        try:
            order = parse_json(self.places.pidfile.read_bytes(), _MOST_VALUES)
            alive = child.is_running(int(order["pid"]), int(order["start_ticks"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return dict(order) if alive else None

    def start(self, way: ConsoleWay, *, run: str = "") -> bool:
        """Have the console recorded; False when it was already. `run` is for which run it is done.

        Raises BadInputError where a program is missing or a recorder of another way runs, ToolError where it fails.
        """
        described = way.model_dump(mode="json", exclude_none=True)
        present = self.running()
        if present is not None and present["way"] == described:
            return False
        if present is not None:
            sentence = f"{self.bench}: its console is recorded by another way ({present['words']}); end that first"
            raise BadInputError([f"{sentence}: storqual bench console {self.bench} stop"])
        missing = missing_program(way)
        if missing:
            raise BadInputError([f"{self.bench}: {missing}"])
        password = way.ipmi_sol.password if way.ipmi_sol else None
        if password is not None and "{{" in password.get_secret_value():
            sentence = "the password of its console is a template that only playbooks fill; set IPMI_PASSWORD, leave"
            raise BadInputError([f"{self.bench}: {sentence} `password` out, or have a campaign start the recorder"])
        source = source_of(way, self.virtual.serial if self.virtual else None)
        order = {
            "bench": self.bench,
            "words": way.words,
            "way": described,
            "run": run,
            "folder": str(self.places.folder),
            "source": source and asdict(source),
            # its card may come with the next power-on of a virtual bench
            "netconsole": {"listen": str(self.virtual.netconsole)} if self.virtual else described.get("netconsole"),
        }
        self._spawn(order)
        return True

    def _spawn(self, order: Mapping[str, Any]) -> None:
        argv = child.python("-m", "storqual.console.recorder")
        pipe = subprocess.PIPE
        process = child.start(argv, start_new_session=True, stdin=pipe, stdout=pipe, stderr=pipe)
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: PT018, S101 - pipes
        # the password goes by a pipe: arguments and environment of a process can be read by others
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode())
            process.stdin.close()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            answer = process.stdout.readline() if selector.select(_READY_S) else b""
        if answer == b"ready\n":
            process.stdout.close()
            process.stderr.close()
            # it is not waited for: it outlives this process
            process.returncode = 0
            return
        process.kill()
        lines = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        process.wait()
        why = lines[-1] if lines else f"it was not ready within {_READY_S:g} s"
        raise ToolError(f"{self.bench}: its console is not recorded: {why}")

    def stop(self) -> bool:
        """End the recorder; False when none ran. What it kept stays. Raises ToolError."""
        order = self.running()
        if order is None:
            return False
        pid, ticks = int(order["pid"]), int(order["start_ticks"])
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            if child.await_end(pid, ticks, _END_S):
                return True
        raise ToolError(f"{self.bench}: the recorder (process {pid}) does not end")

    def status(self) -> dict[str, Any]:
        """`recording`, and of one that runs: its way, whether it is connected, and since when it heard nothing."""
        order = self.running()
        if order is None:
            return {"bench": self.bench, "recording": False, "mark": self.mark()}
        here = {"bench": self.bench, "recording": True, "console": order["words"], "run": order["run"]}
        return {**here, "pid": order["pid"], **self._ask("status")}

    def mark(self) -> int:
        return self.recording.mark()

    def text_since(self, mark: int, by: str = SAID) -> str:
        """What the bench said since on its console, or by netconsole (`NET`), as clean text."""
        return said_text(self.recording.read(mark), by)

    def sysrq(self, letter: str) -> None:
        """Type BREAK and the letter, which the kernel takes for a command."""
        self._ask("sysrq", letter=letter)

    def send_break(self) -> None:
        self._ask("break")

    def expect(self, why: str, for_s: float) -> None:
        """Say beforehand that a panic is provoked within that time."""
        self._ask("expect", why=why, for_s=for_s)

    def expect_no_longer(self) -> None:
        self._ask("no_longer")

    @contextmanager
    def expecting(self, why: str, for_s: float) -> Iterator[None]:
        """Say beforehand that a panic is provoked, and when it is over; nothing where nothing is recorded."""
        with suppress(ToolError):
            self.expect(why, for_s)
        try:
            yield
        finally:
            with suppress(ToolError):
                self.expect_no_longer()

    def _ask(self, act: str, **more: object) -> dict[str, Any]:
        if self.running() is None:
            raise ToolError(
                f"{self.bench}: its console is not recorded; begin with: storqual bench console {self.bench} start"
            )
        try:
            with self.places.control() as path, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
                asking.settimeout(_ANSWER_S)
                asking.connect(path)
                asking.sendall(json.dumps({"do": act, **more}).encode() + b"\n")
                with asking.makefile("rb") as stream:
                    answer = parse_json(stream.readline(), _MOST_VALUES)
        except (OSError, ValueError) as problem:
            raise ToolError(f"{self.bench}: its recorder does not answer ({problem})") from None
        if not isinstance(answer, dict) or "refused" in answer:
            raise ToolError(f"{self.bench}: {answer['refused'] if isinstance(answer, dict) else 'no answer'}")
        return answer


def console_of(bench: str, places: BenchPlaces | None) -> ConsoleTyping | None:
    """What can be read and typed at: a virtual bench's console, and any other one's while it is recorded."""
    if places is not None:
        return VirtualConsole(places)
    recorder = Console(bench)
    order = recorder.running()
    # netconsole alone answers no key
    return recorder if order and set(order["way"]) != {"netconsole"} else None
