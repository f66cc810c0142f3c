# SPDX-License-Identifier: Apache-2.0
"""Which package archive the bench image and the kernels come from; no archive is named in this project."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from storqual_core.command import run

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SUITE", "AptSources", "choose_sources", "debian_entries"]

SUITE = "bookworm"
_ENDINGS = {"", "-updates", "-security", "-backports"}
_OS_RELEASE = Path("/etc/os-release")
# what a lab sets to reach its mirror: proxies, certificates, time checks of a snapshot; never index targets
_KEPT_OPTIONS = re.compile(r"^Acquire::(?:http|https|Retries|Check-Valid-Until|Check-Date)(?:::[A-Za-z0-9._/-]+)* \"")


@dataclass(frozen=True)
class AptSources:
    """Where packages come from: deb822 or one-line text, or a bare mirror address, or "" for mmdebstrap's default."""

    origin: str
    text: str
    options: tuple[str, ...] = ()


def _is_debian(suites: list[str], components: list[str]) -> bool:
    """Whether a source is Debian's own archive for the guest's release, and not someone else's packages for it."""
    known = {SUITE + ending for ending in _ENDINGS}
    return bool(suites) and set(suites) <= known and "main" in components


def debian_entries(one_line: str, deb822: str) -> str:
    """Those entries of a machine's sources that are Debian's archive for the guest's release, as one deb822 text."""
    kept = []
    for block in re.split(r"\n\s*\n", deb822):
        lines = [line for line in block.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        fields: dict[str, str] = {}
        name = ""
        for line in lines:
            if line[0].isspace() and name:
                fields[name] += " " + line.strip()
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        types = fields.get("types", "").split()
        off = fields.get("enabled", "yes").lower() in {"no", "false", "without", "off", "disable", "0"}
        if (
            "deb" in types
            and not off
            and _is_debian(fields.get("suites", "").split(), fields.get("components", "").split())
        ):
            kept.append("\n".join(lines))
    for line in one_line.splitlines():
        match = re.match(r"^\s*deb\s+(\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)", line)
        if match and _is_debian([match[3]], match[4].split()):
            signed = re.search(r"signed-by=(\S+?)[\s\]]", match[1] or "", re.IGNORECASE)
            entry = ["Types: deb", f"URIs: {match[2]}", f"Suites: {match[3]}", f"Components: {match[4].strip()}"]
            kept.append("\n".join(entry + ([f"Signed-By: {signed[1]}"] if signed else [])))
    return "\n\n".join(kept) + "\n" if kept else ""


def _host_release() -> str:
    """`debian bookworm` for this machine, or something else."""
    try:
        fields = dict(
            line.split("=", 1) for line in _OS_RELEASE.read_text(encoding="utf-8").splitlines() if "=" in line
        )
    except OSError:
        return ""
    return f"{fields.get('ID', '').strip(chr(34))} {fields.get('VERSION_CODENAME', '').strip(chr(34))}"


def _host_options() -> tuple[str, ...]:
    """How this machine's apt reaches its archive (proxy, certificates), for one with another configuration."""
    dump = run(["apt-config", "dump"]).expect().stdout
    return tuple(line for line in dump.splitlines() if _KEPT_OPTIONS.match(line) and not line.endswith(' "";'))


def choose_sources(environment: Mapping[str, str] = os.environ, apt: Path = Path("/etc/apt")) -> AptSources:
    """The archive to use.

    `STORQUAL_DEBIAN_MIRROR`, else this machine's own when it runs the same release, else the default of mmdebstrap.
    """
    options = _host_options()
    mirror = environment.get("STORQUAL_DEBIAN_MIRROR", "")
    if mirror:
        return AptSources("STORQUAL_DEBIAN_MIRROR", mirror, options)
    if _host_release() == f"debian {SUITE}":
        parts = apt / "sources.list.d"
        one_line = [apt / "sources.list", *sorted(parts.glob("*.list"))]
        text = debian_entries(
            "\n".join(file.read_text(encoding="utf-8") for file in one_line if file.is_file()),
            "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(parts.glob("*.sources"))),
        )
        if text:
            return AptSources("the apt sources of this machine", text, options)
    return AptSources("the default of mmdebstrap", "", options)
