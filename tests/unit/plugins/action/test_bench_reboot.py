# SPDX-License-Identifier: Apache-2.0
"""`bench_reboot` in a play, with a stand-in for ssh and a door that it knocks at."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[4]
OLD, NEW = "0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11", "1d8e5b1f-1a6d-4b4a-8e1d-3d8b5b4e9b22"
KNOCKS = 4

# What the plugin says to ssh: where is the bench, which boot is it, reboot, settle. It writes down each login.
SSH = """\
#!{python}
import pathlib, sys
folder = pathlib.Path({folder!r})
if "-O" in sys.argv:
    sys.exit(255)
if "-G" in sys.argv:
    print((folder / "config").read_text())
    sys.exit(0)
boot, command = folder / "boot", sys.argv[-1]
with (folder / "logins").open("a") as log:
    log.write("up\\n" if boot.exists() else "down\\n")
if "--no-block reboot" in command:
    if not (folder / "hangs").exists():
        boot.unlink()
elif "echo b > /proc/sysrq-trigger" in command:
    boot.write_text({new!r})
    sys.exit(255)
elif not boot.exists():
    if (folder / "logins").read_text().count("down") == {knocks}:
        boot.write_text({new!r})
    sys.exit(255)
elif "boot_id" in command:
    print(boot.read_text(), "6.1.0-1-amd64", sep="\\n")
else:
    print("running")
"""


@dataclass
class Lab:
    """A bench that is a file with a boot id, gone while it boots; its door says SSH's name at the last knock."""

    folder: Path
    server: socket.socket

    def serve(self) -> None:
        """Open to everybody, as QEMU's user network is; the name is said only by a bench that is up."""
        knocks = 0
        while True:
            try:
                caller, _ = self.server.accept()
            except OSError:
                return
            with caller:
                knocks += 1
                if knocks == KNOCKS and not (self.folder / "hangs").exists():
                    (self.folder / "boot").write_text(NEW, encoding="utf-8")
                if (self.folder / "boot").exists():
                    caller.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    def reboot(self, *options: str, limit_s: int = 60) -> tuple[int, dict[str, object]]:
        """Exit code of a play that reboots the bench, and what the task returned."""
        left = self.folder / "left.json"
        keep = {"content": "{{ booted | to_json }}", "dest": str(left), "mode": "0644"}
        tasks = [
            {"name": "Reboot", "bench_reboot": {"limit_s": limit_s}, "register": "booted", "ignore_errors": True},
            {"name": "Keep it", "ansible.builtin.copy": keep, "delegate_to": "localhost", "check_mode": False},
        ]
        plays = [{"name": "Play", "hosts": "bench", "gather_facts": False, "tasks": tasks}]
        (self.folder / "play.yml").write_text(json.dumps(plays), encoding="utf-8")
        told = {"ansible_connection": "ssh", "ansible_ssh_executable": str(self.folder / "ssh")}
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        hosts = {"all": {"hosts": {"bench": told, "localhost": local}}}
        (self.folder / "hosts.yml").write_text(json.dumps(hosts), encoding="utf-8")
        ended = subprocess.run(
            [
                Path(sys.executable).parent / "ansible-playbook",
                *options,
                "-i",
                self.folder / "hosts.yml",
                self.folder / "play.yml",
            ],
            env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert left.exists(), ended.stdout + ended.stderr
        return ended.returncode, json.loads(left.read_text(encoding="utf-8"))

    def logins(self) -> list[str]:
        """Whether the bench was up at each login."""
        return (self.folder / "logins").read_text(encoding="utf-8").split()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A bench that is up, its door open."""
    script = SSH.format(python=sys.executable, folder=str(tmp_path), knocks=KNOCKS, new=NEW)
    (tmp_path / "ssh").write_text(script, encoding="utf-8")
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "boot").write_text(OLD, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (tmp_path / "config").write_text(f"hostname 127.0.0.1\nport {port}\n", encoding="utf-8")
        made = Lab(tmp_path, server)
        thread = threading.Thread(target=made.serve)
        thread.start()
        yield made
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_nobody_logs_in_before_the_bench_says_its_name(lab: Lab) -> None:
    code, result = lab.reboot()
    assert code == 0
    assert (result["previous_boot_id"], result["boot_id"], result["system"]) == (OLD, NEW, "running")
    assert "down" not in lab.logins()


def test_a_bench_behind_another_host_is_asked_by_logins_alone(lab: Lab) -> None:
    (lab.folder / "config").write_text("hostname bench\nport 22\nproxyjump gate\n", encoding="utf-8")
    code, result = lab.reboot()
    assert code == 0
    assert result["boot_id"] == NEW
    assert lab.logins().count("down") == KNOCKS


def test_a_shutdown_that_never_ends_is_ended_by_the_kernel_itself(lab: Lab) -> None:
    (lab.folder / "hangs").touch()
    code, booted = lab.reboot(limit_s=2)
    assert booted["ended_by"] == "restart by the kernel"
    assert (code, booted["boot_id"], booted["previous_boot_id"]) == (0, NEW, OLD)


def test_check_mode_reboots_nothing(lab: Lab) -> None:
    """It says that it would."""
    code, result = lab.reboot("--check")
    assert code == 0
    assert result["changed"]
    assert not (lab.folder / "logins").exists()
