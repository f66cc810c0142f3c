# SPDX-License-Identifier: Apache-2.0
"""What labs have, on loopback: ser2net and conserver before a program that plays a bench, ipmitool and a BMC."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from storqual.console.console import Console
from storqual.inputs.console_way import Conserver, ConsoleWay, IpmiSol
from tests.support.played_console import PANIC, ConsoleServer, until

_BENCH = """#!{python}
import os, tty
if os.isatty(0):
    tty.setraw(0)
os.write(1, {said!r})
while data := os.read(0, 100):
    os.write(1, b"typed " + repr(data).encode() + b"\\r\\n")
"""


def needs(program: str, package: str) -> None:
    if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin"):
        pytest.skip(f"{program} is not here; install {package}")


@pytest.fixture
def played(tmp_path: Path) -> Path:
    program = tmp_path / "bench"
    program.write_text(_BENCH.format(python=sys.executable, said=PANIC.replace("\n", "\r\n").encode()))
    program.chmod(0o755)
    return program


def listening(port: int) -> Callable[[], bool]:
    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    return answers


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [int(one.getsockname()[1]) for one in made]


@contextmanager
def serving(argv: Sequence[str], answers: Callable[[], bool]) -> Iterator[None]:
    """A server that `answers` when it is there; it and what it started are ended afterwards."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    process = subprocess.Popen(
        argv,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(answers)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def test_ser2net_is_heard_and_typed_at(console: Console, played: Path, tmp_path: Path) -> None:
    needs("ser2net", "ser2net")
    (port,) = free_ports(1)
    settings = tmp_path / "ser2net.yaml"
    settings.write_text(
        f"%YAML 1.1\n---\nconnection: &bench\n  accepter: telnet,tcp,127.0.0.1,{port}\n  connector: stdio,{played}\n"
        "  options:\n    kickolduser: true\n"
    )
    with serving(["ser2net", "-n", "-c", str(settings), "-P", str(tmp_path / "pid")], listening(port)):
        console.start(ConsoleWay(telnet=f"127.0.0.1:{port}"))
        until(lambda: "end Kernel panic" in console.text_since(0))
        console.sysrq("w")
        until(lambda: "typed b'w'" in console.text_since(0))
        assert "\ufffd" not in console.text_since(0)


def test_conserver_is_heard_and_typed_at(console: Console, played: Path, tmp_path: Path) -> None:
    needs("conserver", "conserver-server")
    needs("console", "conserver-client")
    port, base = free_ports(2)
    settings = tmp_path / "conserver.cf"
    settings.write_text(
        'config * { }\ndefault * { logfile ""; rw *; master localhost; type exec; }\n'
        f"console bench07 {{ exec {played}; }}\naccess * {{ trusted 127.0.0.1; }}\n"
    )
    files = ["-C", str(settings), "-L", str(tmp_path / "log"), "-P", str(tmp_path / "pid")]
    with serving(["conserver", *files, "-M", "127.0.0.1", "-p", str(port), "-b", str(base), "-n"], listening(port)):
        console.start(ConsoleWay(conserver=Conserver(server="127.0.0.1", name="bench07", port=port)))
        until(lambda: "Enter `^Ec?' for help" in console.text_since(0))
        console.sysrq("w")
        until(lambda: "typed b'w'" in console.text_since(0))


_LAN = Path(__file__).with_suffix(".lan").read_text(encoding="utf-8")
_EMULATED = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n"


def test_serial_over_lan_of_a_simulated_bmc_is_heard_and_typed_at(
    console: Console, server: ConsoleServer, tmp_path: Path
) -> None:
    """`ipmitool` itself, and the simulator of OpenIPMI in the place of a BMC."""
    needs("ipmi_sim", "openipmi")
    needs("ipmitool", "ipmitool")
    lan, serial = free_ports(2)
    word = "canary7Qx"
    (tmp_path / "state").mkdir(exist_ok=True)
    (tmp_path / "lan.conf").write_text(_LAN.format(lan=lan, serial=serial, console=server.port, word=word))
    (tmp_path / "bench.emu").write_text(_EMULATED)
    files = ["-c", str(tmp_path / "lan.conf"), "-f", str(tmp_path / "bench.emu"), "-s", str(tmp_path / "state")]
    with serving(["ipmi_sim", *files, "-n"], server.listens.is_set):
        sol = IpmiSol(host="127.0.0.1", port=lan, user="storqual", password=word, cipher=3)
        console.start(ConsoleWay(ipmi_sol=sol))
        until(lambda: "SOL Session operational" in console.text_since(0))
        server.say(PANIC.replace("\n", "\r\n").encode())
        until(lambda: "end Kernel panic" in console.text_since(0))
        console.sysrq("w")
        until(lambda: server.typed.endswith(b"w"))
