# SPDX-License-Identifier: Apache-2.0
"""One adapter or drive that is to be flashed, with its tool: versions, state, settings before and after.

A tool offers its functions by name (`capabilities`); what it does not offer is not asked. An image is the bytes that
the drop means, signed by whom the drop says.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator, Mapping, Sequence

from ...host.adapters import behind
from ...host.block_stack import DriveTarget
from ...kit.command import Runner
from ...kit.errors import BadInputError, ToolError
from ...kit.machine import Machine
from ...kit.settings import section_of
from ...tools import TOOLS
from ...tools.capabilities import AdapterFacts, FirmwareImage, VolumeFacts, offers
from ..drives import DriveSettings
from ..engine import apply, plan

_BUSY = re.compile(r"rebuild|rbld|copyback|cpybck|init|eras|sanit|expan|migrat|transform", re.IGNORECASE)
_TASK = re.compile(r"patrol ?read|consistency check|learn", re.IGNORECASE)
_RUNNING = re.compile(r"^(?:active|running|in progress|started)\b", re.IGNORECASE)
_WELL = re.compile(r"^(?:ok|optimal|opt|normal|good|healthy|online)\b", re.IGNORECASE)


def obstacles(adapter: AdapterFacts) -> list[str]:
    """Every reason in the adapter's state against writing firmware into it, as words; none when it is well."""
    found = [reason for volume in adapter.volumes for reason in _volume(volume)]
    if adapter.health and not _WELL.match(adapter.health):
        found.append(f"its state is {adapter.health}")
    found += [f"drive {drive.position} is {drive.state}" for drive in adapter.drives if _BUSY.search(drive.state)]
    found += [
        f"{label} is {value}"
        for label, value in adapter.settings.items()
        if _TASK.search(label) and _RUNNING.match(value)
    ]
    return found


def _volume(volume: VolumeFacts) -> Iterator[str]:
    name = f"volume {volume.name or volume.id}"
    for task, percent in volume.progress.items():
        yield f"{name}: {task} is under way ({percent:g} %)"
    if volume.healthy is not True and not volume.progress:
        yield f"{name} is {volume.state or 'in a state that its tool does not tell'}"


_PAGES = (0x01, 0x08, 0x0A, 0x1C)
"""Mode pages of a drive that are compared: error recovery, caching, control, informational exceptions."""


@dataclass(frozen=True)
class Subject:
    """What is flashed: `owner` is the adapter's alias or the drive's id, `index` what the tool calls it.

    `target` is the drive (None for an adapter); `pci` the adapter's address, empty for a drive.
    """

    owner: str
    tool: ModuleType
    index: str
    runner: Runner
    target: DriveTarget | None = None
    pci: str = ""
    sysfs: str = "/sys"

    def versions(self) -> Mapping[str, str]:
        """The version by component. Raises ToolError."""
        versions: Mapping[str, str] = self.tool.read_versions(self.runner, self.index)
        return versions

    def obstacles(self, image: FirmwareImage) -> list[str]:
        """What stands against this image, in its state and in what its tool can do. Raises ToolError."""
        found = obstacles(self._facts()) if "facts" in self._offered else []
        if "firmware.firmware_objections" in self._offered:
            found += self.tool.firmware_objections(self.runner, self.index, image)
        return found

    def settings(self) -> dict[str, Any]:
        """Everything that a flash could set back: settings, cache policies, links; for a drive its mode pages."""
        if self.target is not None:
            return self._drive_settings(self.target)
        found: dict[str, Any] = {}
        if "settings" in self._offered:
            values = self.tool.read_settings(self.runner, self.index)
            found.update({f"setting.{name}": value for name, value in values.items()})
        if "raid" in self._offered:
            for volume in self.tool.read_volumes(self.runner, self.index):
                found.update({f"volume.{volume.id}.{name}": value for name, value in volume.policies.items()})
        if "facts" in self._offered:
            for port in self._facts().ports:
                found.update({f"port.{port.name}.link": port.link, f"port.{port.name}.speed": port.speed})
        return found

    def put_back(self, wanted: Mapping[str, Any]) -> list[str]:
        """Set what can be set to `wanted`; what was done. What cannot be, the comparison shows. Raises ToolError."""
        if self.target is not None:
            pages = DriveSettings(self.runner, sysfs=self.sysfs)
            found = plan(pages, self.owner, self.target, wanted)
            return list(apply(pages, [found], save=lambda _memory: None).steps)
        steps = []
        volumes: dict[str, VolumeFacts] = {}
        if any(name.startswith("volume.") for name in wanted):
            volumes = {volume.id: volume for volume in self.tool.read_volumes(self.runner, self.index)}
        for qualified, value in wanted.items():
            kind, _, name = qualified.partition(".")
            volume, _, policy = name.rpartition(".")
            if kind == "setting" and "settings.write_setting" in self._offered:
                self.tool.write_setting(self.runner, self.index, name, value)
            elif kind == "volume" and "raid.set_policy" in self._offered and volume in volumes:
                self.tool.set_policy(self.runner, self.index, volumes[volume], policy, value)
            else:
                continue
            steps.append(f"{self.owner}: {qualified} put back to {value}")
        return steps

    def blocks(self) -> list[str]:
        """The kernel names of the block devices that it serves: those behind the adapter, or the drive itself."""
        if self.target is not None:
            return [self.target.node]
        machine = Machine(self.sysfs[: -len("/sys")])
        return [drive.name for drive in behind(machine, [self.pci])]

    def needs(self, image: FirmwareImage) -> str:
        """What the tool says that the image still needs; what the drop declares where the tool does not say."""
        if "firmware.activation" not in self._offered:
            return image.activation
        return str(self.tool.activation(self.runner, self.index, image))

    @property
    def starts_images(self) -> bool:
        """Whether the tool can have an image started without a boot."""
        return "firmware.activate" in self._offered

    @property
    def _offered(self) -> tuple[str, ...]:
        return offers(self.tool)

    def _facts(self) -> AdapterFacts:
        for adapter in self.tool.read_facts(self.runner).adapters:
            if adapter.index == self.index:
                found: AdapterFacts = adapter
                return found
        raise ToolError(f"{self.owner}: its tool does not show {self.index} any more")

    def _drive_settings(self, target: DriveTarget) -> dict[str, Any]:
        fields = {name: setting.field for name, setting in section_of("drive").items()}
        pages = DriveSettings(self.runner, sysfs=self.sysfs)
        found: dict[str, Any] = {}
        # an NVMe drive has of all these only WCE, on the caching page
        for page in _PAGES if not target.nvme else (0x08,):
            names = (
                ["WCE"]
                if target.nvme
                else [
                    name
                    for name, place in fields.items()
                    if place is not None and (place.page, place.subpage, place.protocol) == (page, 0, None)
                ]
            )
            # a drive need not have every page
            with suppress(ToolError):
                found.update(pages.read(target, names))
        return found


FIRMWARE_TOOLS: Mapping[str, str] = {
    "arcconf": "arcconf",
    "fwupd": "fwupd",
    "hbacmd": "hbacmd",
    "mnv_cli": "mvcli",
    "nvme": "nvme",
    "perccli": "storcli",
    "qaucli": "qaucli",
    "sas2flash": "sasflash",
    "sas3flash": "sasflash",
    "sg_write_buffer": "sg_write_buffer",
    "ssacli": "ssacli",
    "storcli": "storcli",
}
"""The file in `tools/` by the name that a drop writes under `tool`.

lsiutil is not here: its download is a dialogue of which no record exists, and a flash is no place to guess answers.
"""

DRIVE_TOOLS = ("fwupd", "nvme", "sg_write_buffer")
"""Those that flash drives; the others flash adapters."""

REDFISH = "redfish"
"""An adapter's firmware by way of the bench's management controller: from the control node, by a role."""


def tool_for(name: str, *, drives: bool) -> ModuleType:
    """The tool that flashes adapters, or with `drives` drives. Raises BadInputError that names those there are."""
    known = [tool for tool in FIRMWARE_TOOLS if (tool in DRIVE_TOOLS) == drives and _flashes(tool)]
    if name not in known:
        what = "a drive" if drives else "an adapter"
        raise BadInputError([f"firmware of {what}: found tool {name!r}, expected one of {', '.join(sorted(known))}"])
    return TOOLS[FIRMWARE_TOOLS[name]]()


def _flashes(name: str) -> bool:
    file = FIRMWARE_TOOLS[name]
    return file in TOOLS and "firmware.download" in offers(TOOLS[file]())


_CHUNK = 1 << 20
_PUBLIC_KEY = b"-----BEGIN PUBLIC KEY-----"


@dataclass(frozen=True)
class Image:
    """An image as a drop declares it: a file on the bench, its SHA-256, its version; `signature` and `key` are files.

    The key is a PEM public key (openssl) or an OpenPGP keyring (gpgv); without a signature the digest alone counts.
    """

    path: str
    sha256: str
    version: str
    component: str = "firmware"
    signature: str = ""
    key: str = ""

    @property
    def for_tool(self) -> FirmwareImage:
        """The same as a tool takes it."""
        return FirmwareImage(self.path, self.sha256, self.version, self.component)

    def record(self) -> dict[str, str]:
        """The same for saved.json."""
        return asdict(self)


def read_image(fields: Mapping[str, Any], what: str = "image") -> Image:
    """An image of a module's argument or of saved.json. Raises BadInputError with every problem."""
    texts = {name: str(fields.get(name) or "") for name in Image.__dataclass_fields__}
    problems = [f"{what}: found no {name}, expected one" for name in ("path", "sha256", "version") if not texts[name]]
    if bool(texts["signature"]) != bool(texts["key"]):
        problems.append(f"{what}: found a signature without a key or a key without one, expected both or none")
    if problems:
        raise BadInputError(problems)
    texts["component"] = texts["component"] or "firmware"
    return Image(**{**texts, "sha256": texts["sha256"].lower()})


def image_problems(runner: Runner, image: Image) -> list[str]:
    """Why the file is not the image that is meant; none when it is."""
    try:
        found = file_digest(Path(image.path))
    except OSError as problem:
        return [f"{image.path}: cannot be read: {problem.strerror}"]
    if found != image.sha256:
        return [f"{image.path}: found SHA-256 {found}, expected {image.sha256}"]
    if not image.signature:
        return []
    try:
        return _signature_problems(runner, image)
    except OSError as problem:
        return [f"{problem.filename}: cannot be read: {problem.strerror}"]
    except ToolError as problem:
        return [f"{image.path}: its signature could not be checked: {problem}"]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _signature_problems(runner: Runner, image: Image) -> list[str]:
    """Both the exit status and the tool's own word must say that the signature is good."""
    if Path(image.key).read_bytes().lstrip().startswith(_PUBLIC_KEY):
        argv = ["openssl", "dgst", "-sha256", "-verify", image.key, "-signature", image.signature, image.path]
        good = "Verified OK"
    else:
        argv = ["gpgv", "--status-fd", "1", "--keyring", image.key, image.signature, image.path]
        good = "[GNUPG:] VALIDSIG "
    ended = runner(argv, timeout=120.0)
    if ended.rc == 0 and any(line.startswith(good) for line in ended.stdout.splitlines()):
        return []
    return [f"{image.path}: its signature {image.signature} is not good by {image.key}: {ended.last_words()}"]


_RUN = re.compile(r"(\d+)")


def _parts(version: str) -> tuple[list[str], list[int]]:
    """What stands between the numbers, and the numbers."""
    words = _RUN.split(version.strip().lower())
    return words[::2], [int(number) for number in words[1::2]]


def same_version(one: str, other: str) -> bool:
    """Whether two texts name one version: equal but for case, leading zeros of a number, and blanks around."""
    return _parts(one) == _parts(other)


def compare(one: str, other: str) -> int | None:
    """-1, 0 or 1 as `one` is older, equal or newer; None when the two are not numbered alike (`2B3Q`, `GPK2`)."""
    (words, numbers), (others, other_numbers) = _parts(one), _parts(other)
    if words != others:
        length = min(len(words), len(others)) - 1
        dotted = all(set(word) <= set(".-") for word in (*words, *others))
        if not dotted or not length or numbers[:length] == other_numbers[:length]:
            return None
    return (numbers > other_numbers) - (numbers < other_numbers)


def _allows(allowed: str, version: str) -> bool:
    """`26.00` allows `26.00` and `26.00.03.00`, not `26.001`."""
    if same_version(allowed, version):
        return True
    return version.strip().lower().startswith(allowed.strip().lower() + ".")


def order_problem(found: str, wanted: str, allowed: Sequence[str] | None) -> str:
    """Why `wanted` may not replace `found`; empty when it may. `allowed`: the versions that a drop says it may.

    Without such a list only a newer version replaces an older one: a downgrade is possible, but it is somebody's
    decision, and so is a step between versions whose order nobody can tell.
    """
    if allowed is not None:
        if any(_allows(each, found) for each in allowed):
            return ""
        return f"it runs {found}, and {wanted} may replace only {', '.join(allowed)}; add it to `from` if it may"
    order = compare(found, wanted)
    if order == -1:
        return ""
    told = {None: "is not numbered like", 0: "is the same as", 1: "is newer than"}[order]
    return f"it runs {found}, which {told} {wanted}; name {found} in `from` if that step is meant"
