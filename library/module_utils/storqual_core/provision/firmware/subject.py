# SPDX-License-Identifier: Apache-2.0
"""Which adapter or drive may be flashed, with its tool: claims, guard, versions, state, settings before and after.

A tool offers its functions by name (`capabilities`); what it does not offer is not asked. An image is the bytes that
the drop means, signed by whom the drop says.

An adapter takes everything behind it with it, so everything behind it must be claimed, and the consent names each
drive; a drive that only the adapter shows must be the claimed one in its words, and a volume of such drives unused.
An adapter with nothing behind it is consented to by its serial number or its PCI address.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Collection, Iterator, Mapping, Sequence

from ...guard import hold as guard
from ...guard.claims import Claim, claims_of_adapters
from ...guard.reach import matching, with_card
from ...guard.rules import CONSENT_DIGITS, missing_consent
from ...host.block_stack import DriveTarget, target_of
from ...host.identity import same_text
from ...host.reach import Reached, drives_of_function
from ...host.sysfs import read_adapters, read_drives
from ...kit.command import Runner
from ...kit.errors import BadInputError, GuardRefusalError, ToolError
from ...kit.machine import Machine, visible
from ...kit.settings import section_of
from ...tools import TOOLS
from ...tools.capabilities import AdapterFacts, FirmwareImage, ToolFacts, VolumeFacts, offers
from ..drives import DriveSettings, claim_record
from ..engine import apply, plan
from ..raid.volume_plan import same_drive, volume_uses

_BUSY = re.compile(r"rebuild|rbld|copyback|cpybck|init|eras|sanit|expan|migrat|transform", re.IGNORECASE)
_TASK = re.compile(r"patrol ?read|consistency check|learn", re.IGNORECASE)
_RUNNING = re.compile(r"^(?:active|running|in progress|started)\b", re.IGNORECASE)
_WELL = re.compile(r"^(?:ok|optimal|opt|normal|good|healthy|online)\b", re.IGNORECASE)


def obstacles(adapter: AdapterFacts) -> list[str]:
    """Every reason in the adapter's state against writing firmware into it, as words; none when it is well."""
    reasons = [*adapter.unreadable(), *(reason for volume in adapter.volumes for reason in _volume(volume))]
    if adapter.health and not _WELL.match(adapter.health):
        reasons.append(f"its state is {adapter.health}")
    reasons += [f"drive {drive.position} is {drive.state}" for drive in adapter.drives if _BUSY.search(drive.state)]
    reasons += [
        f"{label} is {value}"
        for label, value in adapter.settings.items()
        if _TASK.search(label) and _RUNNING.match(value)
    ]
    return reasons


def _volume(volume: VolumeFacts) -> Iterator[str]:
    name = f"volume {volume.name or volume.id}"
    for task, percent in volume.progress.items():
        yield f"{name}: {task} is under way ({percent:g} %)"
    if volume.healthy is not True and not volume.progress:
        yield f"{name} is {volume.state or 'in a state that its tool does not tell'}"


_PAGES = (0x01, 0x08, 0x0A, 0x1C)
"""Mode pages of a drive that are compared: error recovery, caching, control, informational exceptions."""


@dataclass(frozen=True)
class FlashSubject:
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
        reasons = obstacles(self._facts()) if "facts" in self._offered else []
        if "firmware.firmware_objections" in self._offered:
            reasons += self.tool.firmware_objections(self.runner, self.index, image)
        return reasons

    def settings(self) -> dict[str, Any]:
        """Everything that a flash could set back: settings, cache policies, links; for a drive its mode pages."""
        if self.target is not None:
            return self._drive_settings(self.target)
        settings: dict[str, Any] = {}
        if "settings" in self._offered:
            values = self.tool.read_settings(self.runner, self.index)
            settings.update({f"setting.{name}": value for name, value in values.items()})
        if "raid" in self._offered:
            for volume in self.tool.read_volumes(self.runner, self.index):
                settings.update({f"volume.{volume.id}.{name}": value for name, value in volume.policies.items()})
        if "facts" in self._offered:
            for port in self._facts().ports:
                settings.update({f"port.{port.name}.link": port.link, f"port.{port.name}.speed": port.speed})
        return settings

    def put_back(self, wanted: Mapping[str, Any]) -> list[str]:
        """Set what can be set to `wanted`; what was done. What cannot be, the comparison shows. Raises ToolError."""
        if self.target is not None:
            pages = DriveSettings(self.runner, sysfs=self.sysfs)
            drive_plan = plan(pages, self.owner, self.target, wanted)
            return list(apply(pages, [drive_plan], save=lambda _memory: None).steps)
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
        return [drive.name for drive in drives_of_function(machine, [self.pci])]

    def needs(self, image: FirmwareImage) -> str:
        """What the tool says that the image still needs; what the drop declares where the tool does not say."""
        if "firmware.activation" not in self._offered:
            return image.activation
        return str(self.tool.activation(self.runner, self.index, image))

    @property
    def starts_images(self) -> bool:
        return "firmware.activate" in self._offered

    @property
    def _offered(self) -> tuple[str, ...]:
        return offers(self.tool)

    def _facts(self) -> AdapterFacts:
        for adapter in self.tool.read_facts(self.runner).adapters:
            if adapter.index == self.index:
                facts: AdapterFacts = adapter
                return facts
        raise ToolError(f"{self.owner}: its tool does not show {self.index} any more")

    def _drive_settings(self, target: DriveTarget) -> dict[str, Any]:
        fields = {name: setting.field for name, setting in section_of("drive").items()}
        pages = DriveSettings(self.runner, sysfs=self.sysfs)
        values: dict[str, Any] = {}
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
                values.update(pages.read(target, names))
        return values


FIRMWARE_TOOLS: Mapping[str, str] = {
    **{
        name: name
        for name in ("arcconf", "fwupd", "hbacmd", "nvme", "qaucli", "sg_write_buffer", "ssacli", "storcli")
    },
    **dict.fromkeys(("sas2flash", "sas3flash"), "sasflash"),
    "mnv_cli": "mvcli",
    "perccli": "storcli",
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
class FlashImage:
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
        return FirmwareImage(self.path, self.sha256, self.version, self.component)

    def record(self) -> dict[str, str]:
        return asdict(self)


def read_image(fields: Mapping[str, Any], what: str = "image") -> FlashImage:
    """An image of a module's argument or of saved.json. Raises BadInputError with every problem."""
    texts = {name: str(fields.get(name) or "") for name in FlashImage.__dataclass_fields__}
    problems = [f"{what}: found no {name}, expected one" for name in ("path", "sha256", "version") if not texts[name]]
    if bool(texts["signature"]) != bool(texts["key"]):
        problems.append(f"{what}: found a signature without a key or a key without one, expected both or none")
    if problems:
        raise BadInputError(problems)
    texts["component"] = texts["component"] or "firmware"
    return FlashImage(**{**texts, "sha256": texts["sha256"].lower()})


def image_problems(runner: Runner, image: FlashImage) -> list[str]:
    """Why the file is not the image that is meant; none when it is."""
    try:
        digest = file_digest(Path(image.path))
    except OSError as problem:
        return [f"{image.path}: cannot be read: {problem.strerror}"]
    if digest != image.sha256:
        return [f"{image.path}: found SHA-256 {digest}, expected {image.sha256}"]
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


def _signature_problems(runner: Runner, image: FlashImage) -> list[str]:
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
    words = _RUN.split(version.strip().lower())
    return words[::2], [int(number) for number in words[1::2]]


def same_version(version: str, other: str) -> bool:
    """Whether two texts name one version: equal but for case, leading zeros of a number, and blanks around."""
    return _parts(version) == _parts(other)


def compare(version: str, other: str) -> int | None:
    """-1, 0 or 1 as `version` is older, equal or newer; None when the two are not numbered alike (`2B3Q`, `GPK2`)."""
    (words, numbers), (others, other_numbers) = _parts(version), _parts(other)
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


def order_problem(version: str, wanted: str, allowed: Sequence[str] | None) -> str:
    """Why `wanted` may not replace `version`; empty when it may. `allowed`: the versions that a drop says it may.

    Without such a list only a newer version replaces an older one: a downgrade is possible, but it is somebody's
    decision, and so is a step between versions whose order nobody can tell.
    """
    if allowed is not None:
        if any(_allows(each, version) for each in allowed):
            return ""
        return f"it runs {version}, and {wanted} may replace only {', '.join(allowed)}; add it to `from` if it may"
    order = compare(version, wanted)
    if order == -1:
        return ""
    relation = {None: "is not numbered like", 0: "is the same as", 1: "is newer than"}[order]
    return f"it runs {version}, which {relation} {wanted}; name {version} in `from` if that step is meant"


def find_adapter(facts: ToolFacts, alias: str, declared: Mapping[str, Any]) -> AdapterFacts:
    """The adapter that agrees with the inventory's PCI address and serial number, in all that both sides say.

    Raises ToolError when it is not exactly one, or when there is nothing to know it by: a tool's own number is no
    identity, it changes with every card that is plugged in.
    """
    known = {name: str(declared.get(name) or "") for name in ("pci", "serial")}
    if not any(known.values()):
        raise ToolError(
            f"adapter {alias}: the inventory states neither its PCI address nor its serial number; add them"
        )
    matching = [adapter for adapter in facts.adapters if _agrees(adapter, known)]
    if len(matching) == 1:
        return matching[0]
    seen = "; ".join(sorted(_descriptions(facts.adapters))) or "no adapter"
    wanted = " and ".join(f"{name} {visible(text)}" for name, text in known.items() if text)
    raise ToolError(f"adapter {alias}: {len(matching)} adapters of the tool have {wanted}; it shows {seen}")


def _agrees(adapter: AdapterFacts, known: Mapping[str, str]) -> bool:
    """Every part that both sides state is equal, and there is at least one such part."""
    compared = [
        same_text(mine.lower(), its.lower())
        for mine, its in ((known["pci"], adapter.pci), (known["serial"], adapter.serial))
        if mine and its
    ]
    return bool(compared) and all(compared)


def _descriptions(adapters: Sequence[AdapterFacts]) -> Iterator[str]:
    for adapter in adapters:
        parts = [adapter.index, adapter.model, adapter.pci, f"serial {adapter.serial}" if adapter.serial else ""]
        yield " ".join(visible(part) for part in parts if part)


def find_by_serial(facts: ToolFacts, drive: str, serial: str) -> AdapterFacts:
    """The device of a tool (fwupd) with a drive's serial number. Raises ToolError when it is not exactly one."""
    matching = [device for device in facts.adapters if serial and device.serial == serial]
    if len(matching) != 1:
        raise ToolError(
            f"drive {drive}: {len(matching)} devices of the tool have serial {visible(serial) or 'nothing'}"
        )
    return matching[0]


def board_of(machine: Machine, pci: str) -> str:
    """The PCI subsystem id of the adapter at an address, `1000:3010`; empty when no adapter is there."""
    for adapter in read_adapters(machine):
        if adapter.identity.pci == pci.lower():
            return f"{adapter.identity.subsystem_vendor}:{adapter.identity.subsystem_device}"
    return ""


def board_problem(board: str, boards: Sequence[str]) -> str:
    """Why an image for `boards` is not for this one; empty when it is, or when the drop names no boards."""
    if not boards or board.lower() in (each.lower() for each in boards):
        return ""
    return f"the image is for boards {', '.join(boards)}, this one is {board or 'not on the PCI bus'}"


@dataclass(frozen=True)
class Access:
    """Where the guard works: the bench's state, run, consent; `machine` and `runner` are others in tests."""

    state_dir: str
    run: str
    consent: tuple[str, ...]
    runner: Runner
    machine: Machine

    @contextmanager
    def hold(
        self, claims: Sequence[Claim], purpose: str, beside: Sequence[Claim] = ()
    ) -> Iterator[Mapping[str, str]]:
        """The drives held, and those of `beside` that this reaches. Raises GuardRefusalError."""
        with guard.hold(
            claims,
            purpose=purpose,
            beside=beside,
            consent=self.consent,
            state_dir=Path(self.state_dir),
            run=self.run,
            machine=self.machine,
            runner=self.runner,
        ) as held:
            yield held


@dataclass(frozen=True)
class Drives:
    """Drives to be flashed, by claim; `beside` are the other claims of the bench, which a flash may reach as well."""

    access: Access
    claims: tuple[Claim, ...]
    beside: tuple[Claim, ...] = ()

    def memory(self, owner: str) -> dict[str, Any]:
        """What a restore needs to find and to be let at the drive again."""
        claim = next(claim for claim in self.claims if claim.id == owner)
        others = {other.id: claim_record(other) for other in (*self.claims, *self.beside) if other.id != owner}
        return {"kind": "drive", "claim": claim_record(claim), "beside": others, "consent": list(self.access.consent)}

    @contextmanager
    def hold(self, tool: ModuleType, *, write: bool) -> Iterator[None]:
        """The guard over them. Raises GuardRefusalError."""
        del tool  # the kernel shows every drive that is flashed by itself
        with self.access.hold(self.claims, "firmware" if write else "reset", self.beside):
            yield

    def subjects(self, tool: ModuleType, boards: Sequence[str]) -> list[FlashSubject]:
        """Each drive with the name its tool has for it. Raises ToolError, GuardRefusalError."""
        del boards  # a drive has no PCI board; its model was compared by the guard
        subjects = []
        with self.access.hold(self.claims, "settings") as held:
            for claim in self.claims:
                target = target_of(claim.id, held[claim.id], self.access.machine.path("/sys"))
                index = target.device
                if hasattr(tool, "read_facts"):
                    index = find_by_serial(tool.read_facts(self.access.runner), claim.id, claim.serial).index
                subjects.append(FlashSubject(claim.id, tool, index, self.access.runner, target))
        return subjects


@dataclass(frozen=True)
class Adapters:
    """Adapters to be flashed, by alias, as the inventory declares them.

    `beside` are the bench's other adapters: a flash may reach claimed drives at other functions of a card.
    """

    access: Access
    adapters: Mapping[str, Mapping[str, Any]]
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def memory(self, owner: str) -> dict[str, Any]:
        """What a restore needs to find and to be let at the adapter again."""
        declared = self.adapters[owner]
        kept = {name: declared[name] for name in ("pci", "serial", "drives") if declared.get(name)}
        others = {
            alias: {"drives": other["drives"]}
            for alias, other in {**self.adapters, **self.beside}.items()
            if alias != owner and other.get("drives")
        }
        return {"kind": "adapter", "adapter": kept, "beside": others, "consent": list(self.access.consent)}

    @contextmanager
    def hold(self, tool: ModuleType, *, write: bool) -> Iterator[None]:
        """The guard over everything behind them. Raises GuardRefusalError with every refusal."""
        drives = read_drives(self.access.machine)
        claims = claims_of_adapters(self.adapters)
        places = [str(declared.get("pci") or "").lower() for declared in self.adapters.values()]
        every, strange = with_card(self.access.machine, places, claims, claims_of_adapters(self.beside))
        shown = [claim for claim in every if matching(claim, drives)]
        hidden = [claim for claim in every if claim not in shown]
        refusals = list(self._strangers(strange, every, tool))
        refusals += [text for alias in self.adapters for text in self._unnamed(alias, write=write)]
        refusals += _hidden(hidden, claims, tool, self.access, write=write)
        if not shown:
            _refuse(refusals)
            yield
            return
        try:
            with self.access.hold(shown, "firmware" if write else "settings"):
                _refuse(refusals)
                yield
        except GuardRefusalError as problem:
            raise GuardRefusalError(
                [*refusals, *(text for text in problem.refusals if text not in refusals)]
            ) from None

    def subjects(self, tool: ModuleType, boards: Sequence[str]) -> list[FlashSubject]:
        """Each adapter with the name its tool has for it. Raises ToolError with every problem."""
        facts = tool.read_facts(self.access.runner)
        subjects, problems = [], []
        for alias, declared in self.adapters.items():
            pci = str(declared.get("pci") or "").lower()
            wrong = board_problem(board_of(self.access.machine, pci), boards)
            if wrong:
                problems.append(f"adapter {alias}: {wrong}")
            try:
                index = find_adapter(facts, alias, declared).index
            except ToolError as problem:
                problems.append(str(problem))
                continue
            subjects.append(FlashSubject(alias, tool, index, self.access.runner, pci=pci))
        if problems:
            raise ToolError("\n".join(problems))
        return subjects

    def _strangers(self, neighbours: Sequence[Reached], claims: Sequence[Claim], tool: ModuleType) -> Iterator[str]:
        volumes = _volumes(tool, self.access.runner, claims) if neighbours else {}
        for stranger in neighbours:
            drive = stranger.drive
            if drive.node in volumes:
                yield from map(str, volume_uses(self.access.machine, volumes[drive.node]))
            else:
                yield (
                    f"drive {visible(drive.id)} ({drive.name}): it is not claimed, and a flash interrupts access to "
                    f"it, because it {stranger.why}; claim it, or move it to another adapter"
                )

    def _unnamed(self, alias: str, *, write: bool) -> Iterator[str]:
        declared = self.adapters[alias]
        pci = str(declared.get("pci") or "").lower()
        if write and not claims_of_adapters({alias: declared}) and not _consents(self.access.consent, declared, pci):
            name = str(declared.get("serial") or "")[-8:] or pci
            yield (
                f"adapter {alias}: its firmware is not covered by a claim, and there is no consent to it; "
                f"add -e consent={visible(name)} if you mean this adapter"
            )


def _volumes(tool: ModuleType, runner: Runner, claims: Sequence[Claim]) -> dict[str, VolumeFacts]:
    volumes = {}
    for adapter in tool.read_facts(runner).adapters:
        claimed = {drive.position for drive in adapter.drives if any(same_drive(claim, drive) for claim in claims)}
        for volume in adapter.volumes:
            whole = volume.device and volume.members and not volume.unread
            if whole and claimed >= {*volume.members, *volume.spares}:
                volumes[volume.device] = volume
    return volumes


def _hidden(
    hidden: Sequence[Claim], claims: Sequence[Claim], tool: ModuleType, access: Access, *, write: bool
) -> Iterator[str]:
    """Claimed drives that the kernel does not show: the adapter must, and the consent must name them."""
    if not hidden:
        return
    there = [drive for adapter in tool.read_facts(access.runner).adapters for drive in adapter.drives]
    for claim in hidden:
        if not any(same_drive(claim, drive) for drive in there):
            yield (
                f"drive {visible(claim.id)}: neither the kernel nor the adapter shows a drive with its WWN, serial "
                "and model; check that the claim is in the right bench's inventory and the drive is plugged in"
            )
        elif write:
            yield from map(str, missing_consent(claim, {other.id for other in claims}, access.consent))


def _consents(consent: Collection[str], declared: Mapping[str, Any], pci: str) -> bool:
    """Whether a consent names the adapter by the end of its serial number or by its PCI address."""
    serial = str(declared.get("serial") or "").lower()
    words = [word.strip().lower() for word in consent]
    return any(len(word) >= CONSENT_DIGITS and (serial.endswith(word) or word == pci) for word in words)


def _refuse(refusals: Sequence[str]) -> None:
    if refusals:
        raise GuardRefusalError(refusals)
