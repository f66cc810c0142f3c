# SPDX-License-Identifier: Apache-2.0
"""DKMS: drivers that are built on the bench from a package of sources, for each kernel it has headers of."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from ..kit.command import Runner
from ..kit.errors import ToolError
from . import dpkg
from .capabilities import Packages

# dkms 3 writes `module/version, kernel, arch: state`, dkms 2 `module, version, kernel, arch: state`
_LINE = re.compile(r"^([\w.+-]+)(?:/|, )([^,:]+?)(?:, ([^,:]+)(?:, ([^,:]+))?)?: ([a-z]+(?:-[a-z]+)?)(.*)$")
UNREAD = "unread"
_BUILDS = "/var/lib/dkms"
# the driver that a line about a broken tree names: by its folder, or in front of a colon
_TREE = re.compile(r"/(?:var/lib/dkms/([^/\s]+)/([^/\s]+)|usr/src/([\w.+-]+?)-(\d[\w.+~-]*))")
_NAMED = re.compile(r"(?:^|\s)([\w.+-]*[A-Za-z_][\w.+-]*)/(\d[\w.+~-]*)\s*(?:[:,]|$)")
_CONF = re.compile(r"^/usr/src/[^/]+/dkms\.conf$")
_VALUE = re.compile(r"""^\s*(PACKAGE_NAME|PACKAGE_VERSION)=["']?([\w.+~-]+)["']?\s*(?:#.*)?$""", re.MULTILINE)
_LAST_LINES = 5
# a compiler under emulation takes its time
_BUILD_LIMIT_S = 3600.0


@dataclass(frozen=True)
class State:
    """One line of `dkms status`: `state` `added`, `built`, `installed` or `installed-weak` (another kernel's build).

    `kernel` is empty where it is only added. Of a tree that cannot be read the state is `unread` and the remark what
    was printed; `module` is empty where that does not name it.
    """

    module: str
    version: str
    kernel: str
    state: str
    remark: str = ""


@dataclass(frozen=True)
class DkmsSource:
    """Sources as DKMS names them, which is neither the package's name nor the module's."""

    name: str
    version: str

    def words(self, verb: str, kernel: str) -> list[str]:
        return ["dkms", verb, "-m", self.name, "-v", self.version, "-k", kernel]


def parse_status(text: str) -> list[State]:
    """`dkms status`; a line that is not understood is `unread`.

    Raises ToolError when none is understood, and what it says names no driver.
    """
    states: list[State] = []
    unread: list[State] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("Deprecated feature:", "Warning:")):
            continue
        match = _LINE.match(line.strip())
        if match is not None:
            module, version, kernel, _, state, remark = match.groups()
            states.append(State(module, version.strip(), (kernel or "").strip(), state, remark.strip()))
            continue
        named = _TREE.search(line) or _NAMED.search(line)
        module, version = [part for part in named.groups() if part] if named else ("", "")
        if not named and unread and not unread[-1].module:
            # an error may be of several lines
            unread[-1] = replace(unread[-1], remark=f"{unread[-1].remark} {line.strip()[:120]}"[:400])
        elif named and unread and not unread[-1].module:
            unread[-1] = State(module, version, "", UNREAD, f"{unread[-1].remark} {line.strip()[:120]}"[:400])
        elif not unread or named or unread[-1].remark.endswith("."):
            unread.append(State(module, version, "", UNREAD, line.strip()[:120]))
    if unread and not states and not all(each.module for each in unread):
        raise ToolError(f"dkms status printed {unread[0].remark[:300]!r}, which is not understood")
    return states + unread


def status(runner: Runner) -> list[State]:
    """What DKMS has, trees that are broken among it. Raises ToolError; MissingToolError when it is not installed."""
    ended = runner(["dkms", "status"], timeout=60.0)
    # a release ends with a status for a broken tree, and tells of it beside the others
    states = parse_status(f"{ended.stdout}\n{ended.stderr}" if ended.rc != 0 else ended.stdout)
    return states or parse_status(ended.expect().stdout)


def refuse_unread(states: list[State], module: str = "") -> None:
    """Raise ToolError for a tree that cannot be read and is, or may be, the driver that is meant."""
    for each in states:
        if each.state == UNREAD and each.module in ("", module or each.module):
            raise ToolError(f"dkms status does not tell all that is needed: {each.remark!r}; mend that tree first")


def built_for(states: list[State], version: str, kernel: str) -> list[State]:
    """The drivers of a version that are installed for a kernel, be it with another kernel's build."""
    drivers = (each for each in states if (each.version, each.kernel) == (version, kernel))
    return [each for each in drivers if each.state in ("installed", "installed-weak")]


def source_of(runner: Runner, package: str, root: str = "", packages: Packages = dpkg) -> DkmsSource:
    """The sources that an installed package brings, by its dkms.conf. Raises ToolError when it has none.

    `root`: where the machine's files are (another one is for tests).
    """
    place = next((path for path in packages.files_of(runner, package) if _CONF.match(path)), "")
    if not place:
        raise ToolError(f"package {package} brings no /usr/src/*/dkms.conf: it is not a DKMS package")
    try:
        text = Path(root + place).read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise ToolError(f"{place} cannot be read: {problem.strerror}") from problem
    values = dict(_VALUE.findall(text))
    if set(values) != {"PACKAGE_NAME", "PACKAGE_VERSION"}:
        raise ToolError(f"{place} does not say PACKAGE_NAME and PACKAGE_VERSION in plain words")
    return DkmsSource(values["PACKAGE_NAME"], values["PACKAGE_VERSION"])


def build(runner: Runner, source: DkmsSource, module: str, kernel: str, root: str = "") -> Path:
    """The file of a module, built for a kernel and installed nowhere. Raises ToolError with the compiler's words.

    What a package's own script installed already is taken off the kernel's folder again; the build stays with DKMS.
    """
    uninstall(runner, source, kernel)
    there = built(source, module, kernel, root)
    if there is not None:
        return there
    ended = runner(source.words("build", kernel), timeout=_BUILD_LIMIT_S)
    there = built(source, module, kernel, root)
    if ended.rc != 0 or there is None:
        log = last_build_words(root + _BUILDS) or "no build log"
        raise ToolError(f"DKMS could not build {module} of {source.name} {source.version}: {log}")
    return there


def built(source: DkmsSource, module: str, kernel: str, root: str = "") -> Path | None:
    """The file of a module that was built: `<kernel>/<architecture>/module/<name>.ko`, packed or not."""
    wanted = module.replace("-", "_")
    folder = Path(f"{root}{_BUILDS}/{source.name}/{source.version}/{kernel}")
    files = sorted(folder.glob("*/module/*.ko*"))
    return next((file for file in files if file.name.partition(".")[0].replace("-", "_") == wanted), None)


def uninstall(runner: Runner, source: DkmsSource, kernel: str) -> bool:
    """Take what was built off the kernel's folder, where it lies there; whether it did. Raises ToolError."""
    states = status(runner)
    refuse_unread(states, source.name)
    known = [each for each in states if each.module == source.name]
    lies = bool(built_for(known, source.version, kernel))
    if lies:
        runner(source.words("uninstall", kernel), timeout=_BUILD_LIMIT_S).expect()
    return lies


def install(runner: Runner, source: DkmsSource, kernel: str) -> None:
    """Put what was built into the kernel's folder. Raises ToolError.

    Forced: DKMS leaves a driver alone whose version is not above the kernel's own, and what is declared is declared.
    """
    runner([*source.words("install", kernel), "--force"], timeout=_BUILD_LIMIT_S).expect()


def last_build_words(builds: str = _BUILDS) -> str:
    """The end of the newest build log, for the sentence that a build failed; empty when there is none."""
    logs = sorted(Path(builds).glob("*/*/build/make.log"), key=lambda path: path.stat().st_mtime)
    if not logs:
        return ""
    lines = logs[-1].read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{logs[-1]}: " + "; ".join(line.strip() for line in lines[-_LAST_LINES:])[:500]
