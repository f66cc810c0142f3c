# SPDX-License-Identifier: Apache-2.0
"""systemd-boot, and GRUB with its interface (grub2-bls): entries, and the EFI variables that choose among them.

`bootctl set-oneshot` takes any name. The loader matches it, as a pattern, against whole file names: of a counted
entry with its counter, where `bootctl list` leaves that out. A name that matches none is dropped without a word.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..kit.command import Runner
from ..kit.durable import fsync_folder, replace_file
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line
from . import bls, boot_files
from .grub import KEPT_ENTRY, TRIAL_ENTRY, MenuEntry, kept_arguments

_VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
ENTRIES, FEATURES = "LoaderEntries", "LoaderFeatures"
_VARIABLES = {"saved_entry": "LoaderEntryDefault", "next_entry": "LoaderEntryOneShot"}
_COMMANDS = {"saved_entry": "set-default", "next_entry": "set-oneshot"}
# systemd's LoaderFeatures: the loader takes an entry for one boot
_CAN_ONE_SHOT = 1 << 3
_OWN = tuple(f"{name}{bls.SUFFIX}" for name in (TRIAL_ENTRY, KEPT_ENTRY))
_TIMEOUT = 60.0


@dataclass(frozen=True)
class ListedEntry:
    """One entry as `bootctl list` tells of it; `file` is empty for one that only the loader knows of."""

    identifier: str
    file: str
    title: str
    version: str
    reported: bool
    default: bool


def parse_list(text: str) -> list[ListedEntry]:
    """`bootctl list --json`: an array, or an object on each line (systemd 252). Raises ToolError."""
    rows: list[Any] = []
    try:
        if text.lstrip().startswith("["):
            body = json.loads(text)
            rows = body if isinstance(body, list) else [body]
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as problem:
        raise ToolError(f"bootctl list: {problem}, which is not the JSON of entries: {first_line(text)}") from None
    if not rows:
        raise ToolError(f"bootctl list told of no entry: {first_line(text)}")
    return [_listed(row, number) for number, row in enumerate(rows, start=1)]


def _listed(row: object, number: int) -> ListedEntry:
    if not isinstance(row, dict):
        raise ToolError(f"bootctl list, entry {number}: found {row!r:.80}, expected an entry with its id")

    def text(name: str) -> str:
        value = row.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        raise ToolError(f"bootctl list, entry {number}: found {name} {value!r:.80}, expected a text")

    if not text("id"):
        raise ToolError(f"bootctl list, entry {number}: found {row!r:.80}, expected an entry with its id")
    initrd = row.get("initrd") or []
    flags = [row.get(name) or False for name in ("isReported", "isDefault")]
    if not isinstance(initrd, list) or not all(isinstance(each, str) for each in initrd):
        raise ToolError(f"bootctl list, entry {number}: found initrd {initrd!r:.80}, expected paths")
    if not all(isinstance(flag, bool) for flag in flags):
        raise ToolError(f"bootctl list, entry {number}: found {flags!r:.80} for isReported and isDefault")
    reported, default = flags
    return ListedEntry(text("id"), text("path"), text("title"), text("version"), reported, default)


def decode_strings(data: bytes, name: str) -> list[str]:
    """The texts in an EFI variable's data: UTF-16, each with a NUL behind it. Raises ToolError."""
    if len(data) % 2:
        raise ToolError(f"EFI variable {name}: {len(data)} bytes are no UTF-16 text")
    try:
        return [word for word in data.decode("utf-16-le").split("\0") if word]
    except UnicodeDecodeError as problem:
        raise ToolError(f"EFI variable {name}: {problem.reason} at byte {problem.start}") from None


def read_variable(efivars: str, name: str) -> list[str] | None:
    """The texts in a variable of the loader, None where it is not set. Raises ToolError.

    It is read whole: the file answers no read from an offset. The first four bytes are attributes.
    """
    data = _data(efivars, name)
    return None if data is None else decode_strings(data, name)


def _data(efivars: str, name: str) -> bytes | None:
    file = Path(efivars) / f"{name}-{_VENDOR}"
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ToolError(f"{file}: {problem.strerror}") from problem
    if len(data) < 4:
        raise ToolError(f"{file}: {len(data)} bytes, expected four of attributes and more")
    return data[4:]


@dataclass(frozen=True)
class EfiLoader:
    """systemd-boot, or GRUB that is told by the same EFI variables (grub2-bls), as `Grub` is for grub.cfg.

    Entries are files in `loader/entries` on the partition that the loader reads; an entry of ours is one without a
    counter, so that its name is the same at the next start.
    """

    runner: Runner
    folder: str
    """Where that partition is mounted."""
    sysfs: str = "/sys"
    proc: str = "/proc"

    @property
    def _efivars(self) -> str:
        return f"{self.sysfs}/firmware/efi/efivars"

    @property
    def _place(self) -> Path:
        return Path(self.folder) / "loader" / "entries"

    def entries(self) -> list[MenuEntry]:
        """The menu in the loader's order, each named by its file as it is now. Raises ToolError."""
        files = {Path(entry.file).name: entry for entry in bls.read_folder(str(self._place))}
        ended = self.runner(["bootctl", "list", "--json=short", "--no-pager"], timeout=_TIMEOUT)
        rows = parse_list(ended.expect().stdout)
        names = list(dict.fromkeys(Path(row.file).name for row in rows if row.file))
        return [self._menu_entry(files[name], at) for at, name in enumerate(n for n in names if n in files)]

    def _menu_entry(self, entry: bls.BootEntry, at: int) -> MenuEntry:
        options = " ".join(entry.values("options"))
        problems = [f"{entry.file}: it has no line `linux`"] if not entry.value("linux") else []
        problems += (
            [f"{entry.file}: `$` in its options, which systemd-boot does not expand"] if "$" in options else []
        )
        body = (f"linux {entry.value('linux')} {options}", " ".join(["initrd", *entry.values("initrd")]))
        name = Path(entry.file).name
        title = entry.value("title") or name
        own = name[: -len(bls.SUFFIX)] if name in _OWN else name
        return MenuEntry(title, own, own, str(at), body, (), entry.file, tuple(problems))

    def environment(self) -> dict[str, str]:
        """`saved_entry` and `next_entry` as their variables are. Raises ToolError."""
        read = {name: read_variable(self._efivars, variable) for name, variable in _VARIABLES.items()}
        return {name: texts[0] for name, texts in read.items() if texts}

    def default(self, environment: Mapping[str, str] | None = None) -> MenuEntry | None:
        """What boots when nothing is asked for."""
        return self.resolved_default(environment)[0]

    def resolved_default(self, environment: Mapping[str, str] | None = None) -> tuple[MenuEntry | None, str]:
        """What boots when nothing is asked for; and what is wrong with its name, for an order changes."""
        env = self.environment() if environment is None else environment
        entries = self.entries()
        pattern = env.get("saved_entry", "")
        named = [entry for entry in entries if pattern and fnmatchcase(_file(entry).lower(), pattern.lower())]
        return next(iter(named or entries), None), "" if named else pattern or "no name"

    def resolve(self, wanted: str) -> MenuEntry | None:
        """The entry of this name; None where there is none."""
        return next((entry for entry in self.entries() if wanted in (entry.identifier, _file(entry))), None)

    def check_one_shot(self) -> None:
        """Raise ToolError, with the reason, where a trial could not be booted once."""
        if not Path(self._efivars).is_dir() or os.statvfs(self._efivars).f_flag & os.ST_RDONLY:
            raise ToolError(
                f"{self._efivars} is not there or is mounted read-only: the loader could not be told to boot an "
                "entry once (mount -o remount,rw)"
            )
        features = _data(self._efivars, FEATURES)
        if features is None or not int.from_bytes(features[:8], "little") & _CAN_ONE_SHOT:
            raise ToolError(
                "the boot loader does not say that it boots an entry once (LoaderFeatures, LoaderEntryOneShot)"
            )
        files = [path.name for path in self._place.glob(f"*{bls.SUFFIX}")]
        loaded = read_variable(self._efivars, ENTRIES) or []
        known = {re.sub(r"\+[0-9-]+(?=\.conf$)", "", name) for name in loaded}
        if not known & {re.sub(r"\+[0-9-]+(?=\.conf$)", "", name) for name in files}:
            raise ToolError(
                f"the loader found {', '.join(loaded[:3]) or 'no entry'} when it started, and {self._place} has none "
                "of these: it is not the partition that the loader reads"
            )

    def custom_text(self) -> str | None:
        """The entries of ours as they are, by name; None without one."""
        texts = {name: (self._place / name).read_text() for name in _OWN if (self._place / name).exists()}
        return json.dumps(texts, sort_keys=True) if texts else None

    def write_custom(self, text: str | None) -> None:
        """Have the entries of ours be these."""
        wanted = json.loads(text) if text else {}
        for name in _OWN:
            if name in wanted:
                replace_file(self._place / name, wanted[name])
            else:
                (self._place / name).unlink(missing_ok=True)
        fsync_folder(self._place)

    def build(
        self,
        template: MenuEntry,
        identifier: str,
        kernel: str,  # noqa: ARG002 - the template is the kernel's own entry
        initrd: str,
        arguments: Sequence[str],
    ) -> str:
        """An entry of ours after the kernel's own; an initramfs of ours lies where the loader reads."""
        images = template.images
        if initrd and initrd.rpartition("/")[2] not in [image.rpartition("/")[2] for image in images]:
            if not (Path(self.folder) / initrd).exists():
                raise ToolError(f"{initrd} does not lie in {self.folder}, which is what the loader reads")
            images = [f"/{initrd}"]
        lines = [f"title {identifier}", f"linux {template.kernel}", *(f"initrd {image}" for image in images)]
        lines.append("options " + " ".join(kept_arguments(template.arguments, arguments)))
        return "\n".join([*lines, ""])

    def tidy(self) -> None:
        """Remove what a write that was cut short left."""
        for name in _OWN:
            for part in self._place.glob(f".{name}.*.part"):
                part.unlink()

    def put_entry(self, text: str, identifier: str) -> None:
        replace_file(self._place / f"{identifier}{bls.SUFFIX}", text)

    def take_out(self, identifier: str) -> None:
        (self._place / f"{identifier}{bls.SUFFIX}").unlink()
        fsync_folder(self._place)

    def settle(self, files: Sequence[str] = ()) -> bool:  # noqa: ARG002 - they lie on the same partition
        """Have the loader see entries and kernels; nothing here reads a disk as it does."""
        boot_files.settle(self.runner, [self.folder], self.proc)
        return False

    def boot_once(self, path: str) -> None:
        """Boot an entry at the next start only. Raises ToolError when there is none of this name."""
        self._choose("next_entry", path)

    def set_default(self, path: str) -> None:
        """Boot an entry from now on; of a counted one the loader changes the name, so a pattern stands for it."""
        self._choose("saved_entry", path)

    def _choose(self, name: str, path: str) -> None:
        entry = self.resolve(path)
        if entry is None:
            raise ToolError(f"no boot entry has the name {path}: the loader would drop it without a word")
        file = _file(entry)
        if any(char in file for char in "*?[]\\"):
            raise ToolError(f"{file}: the loader would take this name for a pattern")
        self.put_variable(name, re.sub(r"\+[0-9-]+(?=\.conf$)", "+*", file))

    def put_variable(self, name: str, value: str | None) -> None:
        """Set a variable of the loader, or remove it, and read it back. Raises ToolError."""
        self.runner(["bootctl", _COMMANDS[name], value or ""], timeout=_TIMEOUT).expect()
        now = self.environment().get(name, "")
        if now != (value or ""):
            raise ToolError(f"the EFI variable {_VARIABLES[name]} is {now!r} after it was set to {value or ''!r}")


def _file(entry: MenuEntry) -> str:
    """The file's name, by which the loader knows an entry, with the counter of its tries."""
    return Path(entry.file).name
