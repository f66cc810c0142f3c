# SPDX-License-Identifier: Apache-2.0
"""Which tools a bench has, and which versions, without starting each of them."""

from __future__ import annotations

import re

from .command import VENDOR_FOLDERS, Runner
from .errors import ToolError
from .machine import Machine

__all__ = ["find_program", "parse_status", "tool_versions"]

# command -> package that brings it; vendor tools come without one, and their own rooms name their programs
_TOOLS = {
    "fio": "fio",
    "sg_modes": "sg3-utils",
    "sdparm": "sdparm",
    "smartctl": "smartmontools",
    "nvme": "nvme-cli",
    "mdadm": "mdadm",
    "lvm": "lvm2",
    "multipath": "multipath-tools",
    "lspci": "pciutils",
    "lsscsi": "lsscsi",
    "dmidecode": "dmidecode",
    "fwupdmgr": "fwupd",
}
_RPM = {"sg3-utils": "sg3_utils", "multipath-tools": "device-mapper-multipath"}
_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", *VENDOR_FOLDERS)
_STATUS = "/var/lib/dpkg/status"


def parse_status(text: str) -> dict[str, str]:
    """Versions of installed packages in dpkg's status file (RFC 822 paragraphs; deb-control(5))."""
    found = {}
    for paragraph in text.split("\n\n"):
        name = re.search(r"^Package: (\S+)$", paragraph, re.MULTILINE)
        version = re.search(r"^Version: (\S+)$", paragraph, re.MULTILINE)
        if name and version and re.search(r"^Status: \S+ ok installed$", paragraph, re.MULTILINE):
            found[name.group(1)] = version.group(1)
    return found


def find_program(machine: Machine, name: str) -> str:
    """Where a program is installed, `` when it is not; vendors' own folders are looked into as well."""
    return next((f"{folder}/{name}" for folder in _FOLDERS if machine.exists(f"{folder}/{name}")), "")


def tool_versions(machine: Machine, runner: Runner) -> dict[str, dict[str, str]]:
    """Each tool that is there: its path and version. A fio that no package brought is asked itself."""
    found = {tool: path for tool in _TOOLS if (path := find_program(machine, tool))}
    wanted = {package for tool, package in _TOOLS.items() if tool in found and package}
    versions = _packages(machine, runner, wanted)
    tools = {tool: {"path": path, "version": versions.get(_TOOLS[tool], "")} for tool, path in found.items()}
    if "fio" in tools and (not tools["fio"]["version"] or "/local/" in tools["fio"]["path"]):
        try:
            said = runner(["fio", "--version"], timeout=30.0).expect().stdout.strip()
        except ToolError as problem:
            said = f"does not run: {problem}"
        tools["fio"]["version"] = said
    return tools


def _packages(machine: Machine, runner: Runner, wanted: set[str]) -> dict[str, str]:
    status = machine.read(_STATUS)
    if status:
        return parse_status(status.decode("utf-8", "replace"))
    if not wanted or not find_program(machine, "rpm"):
        return {}
    names = {_RPM.get(package, package): package for package in sorted(wanted)}
    try:
        said = runner(["rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n", *names], timeout=60.0).stdout
    except ToolError:
        return {}
    pairs = (line.partition(" ") for line in said.splitlines() if "not installed" not in line)
    return {names[name]: version for name, _, version in pairs if name in names}
