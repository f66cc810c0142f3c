# SPDX-License-Identifier: Apache-2.0
"""rpm: which packages are there, which kernel each carries, what verifies, who signed; installing by dnf or zypper.

A kernel's release is read from the files of its package and never made of version and release: SUSE cuts the release
and adds the flavour, EL adds `+rt` or `+64k`, and packages built from the source `kernel` need not be kernels.
"""

from __future__ import annotations

import os
import re
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterable, Sequence

from ..kit.archives import MAGICS, read_archive, unpack
from ..kit.command import Completed, Runner
from ..kit.errors import BadInputError, MissingToolError, ToolError
from ..kit.labelled_text import first_line, line_error, numbered_lines
from ..kit.machine import visible
from ..kit.package_names import ARCHITECTURE, NAME, RELEASE, VERSION, Nevra, split_nevra
from . import dnf, zypper
from .capabilities import Kernel, Package
from .dnf import FRONT_END, Transaction

MANAGER = "rpm"
HEADERS = "kernel-devel of this release (SUSE: kernel-default-devel)"
_TIMEOUT = 120.0
_INSTALL_TIMEOUT = 3600.0
# a kernel's image, and not what is made of it or lies beside it
_IMAGE = re.compile(
    rf"(?:(?:/usr)?/lib/modules/({RELEASE})/(?:vmlinuz|vmlinux|Image|zImage|image)"
    rf"|/boot/(?:vmlinuz|vmlinux|Image|zImage|image)-({RELEASE}?))(?:\.(?:gz|xz|zst))?"
)


@dataclass(frozen=True)
class PackageListing:
    """Packages, and the names, files or capabilities that no package has; `notes` are lines of a front end."""

    packages: tuple[Nevra, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


_MISSING = re.compile(
    r"package (\S+) is not installed|no package provides (\S.*)|file (/.*) is not owned by any package|"
    r"error: file (/.*): No such file or directory"
)
_DATE = re.compile(r"[A-Z][a-z]{2} .*[0-9]{4}.*")


def _fields(words: Sequence[str]) -> Nevra | None:
    """Name, epoch, version, release, architecture, and the time of the installation or the source's name."""
    if len(words) not in (5, 6) or not re.fullmatch(r"[0-9]{1,9}|\(none\)", words[1]):
        return None
    if not (ARCHITECTURE.fullmatch(words[4]) or words[4] == "(none)") or not NAME.fullmatch(words[0]):
        return None
    if not all(re.fullmatch(VERSION, word) for word in words[2:4]):
        return None
    # a package file has no time of an installation
    more = words[5] if len(words) == 6 and words[5] != "(none)" else ""
    timed = bool(re.fullmatch("[0-9]{1,12}", more))
    if more and not timed and not NAME.fullmatch(more):
        return None
    epoch, architecture = (word if word != "(none)" else "" for word in (words[1], words[4]))
    when = int(more) if timed else None
    return Nevra(words[0], words[2], words[3], architecture, int(epoch or 0), when, "" if timed else more)


def parse_packages(text: str) -> PackageListing:
    """`rpm -q` by `QUERY`, plain, with `--last`, of files (`-f`), and `dnf repoquery`.

    What is not installed is told on standard output too. Raises ToolError with the line that is of none of these.
    """
    packages, missing, notes = [], [], []
    for number, line in numbered_lines(text):
        absent = _MISSING.fullmatch(line.strip())
        words = line.split("\t") if "\t" in line else line.split()
        package = _fields(words) or (split_nevra(words[0]) if len(words) == 1 else None)
        head, _, when = line.strip().partition(" ")
        if package is None and _DATE.fullmatch(when.strip()):
            package = split_nevra(head)
        if absent:
            missing.append(next(name for name in absent.groups() if name))
        elif package:
            packages.append(package)
        elif FRONT_END.fullmatch(line.strip()) or line.startswith("warning: "):
            notes.append(line.strip())
        else:
            raise line_error("rpm -q", number, line, "a package, or one that is missing")
    if not packages and not missing:
        raise ToolError(f"rpm -q told of no package: {first_line(text)}")
    return PackageListing(tuple(packages), tuple(missing), tuple(notes))


def parse_files(text: str) -> tuple[str, ...]:
    """`rpm -ql` and `rpm -qpl`: the files of one package or several; none for a package without files."""
    files: list[str] = []
    empty = False
    for number, line in numbered_lines(text):
        empty = empty or line == "(contains no files)"
        if line.startswith("/"):
            files.append(line)
        elif line != "(contains no files)":
            raise line_error("rpm -ql", number, line, "the path of a file")
    if not files and not empty:
        raise ToolError(f"rpm -ql told of no files: {first_line(text)}")
    return tuple(files)


@dataclass(frozen=True)
class Deviation:
    """A file that is not as its package has it: `what` is rpm's row (`S.5....T.`), empty for a missing file.

    `kind` is `c` for configuration, `g` for a file that is made later, and so on; `note` is why it was not read.
    """

    path: str
    what: str
    kind: str = ""
    note: str = ""

    @property
    def missing(self) -> bool:
        return not self.what


_VERIFIED = re.compile(
    r"(?:([S.?][M.?][5.?][D.?][L.?][U.?][G.?][T.?](?:[P.?]|[PC.?]{2})?)|missing)\s+"
    r"(?:([acdglmnr])\s+)?(/.*?)(?: \(([^()]*)\))?"
)
_UNSATISFIED = re.compile(r"Unsatisfied dependencies for (\S+):(.*)")


def parse_verify(text: str) -> tuple[tuple[Deviation, ...], tuple[str, ...]]:
    """`rpm -V`: files that deviate, and what is missing or needed; nothing said: all is well. Raises ToolError."""
    deviations, needs = [], []
    unmet = False
    for number, line in numbered_lines(text):
        match, unsatisfied = _VERIFIED.fullmatch(line.strip()), _UNSATISFIED.fullmatch(line)
        if match:
            letters, kind, path, note = match.groups()
            if letters and not letters.strip("."):
                raise line_error("rpm -V", number, line, "a file that deviates in something")
            deviations.append(Deviation(path, letters or "", kind or "", note or ""))
        elif unsatisfied:
            unmet = True
            needs += [unsatisfied.group(2).strip()] if unsatisfied.group(2).strip() else []
        elif (unmet and line[0].isspace()) or _MISSING.fullmatch(line):
            needs.append(line.strip())
        else:
            raise line_error("rpm -V", number, line, "a file that deviates, or a need that is not met")
    return tuple(deviations), tuple(needs)


@dataclass(frozen=True)
class SignatureCheck:
    """What `rpm -K` says of a package file; one that is not signed may be `good`, its digests alone agree then.

    `wrong` are the parts that `rpm -Kv` found to be bad, which a key that is not known is not.
    """

    file: str
    good: bool
    signed: bool
    keys: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


_CHECKED = re.compile(r"(\S.*): ((?:[()\w]+ )+?)(NOT )?OK(?: \(MISSING KEYS: (.+)\))?")
_CHECK_WORD = re.compile(
    r"digests|(signatures|rsa|dsa|pgp|gpg)|sha(?:1|256|512)|md5|size|header|payload", re.IGNORECASE
)
_VERBOSE = re.compile(r"\s+(\S.*?)(, key ID ([0-9a-f]{8,40}))?: (OK|NOKEY|BAD|NOTFOUND|NOTTRUSTED)(?: \(.*\))?")


def parse_signatures(text: str) -> tuple[SignatureCheck, ...]:
    """`rpm -K` of package files, with `-v` or without. Raises ToolError with the line that is of neither."""
    checks: list[SignatureCheck] = []
    files: list[str] = []
    parts: dict[str, list[tuple[str, str, str]]] = {}
    for number, line in numbered_lines(text):
        match, verbose = _CHECKED.fullmatch(line), _VERBOSE.fullmatch(line)
        words = [_CHECK_WORD.fullmatch(word.strip("()")) for word in match.group(2).split()] if match else []
        if match and all(words):
            keys = tuple(re.findall(r"#([0-9a-f]{8,40})", match.group(4) or ""))
            signed = any(word and word.group(1) for word in words)
            checks.append(SignatureCheck(match.group(1), not match.group(3), signed, keys))
        elif line.endswith(":") and not line[0].isspace():
            files.append(line[:-1])
            parts.setdefault(line[:-1], [])
        elif files and verbose:
            parts[files[-1]].append((verbose.group(1), verbose.group(3) or "", verbose.group(4)))
        else:
            raise line_error("rpm -K", number, line, "a file with what was checked of it")
    for file, results in parts.items():
        if not results:
            raise ToolError(f"rpm -K checked nothing of {visible(file[:120])}: the text is cut")
        keys = tuple(dict.fromkeys(key for _, key, _ in results if key))
        signed = any("signature" in what.lower() and state != "NOTFOUND" for what, _, state in results)
        good = all(state in ("OK", "NOTFOUND") for _, _, state in results)
        wrong = tuple(what for what, _, state in results if state == "BAD")
        checks.append(SignatureCheck(file, good, signed, keys, wrong))
    if not checks:
        raise ToolError(f"rpm -K told of no file: {first_line(text)}")
    return tuple(checks)


@dataclass(frozen=True)
class Script:
    """One script of a package: when it runs, what runs it, its text."""

    when: str
    interpreter: str
    text: str


_SCRIPT = re.compile(
    r"((?:pre|post)(?:install|uninstall|trans|untrans)|verify|(?:trans)?(?:file)?trigger(?:in|un|postun|prein))"
    r" (?:scriptlet(?: \(using ([^()]+)\))?(?::| -- .*)|program: ?(.*))"
)


def parse_scripts(text: str) -> tuple[Script, ...]:
    """`rpm -q --scripts`; none for a package without scripts. Raises ToolError for a text that is no such listing."""
    entries: list[Script] = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _SCRIPT.fullmatch(line)
        if match:
            when, interpreter, program = match.groups()
            entries.append(Script(when, interpreter or program or "", ""))
        elif entries:
            script = entries[-1]
            entries[-1] = Script(script.when, script.interpreter, f"{script.text}{line}\n")
        elif line.strip():
            raise line_error("rpm --scripts", number, line, "the heading of a script")
    return tuple(entries)


def kernel_releases(files: Iterable[str]) -> tuple[str, ...]:
    """The kernels (`uname -r`) whose image is among the files of a package; none for what carries no kernel."""
    matches = (match for match in map(_IMAGE.fullmatch, files) if match)
    return tuple(sorted({match.group(1) or match.group(2) for match in matches}))


QUERY = "%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}\\t%{INSTALLTIME}\\n"
_CAPABILITIES = ("installonlypkg(kernel)", "multiversion(kernel)")
_META = re.compile(r"^(\S*uname-r|kernel-(?:core|default|uek\S*)) = (\S+)\s*$", re.MULTILINE)


def named(name: str, version: str = "") -> str:
    """A package's name, which can be no option. Raises BadInputError, for a version that can be none as well."""
    if not NAME.fullmatch(name):
        raise BadInputError(
            [f"package '{visible(name[:80])}': expected a name of letters, digits, `+`, `-`, `.`, `_`"]
        )
    if version and not re.fullmatch(rf"(?:[0-9]{{1,9}}:)?{VERSION}-{VERSION}", version):
        shown = visible(version[:80])
        raise BadInputError([f"package {name}: found version '{shown}', expected version-release (RPM)"])
    return name


def listing(runner: Runner, words: Sequence[str]) -> PackageListing:
    """What a query answers, one record for each package. Raises ToolError."""
    # the status is the number of names that are missing
    return parse_packages(runner(["rpm", "-q", "--qf", QUERY, *words], timeout=_TIMEOUT).stdout)


def _files(runner: Runner, label: str) -> tuple[str, ...]:
    return parse_files(runner(["rpm", "-ql", "--", label], timeout=_TIMEOUT).expect().stdout)


def files_of(runner: Runner, name: str) -> tuple[str, ...]:
    """The files of an installed package. Raises ToolError."""
    return _files(runner, named(name))


def installed(runner: Runner, name: str, version: str = "") -> Package | None:
    """The package `name` in `version`, or in its newest; None when it is not there.

    One that an interrupted transaction has left twice (two versions of what is not installed side by side) is there
    and not complete. Raises ToolError.
    """
    there = listing(runner, ["--", named(name, version)]).packages
    matches = [each for each in there if version in ("", each.evr, f"{each.version}-{each.release}")]
    if not matches:
        return None
    newest = max(matches, key=lambda each: each.installed or 0)
    twice = len({each.architecture for each in there}) < len(there)
    beside = twice and any(each in matches for each in kernel_packages(runner))
    return Package(name, newest.evr, complete=beside or not twice)


def kernel_packages(runner: Runner) -> tuple[Nevra, ...]:
    """Packages that are installed side by side as kernels are; meta packages and modules are among them."""
    packages = listing(runner, ["--whatprovides", *_CAPABILITIES]).packages
    return tuple(dict.fromkeys(packages))


def kernels(runner: Runner) -> tuple[Kernel, ...]:
    """Every kernel that a package carries, with its `uname -r` from the files of the package. Raises ToolError."""
    entries = []
    for package in kernel_packages(runner):
        entries += [
            Kernel(package.name, package.evr, release) for release in kernel_releases(_files(runner, package.label))
        ]
    return tuple(entries)


def kernel_of(runner: Runner, name: str, version: str = "") -> str:
    """The kernel release (`uname -r`) that an installed package carries, itself or by what it needs.

    A package such as EL's `kernel` is empty and needs the package that has the image. Raises ToolError when there is
    not exactly one.
    """
    label = f"{named(name, version)}-{version.rpartition(':')[2]}" if version else named(name)
    releases = set(kernel_releases(_files(runner, label)))
    if not releases:
        needs = runner(["rpm", "-q", "--requires", "--", label], timeout=_TIMEOUT).expect().stdout
        for capability, value in _META.findall(needs):  # `--whatprovides` takes no version
            for each in listing(runner, ["--whatprovides", capability]).packages:
                releases |= {
                    release for release in kernel_releases(_files(runner, each.label)) if value in (release, each.evr)
                }
    if len(releases) != 1:
        held = ", ".join(sorted(releases)) or "none"
        raise ToolError(f"package {name} should carry one kernel, it carries {held}")
    return releases.pop()


def owner(runner: Runner, path: str) -> str:
    """The package that a file belongs to; empty when it belongs to none. Raises ToolError."""
    ended = runner(["rpm", "-q", "--qf", QUERY, "-f", "--", path], timeout=_TIMEOUT)
    packages = parse_packages(ended.stdout or ended.stderr).packages
    return packages[0].label if packages else ""


def file_package(runner: Runner, path: str) -> tuple[str, str]:
    """Name and version in a package file. Raises ToolError when it is none."""
    ended = runner(["rpm", "-q", "--qf", QUERY, "-p", "--", path], timeout=_TIMEOUT).expect()
    (package, *more) = parse_packages(ended.stdout).packages or (None,)
    if package is None or more:
        raise ToolError(f"{path} should be one package, rpm reads {len(more) + 1 if package else 0} in it")
    return package.name, package.evr


_FRONT_ENDS = ("dnf", "yum", "zypper")


def _by_front_end(runner: Runner, words: Callable[[str], Sequence[str]]) -> tuple[str, Completed]:
    """The first front end that is installed, and how it ended."""
    for program in _FRONT_ENDS:
        with suppress(MissingToolError):
            return program, runner([program, *words(program)], timeout=_INSTALL_TIMEOUT)
    raise MissingToolError(f"none of {', '.join(_FRONT_ENDS)} is installed, so no package can be")


def _install_words(program: str) -> list[str]:
    if program == "zypper":
        return ["--non-interactive", "install", "--oldpackage"]
    # no kernel that is there goes for the new one
    return ["-y", "--setopt=installonly_limit=0", "install"]


def install_packages(runner: Runner, files: Sequence[str]) -> None:
    """Install package files in one transaction, beside what is there; on the disk when this returns.

    Raises ToolError with what failed: a script that failed is a warning to rpm, and the front end ends well.
    """
    paths = [os.path.abspath(file) for file in files]  # noqa: PTH100 - a name that begins with a dash becomes a path
    program, ended = _by_front_end(runner, lambda name: [*_install_words(name), *paths])
    output = f"{ended.stdout}\n{ended.stderr}"
    why = zypper.failure(output, ended.rc) if program == "zypper" else dnf.failure(output, ended.rc)
    if why:
        raise ToolError(f"{program} could not install {', '.join(files)} (status {ended.rc}): {why}")
    os.sync()


def preview(runner: Runner, what: Sequence[str]) -> Transaction:
    """What the installation of files or names would change. Raises ToolError where it would not come to it."""
    for program, dry_run, options in (("dnf", dnf.preview, []), ("zypper", zypper.preview, ["--oldpackage"])):
        with suppress(MissingToolError):
            planned = dry_run(runner, ["install", *options, *what])
            reasons = planned.reasons or (("it would have nothing to do",) if planned.end == "nothing" else ())
            if reasons:
                raise ToolError(f"{program} would not install {', '.join(what)}: {'; '.join(reasons[:3])}")
            return planned
    raise MissingToolError("neither dnf nor zypper is installed, so nothing tells what a package would change")


def fetch(runner: Runner, what: Sequence[str], folder: str) -> list[str]:
    """Fetch packages, and what they need that is not there, from the machine's own repositories; the files.

    Raises ToolError with what failed.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    program, ended = _by_front_end(
        runner,
        lambda name: (
            ["--non-interactive", "--pkg-cache-dir", folder, "install", "--download-only", "--oldpackage", *what]
            if name == "zypper"
            else ["-y", "--setopt=installonly_limit=0", "--downloadonly", f"--destdir={folder}", "install", *what]
        ),
    )
    files = sorted(str(path) for path in Path(folder).rglob("*.rpm"))
    if ended.rc or not files:
        raise ended.failure(f"{program} could not fetch {', '.join(what)}")
    return files


def signatures(runner: Runner, files: Sequence[str]) -> tuple[SignatureCheck, ...]:
    """What is known of the signatures of package files. Raises ToolError."""
    # the status tells of a key that is not known too
    return parse_signatures(runner(["rpm", "-K", "-v", "--", *files], timeout=_TIMEOUT).stdout)


def scripts(runner: Runner, file: str) -> tuple[Script, ...]:
    """The scripts of a package file. Raises ToolError."""
    return parse_scripts(runner(["rpm", "-q", "--scripts", "-p", "--", file], timeout=_TIMEOUT).expect().stdout)


_LEAD = 96
_HEADER_MAGIC = b"\x8e\xad\xe8\x01"


def payload(path: str) -> dict[str, bytes]:
    """The files in a package file: content by path. Raises ToolError for a file that is cut, or no package.

    A package is a lead, two headers (the first one, of signatures, filled up to eight bytes) and a packed archive.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem
    place = _LEAD
    for fill in (8, 1):
        if data[place : place + 4] != _HEADER_MAGIC or len(data) < place + 16:
            raise ToolError(f"{path} is no RPM package, or is cut: it has no header at byte {place}")
        entries, size = struct.unpack_from(">II", data, place + 8)
        place += 16 + 16 * entries + size
        place += -place % fill
    try:
        plain = data[place:] if data[place : place + 6] in MAGICS else unpack(data[place:])
        members, _ = read_archive(plain, 0)
    except ToolError as problem:
        raise ToolError(f"{path}: {problem}") from problem
    if leading := [visible(each.name) for each in members if ".." in each.name.split("/")]:
        raise ToolError(f"{path} has a file whose name leads out of its folder: {leading[0][:200]}")
    return {"/" + re.sub(r"^\.?/+", "", member.name): member.content for member in members}


def requires(runner: Runner, file: str) -> tuple[str, ...]:
    """What a package file needs of other packages; a kernel's symbols and rpm's own features are not listed."""
    output = runner(["rpm", "-q", "--requires", "-p", "--", file], timeout=_TIMEOUT).expect().stdout
    own = re.compile(r"(?:kernel|ksym)\(|rpmlib\(|/")
    return tuple(dict.fromkeys(line.strip() for line in output.splitlines() if line.strip() and not own.match(line)))


def erase(runner: Runner, labels: Sequence[str]) -> list[str]:
    """Take packages off, without their scripts where one of these fails; what was told. Raises ToolError."""
    ended = runner(["rpm", "-e", "--", *labels], timeout=_INSTALL_TIMEOUT)
    if ended.rc != 0:
        runner(["rpm", "-e", "--noscripts", "--", *labels], timeout=_INSTALL_TIMEOUT).expect()
    os.sync()
    if ended.rc == 0:
        return []
    return [f"removed without their scripts, one of which failed: {ended.last_words()}"]


def remove_package(runner: Runner, name: str) -> None:
    """Take a package off; one that another package needs stays. Raises ToolError with rpm's last words."""
    runner(["rpm", "-e", "--", named(name)], timeout=_INSTALL_TIMEOUT).expect(what=f"rpm could not remove {name}")
