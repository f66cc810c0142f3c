# SPDX-License-Identifier: Apache-2.0
"""Multipath on a bench while its trials run: maps of the claimed drives of several paths, and of nothing else.

A bench that has a configuration or maps of its own keeps them: then they must have the drives' maps. On any other
the configuration is written, and taken back with all that came of it.
"""

import re
import shlex
import time
from collections.abc import Mapping
from typing import Any

from storqual.bench.follow import Connection
from storqual.turns.needed_packages import install_package
from storqual_core.host.identity import names_namespace
from storqual_core.kit.errors import ToolError
from storqual_core.tools.dmsetup import parse_status
from storqual_core.turns.multipath_configuration import ASK_TIMERS, MARK, configuration

_PACKAGE = "multipath-tools"
_FILE = "/etc/multipath.conf"
_LIMIT_S = 90.0
_LOOK_S = 0.2


def paths_of(adapters: Mapping[str, Any]) -> dict[str, int]:
    """The claimed drives of several paths among a run's adapters, with how many they have.

    Without those of NVMe, whose paths the kernel's driver brings together itself.
    """
    return {
        drive["id"]: 1 + len(drive["paths"])
        for adapter in adapters.values()
        for drive in adapter["drives"]
        if drive.get("claim") and drive.get("paths") and not names_namespace(drive["id"])
    }


def _digits(drive: str) -> str:
    """What the name of a drive's map ends with: its WWN's own digits. Raises ToolError for a drive without a WWN."""
    digits = drive.removeprefix("0x").rpartition(".")[2]
    if not re.fullmatch("[0-9a-f]+", digits):
        raise ToolError(f"drive {drive} has several paths and no WWN, by which multipath would know it")
    return digits


def _map_of(drive: str) -> str:
    """Shell words for the name of a drive's map, empty where there is none."""
    return (
        f"$(for file in $(grep -ils {shlex.quote(f'^mpath-.*{_digits(drive)}$')} /sys/class/block/dm-*/dm/uuid); "
        'do cat "${file%uuid}name"; done)'
    )


def active_paths(connection: Connection, drive: str) -> int:
    """How many paths of a drive the kernel uses, 0 without a map. Raises ConnectionLostError, ToolError."""
    status = connection.run(f'map="{_map_of(drive)}"; test -z "$map" || dmsetup status "$map"')
    return sum(parse_status(status).values()) if status.strip() else 0


def await_paths(connection: Connection, drive: str, count: int) -> None:
    """Wait until the kernel uses so many paths of a drive. Raises ToolError when it does not."""
    end = time.monotonic() + _LIMIT_S
    while (number := active_paths(connection, drive)) != count:
        if time.monotonic() > end:
            raise ToolError(f"{number} paths of {drive} are active after {_LIMIT_S:g} s, {count} are expected")
        time.sleep(_LOOK_S)


def make_maps(connection: Connection, drives: Mapping[str, int], state_dir: str, *, virtual: bool) -> str:
    """Have a multipath device over each of the drives; what was installed for it, empty when nothing was.

    Raises ToolError when a drive has not got all its paths in one.
    """
    version = ""
    if connection.run(_OWN).strip() == "none":
        state = connection.run("systemctl is-enabled multipathd 2>/dev/null || true").strip() or "not there"
        wwids = "|".join(f"[0-9]{_digits(drive)}" for drive in drives)
        # known to the disk before anything rests on it: a bench that is reset would find an empty file
        connection.run(
            f"cat > {_FILE}.part && sync {_FILE}.part && mv {_FILE}.part {_FILE} && sync /etc",
            data=configuration(state, wwids, connection.run(ASK_TIMERS)).encode(),
        )
    if connection.run(OURS).strip():
        version = install_package(connection, _PACKAGE, state_dir, virtual=virtual)
        connection.run("modprobe dm_multipath && systemctl restart multipathd", limit_s=_LIMIT_S)
    for drive, count in drives.items():
        await_paths(connection, drive, count)
    return f"installed {_PACKAGE} {version}" if version else ""


def take_maps_apart(connection: Connection) -> list[str]:
    """Take back what `make_maps` did on a bench, where it did; what was done.

    Raises ConnectionLostError when a map is in use.
    """
    head = connection.run(OURS).strip()
    if not head:
        return []
    # the daemon would make a map again that is taken apart below it
    connection.run("systemctl stop multipathd.socket multipathd.service 2>/dev/null || true", limit_s=_LIMIT_S)
    maps = connection.run(_FLUSH, limit_s=_LIMIT_S).split()
    again = "start" if head.endswith(" enabled") else "disable"
    connection.run(f"rm {_FILE}; systemctl {again} multipathd.service 2>/dev/null || true", limit_s=_LIMIT_S)
    return [f"multipath device {name} was taken apart" for name in maps]


_OWN = f"test -e {_FILE} || grep -qs '^mpath-' /sys/class/block/dm-*/dm/uuid && echo own || echo none"
OURS = f"grep -s {shlex.quote('^' + MARK)} {_FILE} || true"
_FLUSH = """\
for file in $(grep -ls '^mpath-' /sys/class/block/dm-*/dm/uuid); do
    name=$(cat "${file%uuid}name")
    multipath -f "$name" >&2 && multipath -w "$name" >&2 && echo "$name" || exit 1
done"""
