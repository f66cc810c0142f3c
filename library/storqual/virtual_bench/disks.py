# SPDX-License-Identifier: Apache-2.0
"""The files behind a bench's disks: its own layer over the shared image, one sparse file for each drive with data."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storqual.virtual_bench.description import BenchDescription
from storqual.virtual_bench.image import BenchImage
from storqual.virtual_bench.places import BenchPlaces
from storqual_core.kit.command import run


def prepare_overlay(places: BenchPlaces, image: BenchImage, say: Callable[[str], None]) -> bool:
    """Make the bench's own layer over `image` when there is none, or when the one there is over another image.

    With EFI variables as they are before the first start, where it has some. Whether it was made. What a bench
    changed on its root disk is lost with an image that changed; it is said.
    """
    overlay = places.overlay
    stamp = overlay.with_suffix(".image")
    if overlay.is_file() and stamp.is_file() and stamp.read_text(encoding="ascii").strip() == image.digest:
        return False
    if overlay.exists():
        say("the bench image has changed: the bench starts from a fresh root disk")
        overlay.unlink()
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.root), str(overlay)]).expect()
    if image.firmware:
        shutil.copyfile(image.firmware[1], places.variables)
    stamp.write_text(image.digest + "\n", encoding="ascii")
    return True


def prepare_drives(places: BenchPlaces, description: BenchDescription) -> None:
    """Make missing drive files; a drive whose declared size changed is a new, empty drive."""
    places.drive("x").parent.mkdir(parents=True, exist_ok=True)
    for drive in (drive for drive in description.drives if not drive.service_time):
        file = places.drive(drive.device)
        if file.is_file() and file.stat().st_size == drive.size:
            continue
        with file.open("wb") as handle:
            handle.truncate(drive.size)


@dataclass(frozen=True)
class BenchKeys:
    """Files of one bench's keys: the client's pair, the host's pair, and the file that makes the host known."""

    client: Path
    host: Path
    known_hosts: Path

    @property
    def client_public(self) -> Path:
        return self.client.with_suffix(".pub")


def make_keys(places: BenchPlaces, name: str) -> BenchKeys:
    """The keys of bench `name`, made when missing, with its known_hosts file."""
    folder = places.keys
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = BenchKeys(
        client=folder / "client_ed25519", host=folder / "host_ed25519", known_hosts=folder / "known_hosts"
    )
    for file, comment in ((keys.client, "storqual client"), (keys.host, f"storqual {name}")):
        if not file.is_file() or not file.with_suffix(".pub").is_file():
            file.unlink(missing_ok=True)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(file)]).expect()
    algorithm, key = keys.host.with_suffix(".pub").read_text(encoding="ascii").split()[:2]
    keys.known_hosts.write_text(f"storqual-{name} {algorithm} {key}\n", encoding="ascii")
    return keys


def _quoted(path: Path) -> str:
    """A path as ssh_config takes it: in quotes, with its own escape and token characters made plain."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'


def ssh_config_text(name: str, keys: BenchKeys, port: int) -> str:
    """An ssh_config that reaches bench `name` on a loopback port and knows its host key beforehand."""
    return "\n".join(
        [
            f"Host {name}",
            "    HostName 127.0.0.1",
            f"    Port {port}",
            "    User root",
            f"    IdentityFile {_quoted(keys.client)}",
            "    IdentitiesOnly yes",
            "    IdentityAgent none",
            f"    UserKnownHostsFile {_quoted(keys.known_hosts)}",
            "    GlobalKnownHostsFile /dev/null",
            # the port changes with every power-on, the key does not
            f"    HostKeyAlias storqual-{name}",
            "    StrictHostKeyChecking yes",
            "    BatchMode yes",
            "    PreferredAuthentications publickey",
            "    LogLevel ERROR",
            "",
        ]
    )
