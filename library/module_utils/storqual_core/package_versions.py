# SPDX-License-Identifier: Apache-2.0
"""Which tools a bench has, and which versions, without starting each of them."""

from __future__ import annotations

import re

from .command import Runner
from .errors import ToolError
from .machine import Machine

__all__ = ["parse_status", "tool_versions"]

# command -> package that brings it; vendor tools come without a package, so only their place is told
_TOOLS = {
    "fio": "fio",
    "sg_modes": "sg3-utils",
    "sdparm": "sdparm",
    "smartctl": "smartmontools",
    "nvme": "nvme-cli",
    "mdadm": "mdadm",
    "lvm": "lvm2",
    "multipath": "multipath-tools",
    "storcli64": "",
    "storcli": "",
    "perccli64": "",
    "storcli2": "",
    "perccli2": "",
    "sas2ircu": "",
    "sas3ircu": "",
    "sas2flash": "",
    "sas3flash": "",
    "lsiutil": "",
    "qaucli": "",
    "hbacmd": "",
    "ssacli": "",
    "arcconf": "",
    "mvcli": "",
    "fwupdmgr": "fwupd",
}
_RPM = {"sg3-utils": "sg3_utils", "multipath-tools": "device-mapper-multipath"}
_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/MegaRAID/storcli")
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


def tool_versions(machine: Machine, runner: Runner) -> dict[str, dict[str, str]]:
    """Each tool that is there: its path and version. A fio that no package brought is asked itself."""
    found = {}
    for tool in _TOOLS:
        path = next((f"{folder}/{tool}" for folder in _FOLDERS if machine.exists(f"{folder}/{tool}")), "")
        if path:
            found[tool] = path
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
    if not wanted or not any(machine.exists(f"{folder}/rpm") for folder in _FOLDERS):
        return {}
    names = {_RPM.get(package, package): package for package in sorted(wanted)}
    try:
        said = runner(["rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n", *names], timeout=60.0).stdout
    except ToolError:
        return {}
    pairs = (line.partition(" ") for line in said.splitlines() if "not installed" not in line)
    return {names[name]: version for name, _, version in pairs if name in names}
