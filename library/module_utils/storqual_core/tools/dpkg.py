# SPDX-License-Identifier: Apache-2.0
"""dpkg: which package is installed in which version, which kernel it carries, and installing package files."""

from __future__ import annotations

import os
import re
from typing import Sequence

from ..kit.command import Runner
from ..kit.errors import BadInputError, ToolError
from ..kit.machine import visible
from ..kit.package_names import RELEASE
from .capabilities import Kernel, Package

MANAGER = "dpkg"
HEADERS = "linux-headers-{release}"
_KERNEL = re.compile(rf"/(?:usr/lib/modules/|lib/modules/|boot/vmlinuz-)({RELEASE})(?:/|\Z)")
_INSTALL_TIMEOUT = 3600.0
_LISTED = "${Package}\\t${Version}\\t${db:Status-Abbrev}\\n"
# deb-control(5), deb-version(7); neither can be read as an option
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]{1,127}\Z")
# what is wanted (a package that is to go is still there), what is, and no error behind
_INSTALLED = re.compile(r"[a-z]i\s*\Z")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+~:-]{0,127}\Z")


def parse_packages(text: str) -> list[Package]:
    """Lines `name<tab>version<tab>db:Status-Abbrev` of dpkg-query. Raises ToolError for another line."""
    packages = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 3:
            raise ToolError(f"dpkg-query printed {line[:80]!r} where name, version and status were expected")
        packages.append(Package(fields[0], fields[1], bool(_INSTALLED.match(fields[2]))))
    return packages


def named(name: str, version: str = "") -> str:
    """A package's name, which can be no option. Raises BadInputError, for a version that can be none as well."""
    if not _NAME.match(name):
        raise BadInputError(
            [f"package '{visible(name[:80])}': expected a name of a-z, 0-9, `+`, `-` and `.` (Debian)"]
        )
    if version and not _VERSION.match(version):
        raise BadInputError([f"package {name}: found version '{visible(version[:80])}', expected a version (Debian)"])
    return name


def installed(runner: Runner, name: str, version: str = "") -> Package | None:
    """The package `name`, or None when dpkg does not know it or has no version of it."""
    del version  # of one name there is one version
    ended = runner(["dpkg-query", "-W", "-f", _LISTED, "--", named(name)], timeout=60.0)
    if ended.rc == 1:
        return None
    packages = [package for package in parse_packages(ended.expect().stdout) if package.version]
    return packages[0] if packages else None


def kernel_of(runner: Runner, name: str, version: str = "") -> str:
    """The kernel release (`uname -r`) that an installed package carries, itself or by what it depends on.

    A package such as linux-image-amd64 is empty and depends on the kernel that is meant. Raises ToolError when there
    is not exactly one.
    """
    del version  # as above
    releases = _carried(runner, name)
    if not releases:
        depends = runner(["dpkg-query", "-W", "-f", "${Depends}", "--", named(name)], timeout=60.0).expect().stdout
        releases = {release for needed in image_packages(depends) for release in _carried(runner, needed)}
    if len(releases) != 1:
        held = ", ".join(sorted(releases)) or "none"
        raise ToolError(f"package {name} should carry one kernel, it carries {held}")
    return releases.pop()


def image_packages(depends: str) -> list[str]:
    """The kernel packages in a Depends field: `linux-image-6.12.9-amd64 (= 6.12.9-1), kmod` -> the first name."""
    names = (word.strip().split(" ")[0] for word in depends.replace("|", ",").split(","))
    return [name for name in names if name.startswith("linux-image-")]


def _carried(runner: Runner, name: str) -> set[str]:
    return {match.group(1) for match in map(_KERNEL.match, files_of(runner, name)) if match}


def files_of(runner: Runner, name: str) -> Sequence[str]:
    """The files and folders of an installed package. Raises ToolError."""
    return runner(["dpkg-query", "-L", "--", named(name)], timeout=60.0).expect().stdout.splitlines()


def owner(runner: Runner, path: str) -> str:
    """The package that a file belongs to; empty when it belongs to none. Raises ToolError."""
    ended = runner(["dpkg-query", "-S", "--", path], timeout=60.0)
    # names before the last colon and path, several of them with commas, and of a machine's architecture or none
    names = [line.rpartition(": ")[0] for line in ended.stdout.splitlines() if line.endswith(f": {path}")]
    ended.expect(0, 1, what=f"dpkg does not tell whose {path} is")
    return names[0].partition(",")[0] if names and not names[0].startswith("diversion by") else ""


def kernels(runner: Runner) -> Sequence[Kernel]:
    """Every kernel that an installed package carries. Raises ToolError."""
    ended = runner(["dpkg-query", "-W", "-f", _LISTED, "--", "linux-image-*"], timeout=60.0)
    listed = parse_packages(ended.stdout) if ended.rc == 1 else parse_packages(ended.expect().stdout)
    there = [package for package in listed if package.version and package.complete]
    return [
        Kernel(each.name, each.version, release) for each in there for release in sorted(_carried(runner, each.name))
    ]


def install_packages(runner: Runner, files: Sequence[str]) -> None:
    """Install package files in one transaction, never asking; on the disk when this returns.

    Raises ToolError with dpkg's last words.
    """
    ended = runner(
        ["dpkg", "--force-confold", "--force-confdef", "-i", "--", *files],
        timeout=_INSTALL_TIMEOUT,
        env={"DEBIAN_FRONTEND": "noninteractive", "DEBCONF_NONINTERACTIVE_SEEN": "true"},
    )
    if ended.rc != 0:
        words = "; ".join(line.strip() for line in ended.stderr.strip().splitlines()[-3:]) or "no message"
        raise ToolError(f"dpkg could not install {', '.join(files)} (status {ended.rc}): {words[:500]}")
    # a dpkg that is set up with force-unsafe-io leaves that to the kernel, and a power cut leaves empty modules then
    os.sync()


def file_package(runner: Runner, path: str) -> tuple[str, str]:
    """Name and version in a package file. Raises ToolError when it is none."""
    output = (
        runner(["dpkg-deb", "--show", "--showformat", "${Package}\\t${Version}", "--", path], timeout=60.0)
        .expect()
        .stdout
    )
    name, tab, version = output.strip().partition("\t")
    if not tab or not name or not version:
        raise ToolError(f"dpkg-deb printed {output[:80]!r} for {path} where name and version were expected")
    return name, version


def remove_package(runner: Runner, name: str) -> None:
    """Take a package off, its settings too. Raises ToolError with dpkg's last words."""
    ended = runner(
        ["dpkg", "--purge", "--", named(name)], timeout=_INSTALL_TIMEOUT, env={"DEBIAN_FRONTEND": "noninteractive"}
    )
    if ended.rc != 0:
        words = "; ".join(line.strip() for line in ended.stderr.strip().splitlines()[-3:]) or "no message"
        raise ToolError(f"dpkg could not remove {name} (status {ended.rc}): {words[:500]}")
