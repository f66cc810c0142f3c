# SPDX-License-Identifier: Apache-2.0
"""`bench_reboot` in a play, with a stand-in for ssh and a door that it knocks at."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.played_task import NEW, OLD, play_task, write_ssh

pytestmark = pytest.mark.plays

KNOCKS = 4

# What the plugin says to ssh: where is the bench, which boot is it, reboot, settle. It writes down each login.
SSH = Path(__file__).with_name("test_bench_reboot.ssh").read_text(encoding="utf-8")


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
        return play_task(self.folder, {"bench_reboot": {"limit_s": limit_s}}, *options)

    def logins(self) -> list[str]:
        """Whether the bench was up at each login."""
        return (self.folder / "logins").read_text(encoding="utf-8").split()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A bench that is up, its door open."""
    write_ssh(tmp_path, SSH, knocks=KNOCKS, new=NEW)
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
