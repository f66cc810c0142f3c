# SPDX-License-Identifier: Apache-2.0
"""Services that switch power, as a lab has them, on loopback in front of a switch that is a file.

Each is the real program with a file in the place of a bench. A program that is not installed is a reason to skip.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO

import pytest

_READY_S = 20.0

SWITCH = Path(__file__).with_suffix(".switch").read_text(encoding="utf-8")


@dataclass(frozen=True)
class FileSwitch:
    """`program` switches the file, as a bench's own power program switches a bench."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> "FileSwitch":
        switch = cls(folder)
        switch.file.write_text("on\n", encoding="utf-8")
        switch.program.write_text(SWITCH.format(file=switch.file), encoding="utf-8")
        switch.program.chmod(0o755)
        return switch

    @property
    def file(self) -> Path:
        return self.folder / "power"

    @property
    def program(self) -> Path:
        return self.folder / "switch"

    @property
    def state(self) -> str:
        return subprocess.run([self.program, "state"], capture_output=True, text=True, check=True).stdout.strip()

    def turn(self, action: str) -> None:
        subprocess.run([self.program, action], check=True)


def needed(*programs: str) -> None:
    """Skip where one of the programs is not installed."""
    for program in programs:
        if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"):
            pytest.skip(f"{program} is not installed")


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(
    argv: Sequence[str], folder: Path, stdin: int | IO[bytes] = subprocess.DEVNULL, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A program of its own while the block lasts; its output is in `<folder>/<program>.log`."""
    log = folder / f"{Path(argv[0]).name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            stdin=stdin,
            stdout=output,
            stderr=output,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _READY_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, "the service ended"
            assert time.monotonic() < end, f"nobody listens at port {port}"
            time.sleep(0.05)
        else:
            return


LAN = Path(__file__).with_suffix(".lan").read_text(encoding="utf-8")
EMU = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""


@contextmanager
def management_controller(switch: FileSwitch, password: str) -> Iterator[int]:
    """OpenIPMI's simulator; the UDP port of its lanplus. The bench is off at the beginning."""
    needed("ipmi_sim", "ipmitool")
    port, folder = free_port(socket.SOCK_DGRAM), switch.folder
    switch.file.write_text("off\n", encoding="utf-8")
    text = LAN.format(port=port, serial=free_port(), switch=switch.program, password=password, now="false")
    (folder / "lan.conf").write_text(text, encoding="utf-8")
    (folder / "bench.emu").write_text(EMU, encoding="utf-8")
    state = folder / "ipmi-state"
    state.mkdir()
    argv = ["ipmi_sim", "-c", "lan.conf", "-f", "bench.emu", "-s", str(state), "-n"]
    with running(argv, folder) as process:
        await_datagrams(port, process)
        yield port


INTERRUPTED = Path(__file__).with_suffix(".interrupted").read_text(encoding="utf-8")


@contextmanager
def interrupting_controller(folder: Path, programs: Path, password: str) -> Iterator[tuple[int, Path]]:
    """A controller made of pyghmi; the UDP port of its lanplus, and the file that is there when an NMI was sent."""
    needed("ipmitool")
    port, nmi, secret = free_port(socket.SOCK_DGRAM), folder / "nmi", folder / "secret"
    secret.write_text(f"{password}\n", encoding="utf-8")
    words = [str(programs / "python"), "-c", INTERRUPTED, str(port), str(nmi)]
    with secret.open("rb") as given, running(words, folder, stdin=given) as process:
        await_datagrams(port, process)
        yield port, nmi


def await_datagrams(port: int, process: subprocess.Popen[bytes]) -> None:
    wanted, end = f":{port:04X}", time.monotonic() + _READY_S
    while not any(wanted in line.split()[1] for line in Path("/proc/net/udp").read_text().splitlines()[1:]):
        assert process.poll() is None, "the service ended"
        assert time.monotonic() < end, f"nobody holds port {port}"
        time.sleep(0.05)


@contextmanager
def speaking(said: bytes = b"who are you?\r\n", again: bytes = b"") -> Iterator[str]:
    """The address of a server that says this to a question, and `again` ten times a second while somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer = server.accept()[0]
            with peer, suppress(OSError):
                peer.recv(1 << 16)
                peer.sendall(said)
                while again:
                    peer.sendall(again)
                    time.sleep(0.1)

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def power_daemon(switches: dict[str, FileSwitch], folder: Path) -> Iterator[str]:
    """pdudaemon with an outlet for each switch, by the name of its PDU; the address."""
    needed("pdudaemon")
    port = free_port()
    pdus = {
        name: {"driver": "localcmdline", "cmd_on": f"{switch.program} on %s", "cmd_off": f"{switch.program} off %s"}
        for name, switch in switches.items()
    }
    daemon = {"hostname": "127.0.0.1", "port": port, "logging_level": "INFO", "listener": "http"}
    conf = folder / "pdudaemon.conf"
    conf.write_text(json.dumps({"daemon": daemon, "pdus": pdus}), encoding="utf-8")
    argv = ["pdudaemon", "--conf", str(conf), "--listener", "http", "--logfile", str(folder / "pdu.log")]
    with running(argv, folder, HOME=str(folder)) as process:
        await_port(port, process)
        yield f"http://127.0.0.1:{port}"


def python_environment(folder: Path, *packages: str) -> Path:
    """The folder of the programs of a virtual environment with `packages`; skip where they do not install."""
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, check=False, timeout=120)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages]
    if made.returncode or subprocess.run(pip, capture_output=True, check=False, timeout=300).returncode:
        pytest.skip(f"{', '.join(packages)} cannot be installed here")
    return folder / "bin"


class _Relay(BaseHTTPRequestHandler):
    """A switch over HTTP: `0` and `1` for labgrid, systems with their power state from sushy-tools."""

    switch: FileSwitch

    def do_GET(self) -> None:
        self._answer(b"1" if self.switch.state == "on" else b"0")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body in (b"0", b"1"):
            self.switch.turn("on" if body == b"1" else "off")
        elif (state := json.loads(body).get("power_state")) in ("On", "Off"):
            self.switch.turn(state.lower())
        self._answer(b"")

    do_POST = do_PUT  # noqa: N815 - the library's name

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def http_switch(switch: FileSwitch) -> Iterator[str]:
    relay = type("Relay", (_Relay,), {"switch": switch})
    with ThreadingHTTPServer(("127.0.0.1", 0), relay) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def redfish_service(switch: FileSwitch, programs: Path, password: str) -> Iterator[tuple[str, Path]]:
    """sushy-emulator over TLS with its slow system; the address, and the certificate that it shows."""
    needed("openssl")
    folder, port = switch.folder, free_port()
    certificate, key = folder / "bmc.pem", folder / "bmc.key"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    bcrypt = "import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.read().encode(), bcrypt.gensalt(4)).decode())"
    hashed = subprocess.run(
        [programs / "python", "-c", bcrypt], input=password, capture_output=True, text=True, check=True
    )
    (folder / "htpasswd").write_text(f"storqual:{hashed.stdout.strip()}\n", encoding="utf-8")
    system = {
        "uuid": "b7a1c1f0-0000-4000-8000-000000000001",
        "name": "bench",
        "power_state": "On",
        "external_notifier": True,
        "nics": [],
    }
    (folder / "state").mkdir()
    with http_switch(switch) as relay:
        settings = {
            "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
            "SUSHY_EMULATOR_LISTEN_PORT": port,
            "SUSHY_EMULATOR_STATE_DIR": str(folder / "state"),
            "SUSHY_EMULATOR_FAKE_SYSTEMS": [system],
            "SUSHY_EMULATOR_SSL_CERT": str(certificate),
            "SUSHY_EMULATOR_SSL_KEY": str(key),
            "SUSHY_EMULATOR_AUTH_FILE": str(folder / "htpasswd"),
            "EXTERNAL_NOTIFICATION_URL": f"{relay}/redfish",
        }
        lines = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
        (folder / "sushy.conf").write_text(lines, encoding="utf-8")
        argv = [str(programs / "sushy-emulator"), "--fake", "--config", str(folder / "sushy.conf")]
        with running(argv, folder) as process:
            await_port(port, process)
            yield f"https://127.0.0.1:{port}", certificate


@dataclass(frozen=True)
class LabgridLab:
    """A coordinator of labgrid with the place `bench1`, and the exporter of its power port."""

    coordinator: str
    programs: Path
    exporter: subprocess.Popen[bytes]

    def client(self, *words: str, user: str = "") -> str:
        argv = [self.programs / "labgrid-client", "-x", self.coordinator, "-p", "bench1", *words]
        env = {**os.environ, **({"LG_USERNAME": user} if user else {})}
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60, env=env).stdout

    @property
    def holder(self) -> str:
        """The user who has acquired the place; empty for nobody."""
        (line,) = [line for line in self.client("show").splitlines() if line.startswith("  acquired:")]
        return line.partition("/")[2]

    def stop_exporter(self) -> None:
        """Returns when the coordinator knows."""
        self.exporter.terminate()
        self.exporter.wait(10)
        end = time.monotonic() + _READY_S
        while re.search("^(Matching|Acquired) resource", self.client("show"), re.MULTILINE):
            assert time.monotonic() < end, "the coordinator still shows what is gone"


@contextmanager
def labgrid_lab(switch: FileSwitch, programs: Path) -> Iterator[LabgridLab]:
    folder, port = switch.folder, free_port()
    coordinator = f"127.0.0.1:{port}"
    with http_switch(switch) as relay:
        resource = {"model": "rest", "host": f"{relay}/p/{{index}}", "index": "1"}
        exported = {"bench1": {"NetworkPowerPort": resource}}
        (folder / "exporter.yaml").write_text(json.dumps(exported), encoding="utf-8")
        with running([str(programs / "labgrid-coordinator"), "-l", coordinator], folder) as process:
            await_port(port, process)
            argv = [str(programs / "labgrid-exporter"), "-c", coordinator, "-n", "labpc", "--hostname", "127.0.0.1"]
            with running([*argv, "exporter.yaml"], folder) as exporter:
                lab = LabgridLab(coordinator, programs, exporter)
                lab.client("create")
                lab.client("add-match", "labpc/bench1/*")
                end = time.monotonic() + _READY_S
                while "Matching resource" not in lab.client("show"):
                    assert time.monotonic() < end, "the exporter shows nothing"
                yield lab


def redfish_collection(folder: Path, programs: Path) -> Path:
    """A folder of collections with community.general's part for Redfish; skip where it cannot be had."""
    download = [str(programs / "pip"), "download", "--quiet", "--no-deps", "--dest", str(folder), "ansible==12.3.0"]
    if subprocess.run(download, capture_output=True, check=False, timeout=300).returncode:
        pytest.skip("community.general cannot be had here")
    (wheel,) = folder.glob("ansible-*.whl")
    general = "ansible_collections/community/general/"
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(general) and ("redfish" in name or "/module_utils/" in name or name.count("/") <= 4):
                archive.extract(name, folder)
    return folder
