# SPDX-License-Identifier: Apache-2.0
"""GRUB 2: the entries of grub.cfg, which one boots, a trial entry that boots exactly once, and the default.

A trial is an entry of our own in custom.cfg, which grub.cfg includes as it stands: it carries the kernel, its
initramfs and extra arguments, so that no slow regeneration of grub.cfg is needed and nothing of the owner's is
edited. `next_entry` boots it once; GRUB clears it before it starts the kernel, so a kernel that panics (`panic=`
makes it reboot) leaves the bench on its default by itself.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Iterator, Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.kernel import ARGUMENT, OWN_ARGUMENT
from . import bls, boot_files

TRIAL_ENTRY = "storqual-trial"
KEPT_ENTRY = "storqual-kept"
_KERNEL_LINES = ("linux", "linux16", "linuxefi")
_INITRD_LINES = ("initrd", "initrd16", "initrdefi")
# `vmlinuz-6.1.0`, and as systemd's kernel-install has it: `/<token>/6.1.0/linux`, openSUSE's with a digest
_RELEASE = re.compile(r"vmlinuz-(\S+)$|/([^/\s]+)/linux(?:-[0-9a-f]{40})?$")
_HEADS = ("menuentry ", "menuentry\t", "submenu ", "submenu\t")
_SOURCE = re.compile(r"\s*(?:source|\.)\s+\S*/custom\.cfg")
_ONCE = "grub2-once.service"
_TIMEOUT = 60.0


@dataclass(frozen=True)
class MenuEntry:
    """One menuentry; `path` (`submenu>entry`) or `index` is how `next_entry` and `saved_entry` name it."""

    title: str
    identifier: str
    path: str
    index: str
    body: tuple[str, ...] = field(repr=False)
    parents: tuple[tuple[str, str], ...] = ()
    """Identifier and title of the submenus around it."""
    file: str = ""
    """Of an entry that is a file of its own (Boot Loader Specification)."""
    problems: tuple[str, ...] = ()
    """Why no other entry can be made after it."""

    def _words(self, names: Sequence[str]) -> list[str]:
        for line in self.body:
            words = line.split()
            if words and words[0] in names:
                return words[1:]
        return []

    @property
    def kernel(self) -> str:
        """Path of the kernel as GRUB sees it, or empty."""
        return _bare(next(iter(self._words(_KERNEL_LINES)), ""))

    @property
    def arguments(self) -> list[str]:
        return self._words(_KERNEL_LINES)[1:]

    @property
    def images(self) -> list[str]:
        """Paths of what is loaded beside the kernel, as the loader sees them."""
        return [_bare(word) for word in self._words(_INITRD_LINES)]

    @property
    def release(self) -> str:
        """The kernel release in the kernel's file name, or empty."""
        return release_of(self.kernel)


def _bare(word: str) -> str:
    """A word without the quotes around it: GRUB takes them off, and so must who takes it apart."""
    return word[1:-1] if len(word) > 1 and word[0] in "\"'" and word[-1] == word[0] else word


def release_of(path: str) -> str:
    """`6.1.0-47-amd64` of `/boot/vmlinuz-6.1.0-47-amd64`; empty for another name."""
    match = _RELEASE.search(path)
    return match.group(1) or match.group(2) if match else ""


def parse_environment(text: str) -> dict[str, str]:
    """`grub-editenv list`: key=value per line; a value may hold `=`."""
    # the word behind the program's name is translated
    failed = re.search(r"^(?:/\S*/)?grub2?-editenv: .*", text, re.MULTILINE)
    if failed:
        raise ToolError(f"the loader's environment cannot be read: {failed.group()}")
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, equals, value in pairs if equals}


_BLOCK_HEAD = "# GRUB Environment Block\n"
_BLOCK_SIZE = 1024


@dataclass(frozen=True)
class EnvironmentBlock:
    """grubenv: its variables, and how many bytes are left for more."""

    variables: Mapping[str, str]
    free: int


def read_block(data: bytes, file: str = "grubenv") -> EnvironmentBlock:
    """An environment block. Raises ToolError for one that GRUB would not read, or could not write again."""
    text = data.decode("latin-1")
    if len(data) != _BLOCK_SIZE or not text.startswith(_BLOCK_HEAD):
        held = f"{len(data)} bytes" if len(data) != _BLOCK_SIZE else f"line 1 is {text.partition(chr(10))[0][:40]!r}"
        raise ToolError(f"{file}: {held}, expected {_BLOCK_SIZE} bytes that begin with {_BLOCK_HEAD.strip()!r}")
    body = text.rstrip("#")
    if not body.endswith("\n"):
        raise ToolError(f"{file}, line {body.count(chr(10)) + 1}: the last variable has no end: the block is damaged")
    variables: dict[str, str] = {}
    # a backslash keeps the character behind it, a newline as well
    for number, line in enumerate(re.findall(r"((?:[^\\\n]|\\[\s\S])*)\n", body), start=1):
        name, equals, value = line.partition("=")
        if line.startswith("#"):
            continue
        if not equals or not re.fullmatch(r"\w+", name, re.ASCII) or name in variables:
            raise ToolError(f"{file}, line {number}: found {line[:60]!r}, expected a name of its own with its value")
        variables[name] = re.sub(r"\\([\s\S])", r"\1", value)
    return EnvironmentBlock(variables, len(text) - len(body))


def _header(line: str) -> tuple[str, str]:
    """Title and identifier of a `menuentry` or `submenu` line."""
    try:
        words = shlex.split(line.rstrip("{ \t"), comments=False)
    except ValueError as problem:
        raise ToolError(f"grub.cfg holds a line that cannot be read: {line[:120]!r}") from problem
    identifier = ""
    for option in ("$menuentry_id_option", "--id"):
        if option in words[:-1]:
            identifier = words[words.index(option) + 1]
    identifier = next((word[len("--id=") :] for word in words if word.startswith("--id=")), identifier)
    return (words[1] if len(words) > 1 else ""), identifier


def _parts(line: str) -> list[str]:
    """The commands and braces of a line, each by itself: quotes and `${name}` are part of a word."""
    parts, start, quote, at = [], 0, "", 0
    while at < len(line):
        each = line[at]
        if each == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if each == quote else quote
        elif each in "'\"":
            quote = each
        elif each == "#" and line[:at].endswith((" ", "\t", ";")):
            line = line[:at]
        elif each == ";" or (each in "{}" and _stands_alone(line, at)):
            parts.append(line[start:at].strip())
            parts.append("" if each == ";" else each)
            start = at + 1
        at += 1
    return [part for part in (*parts, line[start:].strip()) if part]


def _stands_alone(line: str, at: int) -> bool:
    """Whether a brace is a word of its own, as GRUB's grammar has blocks."""
    return (at == 0 or line[at - 1] in " \t;") and (at + 1 == len(line) or line[at + 1] in " \t;")


def _block_lines(text: str) -> Iterator[str]:
    """The lines of a configuration, a block's head with its opening brace, also where an owner wrote it otherwise.

    An entry may stand on one line, or have its brace on the next. Raises ToolError for a head without a block.
    """
    head = ""
    for raw in text.splitlines():
        line = raw.strip()
        if head and line:
            if not line.startswith("{"):
                raise ToolError(f"grub.cfg holds an entry without a block: {head[:120]!r}")
            line, head = f"{head} {line}", ""
        if not line.startswith(_HEADS):
            yield from _parts(line) if line.endswith("}") else [line]
            continue
        parts = _parts(line)
        if "{" not in parts:
            head = line
        else:
            yield f"{parts[0]} {{"
            yield from parts[2:]


def parse_config(text: str) -> list[MenuEntry]:
    """The menu entries of a grub.cfg (or custom.cfg) in order, those of submenus with the path through them.

    Raises ToolError for an entry that cannot be read, has no block, or does not end, and for a configuration whose
    entries are elsewhere (Boot Loader Specification) or in the form of GRUB 0.97.
    """
    entries: list[MenuEntry] = []
    parents: list[tuple[str, str, str]] = []  # identifier, title, index
    counters = [0]
    body: list[str] | None = None
    header = ("", "")
    depth = 0
    for line in _block_lines(text):
        if body is not None:
            if line == "}" and depth == 0:
                title, identifier = header
                names = [own or shown for own, shown, _ in parents] + [identifier or title]
                numbers = [number for *_, number in parents] + [str(counters[-1])]
                around = tuple((own, shown) for own, shown, _ in parents)
                entries.append(MenuEntry(title, identifier, ">".join(names), ">".join(numbers), tuple(body), around))
                counters[-1] += 1
                body = None
                continue
            depth += line.endswith("{") - (line == "}")
            body.append(line)
        elif line.startswith(_HEADS[:2]):
            header, body, depth = _header(line), [], 0
        elif line.startswith(_HEADS[2:]):
            title, identifier = _header(line)
            parents.append((identifier, title, str(counters[-1])))
            counters.append(0)
        elif line == "blscfg" or line.startswith("blscfg "):
            raise ToolError("grub.cfg takes its entries from /boot/loader/entries (blscfg), which are not read here")
        elif line.startswith(("title ", "title\t")):
            raise ToolError("this is a configuration of GRUB 0.97, which is not read: GRUB 2 is needed")
        elif line == "}" and parents:
            parents.pop()
            counters.pop()
            counters[-1] += 1
    if body is not None:
        raise ToolError(f"grub.cfg ends within the entry {header[0]!r}")
    return entries


def resolve_entry(
    entries: Sequence[MenuEntry], wanted: str, *, numbers_first: bool = True
) -> tuple[MenuEntry | None, bool]:
    """The entry that GRUB boots by default when this is its `default`, and whether the word names it.

    What names nothing is index 0, at the top as in a submenu. Upstream reads digits at the front as a number before
    it looks for names, so that `6.1 rescue` and `4d684a...` are the entries 6 and 4; Red Hat's looks for the id, then
    the title, then a number that is one as a whole (`numbers_first` is false).
    """
    level, names = 0, True
    while entries:
        # `>>` is a `>` within a name
        head, _, rest = wanted.replace(">>", "\0").partition(">")
        head, rest = head.replace("\0", ">"), rest.replace("\0", ">>")
        tops: dict[int, tuple[str, str]] = {}
        for entry in entries:
            inside = len(entry.parents) > level
            own = entry.parents[level] if inside else (entry.identifier, entry.title)
            tops.setdefault(int(entry.index.split(">")[level]), own)
        place = _place(tops, head, numbers_first=numbers_first) if wanted else None
        names = names and place is not None
        chosen = min(tops) if place is None else place
        entries = [entry for entry in entries if int(entry.index.split(">")[level]) == chosen]
        if len(entries) == 1 and len(entries[0].parents) <= level:
            return entries[0], names
        wanted, level = rest, level + 1
    return None, False


def _place(tops: Mapping[int, tuple[str, str]], head: str, *, numbers_first: bool) -> int | None:
    """Which entry of one menu a word means; None: none of them."""
    # base 0 of strtoul: hexadecimal, octal, decimal
    digits = re.match(r"\s*(?:0x([0-9a-fA-F]+)|(0[0-7]+)|([0-9]+))", head)
    number = None
    if digits:
        number = next(int(text, base) for text, base in zip(digits.groups(), (16, 8, 10)) if text)
        if numbers_first:
            return number if number in tops else None
    by_id = [place for place, (own, _) in sorted(tops.items()) if own and own == head]
    by_title = [place for place, (_, title) in sorted(tops.items()) if title == head]
    if by_id or by_title:
        # upstream takes the first entry that has either
        return min(by_id + by_title) if numbers_first else (by_id + by_title)[0]
    return number if digits and digits.end() == len(head) and number in tops else None


def _folder(word: str) -> str:
    """The folder of a file's path. Raises ToolError where half a pair of quotes would be left over."""
    path = _bare(word)
    if "'" in path or '"' in path:
        raise ToolError(f"grub.cfg names a file in quotes that are not understood: {word[:120]}")
    return path.rpartition("/")[0]


def without_ours(words: Sequence[str]) -> list[str]:
    """The arguments without those that an entry of ours adds; a bench without our words may have its own `panic=`."""
    if not any(word.startswith(OWN_ARGUMENT) for word in words):
        return list(words)
    return [word for word in words if not word.startswith((OWN_ARGUMENT, "panic="))]


def kept_arguments(words: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """A template's arguments without those of an earlier trial, and `arguments` behind them. Raises ToolError."""
    unfit = [word for word in arguments if not ARGUMENT.match(word)]
    if unfit:
        raise ToolError(f"kernel arguments that cannot be written for the boot loader: {' '.join(unfit)}")
    panics = any(word.startswith("panic=") for word in arguments)
    kept = [word for word in without_ours(words) if not (panics and word.startswith("panic="))]
    return [*kept, *arguments]


def initramfs_names(release: str) -> tuple[str, ...]:
    """What the initramfs of a kernel may be called: by initramfs-tools, dracut, SUSE's dracut."""
    return f"initrd.img-{release}", f"initramfs-{release}.img", f"initrd-{release}"


def _images(words: Sequence[str], release: str, initrd: str) -> list[str]:
    """The images of an entry with `initrd` for the kernel's own one; beside it others may stand, as for microcode."""
    own = [word for word in words if _bare(word).rpartition("/")[2] in initramfs_names(release)] or words[:1]
    return [f"{_folder(word)}/{initrd}" if word == own[0] else word for word in (words if len(own) == 1 else own[:1])]


def build_entry(template: MenuEntry, identifier: str, kernel: str, initrd: str, arguments: Sequence[str]) -> str:
    """A menuentry that boots `kernel` (release) as `template` boots its own: same disk, same command line, and more.

    Only the file names change, so the template's way of finding its disk holds. Arguments of an earlier trial and
    `panic=` of the template are left out. An argument that GRUB or the shell of GRUB would read differently is
    refused. Raises ToolError.
    """
    lines = []
    initrd_done = False
    for line in template.body:
        words = line.split()
        if words and words[0] in _KERNEL_LINES:
            folder = _folder(words[1])
            lines.append(" ".join([words[0], f"{folder}/{kernel}", *kept_arguments(words[2:], arguments)]))
            if not initrd and not any(
                other.split()[:1] in [[name] for name in _INITRD_LINES] for other in template.body
            ):
                initrd_done = True
        elif words and words[0] in _INITRD_LINES:
            if initrd:
                lines.append(" ".join([words[0], *_images(words[1:], template.release, initrd)]))
            initrd_done = True
        elif words and words[0] != "echo":
            lines.append(line)
    if initrd and not initrd_done:
        lines.append(f"initrd {_folder(template.kernel)}/{initrd}")
    # without --unrestricted, a loader with superusers asks for one at the console
    return "\n".join(
        [f"menuentry '{identifier}' --unrestricted --id {identifier} {{", *(f"    {line}" for line in lines), "}", ""]
    )


# entries keep them when tuned has gone, and GRUB takes a variable that nobody sets for nothing
_TUNED = ("tuned_params", "tuned_initrd")
_SET = re.compile(r"\s*set\s+(\w+)=(?:\"([^\"$]*)\"|'([^']*)'|([^\s\"'$;]*))\s*;?\s*$", re.ASCII)


def _variables(config: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables as they are when entries are read: of grubenv, and what grub.cfg sets, or sets when it is empty."""
    known = {name: "" for name in _TUNED if name not in config}
    known.update({name: value for name, value in environment.items() if name not in ("saved_entry", "next_entry")})
    before = ""
    for line in config.split("\n"):
        match = _SET.match(line)
        if match:
            name, *values = match.groups()
            guarded = re.match(rf"\s*if \[ -z \"?\$\{{?{name}\}}?\"? \]", before) is not None
            if not (guarded and known.get(name)):
                known[name] = next((value for value in values if value is not None), "")
        before = line if line.strip() else before
    return known


@dataclass(frozen=True)
class Grub:
    """The boot loader of this machine: its folder, and the commands that change its environment."""

    runner: Runner
    folder: str = "/boot/grub"
    sysfs: str = "/sys"
    proc: str = "/proc"
    etc: str = "/etc"

    @property
    def custom(self) -> Path:
        return Path(self.folder) / "custom.cfg"

    def config(self) -> str:
        """The text of grub.cfg. Raises ToolError when this machine does not boot with GRUB."""
        try:
            return (Path(self.folder) / "grub.cfg").read_text(encoding="utf-8", errors="replace")
        except OSError as problem:
            raise ToolError(
                f"{self.folder}/grub.cfg cannot be read: {problem.strerror}; is GRUB the loader here?"
            ) from problem

    def custom_text(self) -> str | None:
        """The text of custom.cfg, None when there is none."""
        try:
            return self.custom.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def entries(self) -> list[MenuEntry]:
        """The menu in GRUB's order: entries in files of their own and those of custom.cfg stand where they are read.

        Raises ToolError.
        """
        lines: list[str] = []
        files: dict[str, MenuEntry] = {}
        search, custom = "", self.custom_text() or ""
        for line in self.config().split("\n"):
            words = line.split()
            if words[:1] == ["search"] and any(word.startswith("--set=root") for word in words):
                search = line.strip()
            if _SOURCE.match(line):
                lines.append(custom)
                custom = ""
            elif words[:1] == ["blscfg"] and not files:
                files = {entry.identifier: entry for entry in self._from_files(words[1:], search)}
                for entry in files.values():
                    head = f"menuentry {shlex.quote(entry.title)} --id {shlex.quote(entry.identifier)} {{"
                    lines += [head, *entry.body, "}"]
            else:
                lines.append(line)
        parsed = parse_config("\n".join(lines))
        return [
            replace(entry, file=files[entry.identifier].file, problems=files[entry.identifier].problems)
            if entry.identifier in files
            else entry
            for entry in parsed
        ]

    def reads_files(self) -> str:
        """Which reader of entry files grub.cfg calls: `red hat`, `upstream`, or none (empty). Raises ToolError."""
        text = self.config()
        call = re.search(r"^\s*blscfg\b(.*)$", text, re.MULTILINE)
        if call is None:
            return ""
        modules = {path.stem for path in Path(self.folder).glob("*/bls*.mod")}
        if re.search(r"\s(?:-[pf]|--path|--enable-fallback)\b", call.group(1)) or "insmod blsuki" in text:
            return "upstream"
        if "insmod blscfg" in text or "blscfg" in modules:
            return "red hat"
        if "blsuki" in modules:
            return "upstream"
        raise ToolError(
            f"{self.folder}/grub.cfg calls blscfg, and nothing in {self.folder} says whether that is Red Hat's or "
            "GRUB 2.14's, which put entries in different orders"
        )

    def _from_files(self, words: Sequence[str], search: str) -> Iterator[MenuEntry]:
        """The entries that `blscfg` puts into the menu, with what is known of their variables."""
        reader = self.reads_files()
        boot = Path(self.folder).parent
        environment = self.environment()
        named = [word for word in words if not re.fullmatch(r"-[pf]|--path|--enable-fallback", word)]
        place = named[0] if named else environment.get("blsdir", "")
        elsewhere = place and not re.search(r"^[^(]*(?:^|/)loader/entries/?$", place)
        if len(named) > 1 or elsewhere:
            called = " ".join(["blscfg", *words])
            raise ToolError(f"{self.folder}/grub.cfg: `{called}` reads another folder than {boot}/loader/entries")
        variables = _variables(self.config(), environment)
        compare = bls.upstream if reader == "upstream" else bls.red_hat
        for entry in bls.in_order(bls.read_folder(str(boot / "loader" / "entries")), compare):
            problems = entry.problems()
            body = [search] if search else []
            for name in ("linux", "initrd"):
                values = [entry.value("linux"), entry.value("options")] if name == "linux" else entry.values(name)
                text = " ".join(values)
                try:
                    text = bls.expand(text, variables, f"{entry.file}, `{name}`")
                except ToolError as problem:
                    problems.append(str(problem))
                body += [f"{name} {text}"] if text else []
            title = entry.value("title") or entry.value("linux")
            yield MenuEntry(
                title, entry.identifier, entry.identifier, "", tuple(body), (), entry.file, tuple(problems)
            )

    def environment(self) -> dict[str, str]:
        """grubenv: saved_entry, next_entry. Raises ToolError."""
        ended = self.runner([self._program("editenv"), f"{self.folder}/grubenv", "list"], timeout=_TIMEOUT)
        return parse_environment(ended.expect().stdout)

    def default(self, environment: Mapping[str, str] | None = None) -> MenuEntry | None:
        """What boots when nothing is asked for, also where the name is none and GRUB takes the first entry."""
        return self.resolved_default(environment)[0]

    def resolved_default(self, environment: Mapping[str, str] | None = None) -> tuple[MenuEntry | None, str]:
        """What boots when nothing is asked for, and the name in grubenv that does not name it (empty: none)."""
        text = self.config()
        env = self.environment() if environment is None else environment
        wanted = env.get("saved_entry", "") if self.reads_saved_entry(text) else ""
        saved = wanted
        if not wanted:
            # the last plain `set default=` is the one outside the test of next_entry
            plain = re.findall(r"^\s*set default=[\"']?([^\"'$\n]+?)[\"']?\s*$", text, re.MULTILINE)
            wanted = plain[-1] if plain else "0"
        entry, named = self._resolve(wanted)
        return entry, "" if named else saved

    def _resolve(self, wanted: str) -> tuple[MenuEntry | None, bool]:
        return resolve_entry(self.entries(), wanted, numbers_first=self.reads_files() != "red hat")

    def resolve(self, wanted: str) -> MenuEntry | None:
        """The entry that this word names; None where it names none."""
        entry, named = self._resolve(wanted)
        return entry if named else None

    @staticmethod
    def reads_saved_entry(text: str) -> bool:
        return re.search(r"^\s*set default=[\"']?\$\{?saved_entry", text, re.MULTILINE) is not None

    def check_one_shot(self) -> None:
        """Raise ToolError, with the remedy, when grub.cfg would ignore a one-shot entry or custom.cfg."""
        text = self.config()
        if "next_entry" not in text:
            raise ToolError(
                f"{self.folder}/grub.cfg does not read next_entry: run update-grub once with a GRUB >= 2.00"
            )
        if "custom.cfg" not in text:
            raise ToolError(
                f"{self.folder}/grub.cfg does not include custom.cfg: /etc/grub.d/41_custom must be executable"
            )

        environment = self._check_environment()
        if environment.get("boot_counter"):
            raise ToolError(
                f"{self.folder}/grubenv has boot_counter={environment['boot_counter']}: somebody else counts boots, "
                "and a trial that uses the last one up has GRUB take its second entry (unset it first)"
            )
        wants = sorted(Path(self.etc).glob("systemd/system/*.wants"))
        once = next((folder / _ONCE for folder in wants if (folder / _ONCE).is_symlink()), None)
        if once is not None:
            raise ToolError(
                f"{once}: a one-shot boot is forgotten by the system that comes up, and not by GRUB, so a trial that "
                "panics would be booted for ever"
            )
        if "env_block" not in environment:
            self._check_writable()

    def _check_environment(self) -> Mapping[str, str]:
        """The variables in grubenv, none without one. Raises ToolError where GRUB could not write a trial into it."""
        file = Path(self.folder) / "grubenv"
        if not file.exists() and not file.is_symlink():
            return {}
        try:
            state, data = file.stat(), file.read_bytes()
            if os.statvfs(file).f_flag & os.ST_RDONLY:
                raise ToolError(f"{file} is on a file system that is mounted read-only")
        except OSError as problem:
            raise ToolError(f"{file}: {problem.strerror}") from problem
        block = read_block(data, str(file))
        if state.st_blocks == 0:
            raise ToolError(f"{file} has no block of its own on the disk, and GRUB writes into no file with holes")
        if block.free < len(f"next_entry={TRIAL_ENTRY}\n") and "next_entry" not in block.variables:
            raise ToolError(f"{file} has {block.free} bytes left, which do not take the name of a trial")
        return block.variables

    def _check_writable(self) -> None:
        """Raise ToolError where GRUB itself cannot write: a trial that it cannot forget would be booted for ever."""
        file = Path(self.folder) / "grubenv"
        try:
            device = (file if file.exists() else Path(self.folder)).stat().st_dev
        except OSError as problem:
            raise ToolError(f"{self.folder}: {problem.strerror}") from problem
        number = f"{os.major(device)}:{os.minor(device)}"
        place = Path(self.sysfs) / "dev" / "block" / number
        layered = [kind for kind in ("dm", "md") if (place / kind).is_dir()]
        if os.major(device) == 0 or layered:
            what = (
                {"dm": "LVM or device mapper", "md": "an md array"}.get(layered[0], "")
                if layered
                else "btrfs or alike"
            )
            raise ToolError(
                f"{self.folder} is on {what}, where GRUB cannot write: it could not forget a one-shot boot. "
                "Put /boot on a plain partition"
            )

    def write_custom(self, text: str | None) -> None:
        if text is None:
            self.custom.unlink(missing_ok=True)
            return
        fresh, mode = self._fresh, 0o600
        with suppress(FileNotFoundError):
            mode = self.custom.stat().st_mode & 0o7777
        with fresh.open("w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(self.custom)

    @property
    def _fresh(self) -> Path:
        return self.custom.with_name("custom.cfg.storqual")

    def tidy(self) -> None:
        """Remove what a write that was cut short left."""
        self._fresh.unlink(missing_ok=True)

    def put_entry(self, text: str, identifier: str) -> None:
        """Write our entry `identifier` into custom.cfg, everything else in there as it was."""
        self.write_custom(without_entry(self.custom_text() or "", identifier) + text)

    def build(self, template: MenuEntry, identifier: str, kernel: str, initrd: str, arguments: Sequence[str]) -> str:
        """The text of an entry of ours. Raises ToolError."""
        return build_entry(template, identifier, kernel, initrd, arguments)

    def take_out(self, identifier: str) -> None:
        """Have custom.cfg be without our entry `identifier`."""
        self.write_custom(without_entry(self.custom_text() or "", identifier))

    def settle(self, files: Sequence[str] = ()) -> bool:
        """Have GRUB see its configuration and `files`; whether they were read as it reads them. Raises ToolError."""
        names = [str(self.custom)] if self.custom.exists() else []
        by_folder: dict[str, list[str]] = {self.folder: names}
        for file in files:
            by_folder.setdefault(str(Path(file).parent), []).append(file)
        boot_files.settle(self.runner, sorted(by_folder), self.proc)
        program = self._program("fstest")
        return all(
            boot_files.check_seen(self.runner, there, program, self.proc) for there in by_folder.values() if there
        )

    def _program(self, name: str) -> str:
        return f"{Path(self.folder).name}-{name}"

    def boot_once(self, path: str) -> None:
        """Boot the entry `path` at the next start only."""
        self._choose("reboot", "next_entry", path)

    def set_default(self, path: str) -> None:
        """Boot the entry `path` from now on. Raises ToolError when grub.cfg does not ask grubenv for its default."""
        if not self.reads_saved_entry(self.config()):
            raise ToolError(
                "grub.cfg has a fixed default kernel: set GRUB_DEFAULT=saved in /etc/default/grub and run update-grub"
            )
        self._choose("set-default", "saved_entry", path)

    def _choose(self, program: str, variable: str, path: str) -> None:
        if self._program("") == "grub2-":
            # SUSE's and Red Hat's programs of these names look into the menu by rules of their own
            self.put_variable(variable, path)
            return
        argv = [self._program(program), f"--boot-directory={Path(self.folder).parent}", path]
        self.runner(argv, timeout=_TIMEOUT).expect()

    def put_variable(self, name: str, value: str | None) -> None:
        words = ["unset", name] if value is None else ["set", f"{name}={value}"]
        self.runner([self._program("editenv"), f"{self.folder}/grubenv", *words], timeout=_TIMEOUT).expect()


def without_entry(text: str, identifier: str) -> str:
    """`text` without our menuentry `identifier`."""
    pattern = rf"^menuentry '{re.escape(identifier)}' [^\n]*\{{\n(?:    [^\n]*\n)*\}}\n"
    return re.sub(pattern, "", text, flags=re.MULTILINE)
