# SPDX-License-Identifier: Apache-2.0
"""What must be done to get one image into one adapter or drive, or why that is refused; and what is under way.

Refused is what is not the image that is meant, a step between versions that nobody allowed, a controller that is not
well, and a flash with no way back: an image of the version that was found must be on the bench first.

Where a flash stands is on disk before each step that a power cut could interrupt (`<state_dir>/firmware.json`).
saved.json tells what a bench was like before the run; this tells what was under way, so that the next run knows
whether an image may be half written, and what the settings were before it. An entry goes when the flash is proven.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from ...kit.durable import replace_json
from ...kit.errors import StorqualError, ToolError
from ...kit.lock import BenchLock
from ...tools.capabilities import FirmwareImage
from .subject import FlashImage, FlashSubject, image_problems, order_problem, same_version

NOTHING, FINISH, ACTIVATE, DOWNLOAD = "nothing", "finish", "activate", "download"
"""What is left: it runs, proven; it runs and must be proven; it is in and must be started; it must be written."""

MOST_TRIES = 2
"""How often an image is written before a person must look."""


@dataclass(frozen=True)
class FirmwareRequest:
    """An image as a drop declares it: what it may replace (None: anything older), how it is started, the way back.

    `rollback`: images of which one must be of the version that is found. `boards`: PCI subsystem ids it is for.
    `copied` is false where the files need not be on the bench yet, because nothing will be written.
    """

    image: FlashImage
    tool: str
    activation: str
    allowed: tuple[str, ...] | None = None
    rollback: tuple[FlashImage, ...] = ()
    boards: tuple[str, ...] = ()
    copied: bool = True

    @property
    def for_tool(self) -> FirmwareImage:
        return replace(self.image.for_tool, activation=self.activation)


@dataclass(frozen=True)
class FlashPlan:
    """One subject's plan; `found` is the running version, `back` the image to return to, `problems` forbid it."""

    subject: FlashSubject
    request: FirmwareRequest
    action: str
    found: str
    entry: JournalEntry | None = None
    back: FlashImage | None = None
    problems: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return memory_key(self.subject.owner, self.request.image.component)


def memory_key(owner: str, component: str) -> str:
    """The key of saved.json for the version that was found, and of the journal for a flash under way."""
    return f"firmware.{component}@{owner}"


def make_plan(
    subject: FlashSubject,
    request: FirmwareRequest,
    entry: JournalEntry | None,
    saved: Mapping[str, Any] | None,
    boot_id: str,
) -> FlashPlan:
    """Read the subject and decide. `entry`: a flash that was not proven; `saved`: what is remembered of it."""
    image, owner = request.image, subject.owner
    try:
        versions = subject.versions()
    except ToolError as problem:
        return FlashPlan(subject, request, DOWNLOAD, "", entry, None, (_silent(owner, entry, saved, problem),))
    version = versions.get(image.component, "")
    if not version:
        line = f"{owner}: its tool tells no version of {image.component}, only of {', '.join(versions) or 'nothing'}"
        return FlashPlan(subject, request, DOWNLOAD, "", entry, None, (line,))
    action = _action(version, request, entry, boot_id)
    if action in (NOTHING, FINISH):
        return FlashPlan(subject, request, action, version, entry)
    problems = [f"{owner}: {text}" for text in _health(subject, request)]
    back = None
    if action == DOWNLOAD:
        pending = versions.get(f"{image.component}.pending", "")
        if pending and entry is None:
            problems.append(
                f"{owner}: {pending} waits for a restart, which this run did not write; restart the device first"
            )
        problems += [f"{owner}: {text}" for text in _tries(image, entry, saved)]
        origin = entry.found if entry else version
        problems += [f"{owner}: {text}" for text in _order((origin, version), request, saved)]
        problems += [f"{owner}: {text}" for text in _file_problems(subject, request, image)]
        back, wrong = _way_back(subject, request, origin, saved)
        problems += [f"{owner}: {text}" for text in wrong]
    return FlashPlan(subject, request, action, version, entry, back, tuple(problems))


def _action(version: str, request: FirmwareRequest, entry: JournalEntry | None, boot_id: str) -> str:
    image = request.image
    runs = same_version(version, image.version)
    if entry is None:
        return NOTHING if runs else DOWNLOAD
    if entry.sha256 != image.sha256 or entry.phase != DOWNLOADED:
        # half an image may be in it, whatever version it tells
        return DOWNLOAD
    if runs:
        return FINISH
    # a boot without a power cycle proves nothing about an image that waits for one
    waits = entry.boot_id == boot_id or request.activation == "power cycle"
    return ACTIVATE if waits else DOWNLOAD


def _silent(owner: str, entry: JournalEntry | None, saved: Mapping[str, Any] | None, problem: ToolError) -> str:
    """A subject that does not answer; after an interrupted flash a person must bring it back."""
    if entry is None:
        return f"{owner}: {problem}"
    return (
        f"{owner}: a flash of {entry.component} from {entry.found} to {entry.wanted} was interrupted, and it does "
        f"not answer: {problem}. Power-cycle the bench and run this again; if it still does not answer, "
        f"{_by_hand(entry, saved)}"
    )


def _by_hand(entry: JournalEntry, saved: Mapping[str, Any] | None) -> str:
    image = (saved or {}).get("image") or {}
    where = f" (on the bench: {image['path']})" if image.get("path") else ""
    return f"write {entry.found}{where} with {entry.tool} from its vendor's rescue system"


def _health(subject: FlashSubject, request: FirmwareRequest) -> list[str]:
    try:
        return [f"no firmware is written: {text}" for text in subject.obstacles(request.for_tool)]
    except ToolError as problem:
        return [f"its state could not be read: {problem}"]


def _tries(image: FlashImage, entry: JournalEntry | None, saved: Mapping[str, Any] | None) -> Iterator[str]:
    if entry is not None and entry.sha256 == image.sha256 and entry.tries >= MOST_TRIES:
        yield (
            f"{image.version} was written {entry.tries} times and did not start; power-cycle the bench by "
            f"hand, or {_by_hand(entry, saved)}, then remove its entry from firmware.json"
        )


def _order(versions: Sequence[str], request: FirmwareRequest, saved: Mapping[str, Any] | None) -> list[str]:
    """Going back to the version that was found is always allowed; else one of the versions it may be at must be."""
    wanted = request.image.version
    if saved is not None and same_version(str(saved.get("version")), wanted):
        return []
    wrong = [
        order_problem(version, wanted, request.allowed)
        for version in dict.fromkeys(versions)
        if not same_version(version, wanted)
    ]
    return [] if "" in wrong or not wrong else wrong[:1]


def _file_problems(subject: FlashSubject, request: FirmwareRequest, image: FlashImage) -> list[str]:
    return image_problems(subject.runner, image) if request.copied or Path(image.path).exists() else []


def _way_back(
    subject: FlashSubject, request: FirmwareRequest, origin: str, saved: Mapping[str, Any] | None
) -> tuple[FlashImage | None, list[str]]:
    """The image of the version as found: the one that is remembered, else one that the drop declares."""
    version = str(saved["version"]) if saved is not None else origin
    if same_version(version, request.image.version):
        return request.image, []
    known = [FlashImage(**saved["image"])] if saved is not None else []
    known += [image for image in request.rollback if image.component == request.image.component]
    for image in known:
        if same_version(image.version, version):
            return image, [
                f"the image to go back to is missing: {text}" for text in _file_problems(subject, request, image)
            ]
    return None, [f"there is no image of {version} to go back to; add it to `rollback`"]


DOWNLOADING = "downloading"
"""The image may be half written."""
DOWNLOADED = "downloaded"
"""The image is in; it runs after its activation."""

_SCHEMA = "storqual.firmware/1"


@dataclass(frozen=True)
class JournalEntry:
    """One flash that is not proven yet: what replaces what, how far it came, in which boot, how often it was tried.

    `settings` is what the adapter or drive was set to before the first try.
    """

    phase: str
    tool: str
    component: str
    found: str
    wanted: str
    sha256: str
    boot_id: str
    tries: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)

    def downloaded(self) -> JournalEntry:
        return replace(self, phase=DOWNLOADED)


def _path(state_dir: Path) -> Path:
    return state_dir / "firmware.json"


def read_journal(state_dir: Path) -> dict[str, JournalEntry]:
    """The entries, by the key that saved.json has for them too (`firmware.firmware@sas0`).

    Raises StorqualError when the file cannot be understood.
    """
    path = _path(state_dir)
    try:
        return _entries(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise StorqualError(
            f"{path} cannot be read ({problem}); it tells which firmware was being written: look at the adapters' "
            "and drives' versions, then remove the file"
        ) from problem


def _entries(body: Mapping[str, Any]) -> dict[str, JournalEntry]:
    if body["schema"] != _SCHEMA:
        raise ValueError(f"found {body['schema']!r}, expected {_SCHEMA}")
    return {str(key): JournalEntry(**fields) for key, fields in body["entries"].items()}


def note(lock: BenchLock, key: str, entry: JournalEntry) -> None:
    """Put an entry in the place of the former one; it is on the disk when this returns."""
    _write(lock, {**read_journal(lock.state_dir), key: entry})


def clear(lock: BenchLock, key: str) -> None:
    entries = read_journal(lock.state_dir)
    if entries.pop(key, None) is not None:
        _write(lock, entries)


def _write(lock: BenchLock, entries: Mapping[str, JournalEntry]) -> None:
    listed = {key: asdict(entry) for key, entry in entries.items()}
    replace_json(_path(lock.state_dir), {"schema": _SCHEMA, "entries": listed})
