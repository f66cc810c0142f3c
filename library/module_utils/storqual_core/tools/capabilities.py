# SPDX-License-Identifier: Apache-2.0
"""What a tool can offer: the functions by their names, and the facts and requests that go in and out.

A tool is a module in `tools/`. It offers a capability by having its functions at module level; nothing is declared
and nothing inherited. `offers` says which ones a module has, the protocols below say how they are called. An
adapter's `index` is the tool's own word for it (`0`, a slot, a WWN), as `read_facts` gives it. Every function that
runs a command takes the runner first and raises ToolError with a sentence: what failed, what the tool said, which
command it was, and, where a person can do something, what.

A tool that offers facts names the commands it stands for in `PROGRAMS`, the preferred one first: facts are asked of
tools of which one is installed, and `command.run_first` runs the first that is.

Sizes are bytes; what a tool does not say is None or empty, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable, Mapping, Protocol, Sequence, Sized, TypeVar, Union

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.quantities import format_size

Value = Union[int, str]
"""A setting in the plain form of `settings.py`: whole numbers, bytes, words."""

ACTIVATIONS = ("none", "reset", "reboot", "power cycle")
"""What a downloaded image still needs until it runs, least first; the words of a drop's `activation`."""

DELAYED_TASK = "delayed task"
"""The name in a volume's progress of a task that waits and that its tool does not name."""


@dataclass(frozen=True)
class PortFacts:
    """One port or phy: rate as printed (`12.0 Gbit/s`), `link` as printed, error counters by the tool's names."""

    name: str
    wwn: str = ""
    speed: str = ""
    link: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class EnclosureFacts:
    """One enclosure or backplane as the tool sees it."""

    position: str
    vendor: str = ""
    model: str = ""
    slots: int | None = None
    state: str = ""


@dataclass(frozen=True)
class DriveFacts:
    """One drive; `position` is what the tool calls it in commands (`252:4`), `wwn` normalised, `size` in bytes.

    A figure that was rounded when it was printed (`960 GB`) is no size: `size_range` is then the least and the
    greatest that it can mean, and `size` is the figure itself. `settings` is what else the tool printed of the drive.
    `unread` is why it could not be read whole (empty: it was): what needs such a drive is refused.
    """

    position: str
    wwn: str = ""
    serial: str = ""
    vendor: str = ""
    model: str = ""
    revision: str = ""
    size: int | None = None
    state: str = ""
    media: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    size_range: tuple[int, int] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    unread: str = ""


@dataclass(frozen=True)
class VolumeFacts:
    """One volume: `id` as commands name it, `level` as in a drop (`5`), sizes in bytes, members by position.

    `policies` has canonical names of the section `raid` where the tool's word is known; `progress` is percent by
    task (`initialise`, `rebuild`, `reshape`, `check`), empty when nothing is under way; `device` the block device,
    `uuid` for volumes that have one in place of a WWN. `settings` is what else the tool printed of it, `size_range`
    what a rounded size can mean, and `unread` why it could not be read whole, as for a drive.
    """

    id: str
    name: str = ""
    wwn: str = ""
    level: str = ""
    state: str = ""
    size: int | None = None
    strip: int | None = None
    members: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()
    policies: Mapping[str, Value] = field(default_factory=dict)
    progress: Mapping[str, float] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    device: str = ""
    uuid: str = ""
    healthy: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    size_range: tuple[int, int] | None = None
    unread: str = ""


@dataclass(frozen=True)
class AdapterFacts:
    """One adapter; `pci` as `0000:3b:00.0`, `firmware` version by component, `settings` as the tool prints them.

    `unread` is why it, its drives or its volumes could not be read (empty: they were).
    """

    index: str
    model: str = ""
    vendor: str = ""
    serial: str = ""
    pci: str = ""
    driver: str = ""
    driver_version: str = ""
    firmware: Mapping[str, str] = field(default_factory=dict)
    health: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    drives: tuple[DriveFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    ports: tuple[PortFacts, ...] = ()
    enclosures: tuple[EnclosureFacts, ...] = ()
    unread: str = ""

    def unreadable(self) -> list[str]:
        """What of it could not be read, a sentence each."""
        parts = [(f"volume {volume.id}", volume.unread) for volume in self.volumes]
        parts += [(f"drive {drive.position}", drive.unread) for drive in self.drives]
        return [*([self.unread] if self.unread else ()), *(f"{name}: {why}" for name, why in parts if why)]


@dataclass(frozen=True)
class ToolFacts:
    """Everything a tool said; `notes` are its lines that were not understood, kept as they are."""

    adapters: tuple[AdapterFacts, ...] = ()
    notes: tuple[str, ...] = ()


Object = TypeVar("Object", DriveFacts, VolumeFacts, AdapterFacts)


def all_but_odd(objects: Sequence[Object], beside: Sized = ()) -> tuple[Object, ...]:
    """The objects of an answer; of a volume that is not known whole no members, for half a list is none.

    Raises ToolError, with the first one's reason, when none of them could be read, and nothing `beside` them.
    """
    if objects and not beside and all(each.unread for each in objects):
        raise ToolError(objects[0].unread)
    known: list[Any] = [_without_members(each) if isinstance(each, VolumeFacts) else each for each in objects]
    return tuple(known)


def read_or_why(read: Callable[[], Object], unread: Object) -> Object:
    """What is read; where it cannot be, `unread` with the reason, which says nothing against the others."""
    try:
        return read()
    except ToolError as problem:
        return replace(unread, unread=str(problem))


def all_controllers(read: Callable[[str], ToolFacts], indices: Iterable[str]) -> ToolFacts:
    """The facts of every controller; one that cannot be read is told as unread. Raises ToolError when none can be."""
    answers = [_controller_or_why(read, index) for index in indices]
    adapters = all_but_odd([adapter for facts in answers for adapter in facts.adapters])
    return ToolFacts(adapters, tuple(note for facts in answers for note in facts.notes))


def _controller_or_why(read: Callable[[str], ToolFacts], index: str) -> ToolFacts:
    try:
        return read(index)
    except ToolError as problem:
        return ToolFacts((AdapterFacts(index, unread=str(problem)),))


def with_tasks(facts: ToolFacts, read: Callable[[], Mapping[str, Mapping[str, float]]]) -> ToolFacts:
    """The facts of one controller with the percentages of what is under way, which `read` gives by volume."""
    adapter = facts.adapters[0]
    if not adapter.volumes:
        return facts
    try:
        tasks = read()
        volumes = [
            replace(each, progress={**each.progress, **tasks[each.id]}, healthy=False) if tasks.get(each.id) else each
            for each in adapter.volumes
        ]
    except ToolError as problem:
        # what is under way is not known, and what is there is
        volumes = [replace(each, healthy=None, unread=each.unread or str(problem)) for each in adapter.volumes]
    return ToolFacts((replace(adapter, volumes=tuple(volumes)),), facts.notes)


def _without_members(volume: VolumeFacts) -> VolumeFacts:
    return replace(volume, members=(), spares=(), failed=(), healthy=None) if volume.unread else volume


@dataclass(frozen=True)
class Spelling:
    """How a tool reads and writes one setting, and how that is known.

    `verified`: `live` (done on the virtual bench), `recorded` (seen in a recorded output), `documented only` (a
    manual, or other people's code that runs it), or `probed` (the tool is asked for its own help before the first
    write).
    """

    read: str
    write: str
    verified: str


@dataclass(frozen=True)
class FirmwareImage:
    """An image as a file on the bench; `component` where a tool has several (firmware, bios).

    `activation` is how the drop wants it started, one of ACTIVATIONS: some tools must be told while they download.
    """

    path: str
    sha256: str
    version: str = ""
    component: str = "firmware"
    activation: str = "none"

    def whole_only(self) -> tuple[str, ...]:
        """The objection of a tool whose images hold all parts of an adapter and are written as one."""
        objection = f"an image of this tool has all parts of an adapter; declare it without {self.component}"
        return () if self.component == "firmware" else (objection,)


@dataclass(frozen=True)
class VolumeRequest:
    """A volume that is to be made: `members` and `spares` by the tool's positions, `strip` in bytes.

    `uuid` is for tools that let it be chosen, so that what an interrupted run made is known again; `policies` by
    canonical name. None and empty leave the tool's default.
    """

    level: str
    members: tuple[str, ...]
    strip: int | None = None
    name: str = ""
    policies: Mapping[str, Value] = field(default_factory=dict)
    initialisation: str = ""
    spares: tuple[str, ...] = ()
    uuid: str = ""
    device: str = ""

    def strip_objection(self, least: int, most: int) -> str:
        """Why a tool that takes powers of two between these (bytes) does not take the strip; empty when it does."""
        strip = self.strip
        if strip is None or (least <= strip <= most and not strip & (strip - 1)):
            return ""
        span = f"from {format_size(least)} to {format_size(most)}"
        return f"its strips are powers of two {span}, and {format_size(strip)} is declared"

    def asks(self, *parts: str) -> list[str]:
        """Of `policies`, `strip`, `name`, `spares`, `initialisation` what is not left to the tool, in words."""
        words = {
            "policies": list(self.policies),
            "strip": [] if self.strip is None else ["a strip"],
            "name": ["name"] if self.name else [],
            "spares": ["hot spares"] if self.spares else [],
            "initialisation": [f"the initialisation {self.initialisation}"]
            if self.initialisation not in ("", "none")
            else [],
        }
        return [word for part in parts for word in words[part]]


@dataclass(frozen=True)
class AdapterEvent:
    """One line of an adapter's log; `time` as printed, `severity` in the tool's word."""

    sequence: int | None
    time: str
    severity: str
    text: str


@dataclass(frozen=True)
class BackgroundWork:
    """What an adapter does beside the commands of the host, a sentence each, and what of that it does not tell.

    `pci` is empty where it is not told.
    """

    index: str
    pci: str
    work: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class Facts(Protocol):
    """What is there."""

    PROGRAMS: tuple[str, ...]

    def read_facts(self, runner: Runner) -> ToolFacts:
        """All adapters the tool sees; none found is no error."""


class Settings(Protocol):
    """Settings of an adapter by the canonical names of the section `nvram` (or `raid`)."""

    SETTINGS: Mapping[str, Spelling]

    def read_settings(self, runner: Runner, index: str) -> Mapping[str, Value]:
        """The canonical settings that this adapter has."""

    def objection(self, runner: Runner, index: str, name: str, value: Value) -> str:
        """Why a value cannot be written, asked before anything is written; empty when it can."""

    def write_setting(self, runner: Runner, index: str, name: str, value: Value) -> None:
        """Write one; the caller reads back. What is not verified is probed or refused."""


class FirmwareTool(Protocol):
    """Versions and downloads."""

    def read_versions(self, runner: Runner, index: str) -> Mapping[str, str]:
        """The version by component; what waits for a restart is `<component>.pending`."""

    def firmware_objections(self, runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:
        """Why this adapter or drive would not take an image; asked before anything is written."""

    def download(self, runner: Runner, index: str, image: FirmwareImage) -> Sequence[str] | None:
        """Put an image into an adapter or drive; the caller reads the version back. What was seen, if anything."""

    def activation(self, runner: Runner, index: str, image: FirmwareImage) -> str:
        """What the image still needs until it runs, one of ACTIVATIONS."""

    def activate(self, runner: Runner, index: str, image: FirmwareImage) -> None:
        """Have a downloaded image start without a boot; what is served by the adapter or drive stops meanwhile."""


class Raid(Protocol):
    """Volumes. `FREE` are the states of drives that belong to nothing, where a tool has words for it."""

    FREE: tuple[str, ...]

    def read_volumes(self, runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
        """All volumes of an adapter."""

    def objections(self, request: VolumeRequest) -> tuple[str, ...]:
        """What this tool cannot make of a request, a sentence each; asked before anything is written."""

    def create(self, runner: Runner, index: str, request: VolumeRequest) -> None:
        """Make a volume; the caller finds it by reading back."""

    def delete(self, runner: Runner, index: str, volume: VolumeFacts) -> None:
        """Delete a volume with all that is on it; whether that is allowed was decided before."""

    def set_policy(self, runner: Runner, index: str, volume: VolumeFacts, name: str, value: Value) -> None:
        """Set one of `read_policy`, `write_policy`, `io_policy`, `disk_cache`, `bitmap`, `name`."""

    def initialise(self, runner: Runner, index: str, volume: VolumeFacts, kind: str) -> None:
        """Start writing the volume: `fast` (its ends) or `full` (all of it). Destroys what is on it."""

    def progress(self, runner: Runner, index: str, volume: VolumeFacts) -> Mapping[str, float]:
        """Percent done by task of what is under way on a volume, for tools whose `read_volumes` does not tell it."""


class Events(Protocol):
    """The adapter's own log."""

    def read_events(self, runner: Runner, index: str) -> tuple[AdapterEvent, ...]:
        """Oldest first."""


class Background(Protocol):
    """Work that takes time from the commands of the host, and that nobody asked for: it spoils a measurement."""

    def read_background(self, runner: Runner) -> tuple[BackgroundWork, ...]:
        """Every adapter with what is under way on it."""


class Resolve(Protocol):
    """From a block device to what is behind it."""

    def resolve(self, runner: Runner, node: str) -> tuple[str, ...]:
        """The drives behind `node`: WWN, or serial where one has none; empty when the node is not the tool's."""


@dataclass(frozen=True)
class Package:
    """One installed package; `complete` is false for what a cut transaction, or a removal, left half there."""

    name: str
    version: str
    complete: bool


@dataclass(frozen=True)
class Kernel:
    """A kernel that a package carries; `release` is its `uname -r`, read from the files of the package."""

    package: str
    version: str
    release: str


class Packages(Protocol):
    """The packages of a machine. `version` chooses among packages of one name, where they are installed side by side.

    `named` refuses what could be read as an option, with BadInputError. `HEADERS` is the package that a kernel's
    drivers are built with, for a sentence.
    """

    MANAGER: str
    HEADERS: str

    def named(self, name: str, version: str = "") -> str:
        """The name of a package."""

    def installed(self, runner: Runner, name: str, version: str = "") -> Package | None:
        """The package, or None when it is not there."""

    def files_of(self, runner: Runner, name: str) -> Sequence[str]:
        """The paths of an installed package."""

    def owner(self, runner: Runner, path: str) -> str:
        """The package that a file belongs to, empty when it belongs to none."""

    def kernels(self, runner: Runner) -> Sequence[Kernel]:
        """Every kernel that an installed package carries."""

    def kernel_of(self, runner: Runner, name: str, version: str = "") -> str:
        """The one kernel release that an installed package carries, itself or by what it depends on."""

    def file_package(self, runner: Runner, path: str) -> tuple[str, str]:
        """Name and version in a package file."""

    def install_packages(self, runner: Runner, files: Sequence[str]) -> None:
        """Install package files in one transaction; on the disk when this returns."""

    def remove_package(self, runner: Runner, name: str) -> None:
        """Take a package off."""


@dataclass(frozen=True)
class Capability:
    """A protocol, and those of its names that a tool may lack; without the others it does not have the capability."""

    protocol: type
    optional: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        own = list(vars(self.protocol)) + list(getattr(self.protocol, "__annotations__", ()))
        return tuple(name for name in own if not name.startswith("_"))


CAPABILITIES: dict[str, Capability] = {
    "facts": Capability(Facts),
    "settings": Capability(Settings, ("objection", "write_setting")),
    "firmware": Capability(FirmwareTool, ("firmware_objections", "download", "activation", "activate")),
    "raid": Capability(Raid, ("FREE", "objections", "create", "delete", "set_policy", "initialise", "progress")),
    "events": Capability(Events),
    "background": Capability(Background),
    "resolve": Capability(Resolve),
    "packages": Capability(Packages),
}
"""Every capability by its name."""


def offers(tool: object) -> tuple[str, ...]:
    """The capabilities of a tool's module, and below them the optional functions it has: `raid`, `raid.create`."""
    names = []
    for name, capability in CAPABILITIES.items():
        if all(hasattr(tool, each) for each in capability.names if each not in capability.optional):
            names.append(name)
            names += [f"{name}.{each}" for each in capability.optional if hasattr(tool, each)]
    return tuple(names)
