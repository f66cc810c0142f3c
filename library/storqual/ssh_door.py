# SPDX-License-Identifier: Apache-2.0
"""Where SSH would knock, and whether anybody is at home: cheap to ask while a bench boots, unlike a whole login."""

from __future__ import annotations

import socket
from dataclasses import dataclass

__all__ = ["Door", "is_open", "parse_door"]

_BANNER = b"SSH-"
_PROXIES = frozenset({"proxyjump", "proxycommand"})


@dataclass(frozen=True)
class Door:
    """The address that a TCP connection of this machine reaches a bench's SSH server at."""

    host: str
    port: int


def parse_door(text: str) -> Door | None:
    """The address in what `ssh -G HOST` prints; None when the way leads through another host or is not told."""
    options: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        options[name] = value
    if any(options.get(name, "none") != "none" for name in _PROXIES):
        return None
    host, port = options.get("hostname", ""), options.get("port", "")
    return Door(host, int(port)) if host and port.isdecimal() and port.isascii() else None


def is_open(door: Door, limit_s: float) -> bool:
    """Whether an SSH server says its name there within `limit_s` seconds.

    A listening port is not enough: QEMU's user network and some firewalls accept a connection for a host that is
    still booting.
    """
    try:
        with socket.create_connection((door.host, door.port), timeout=limit_s) as connection:
            connection.settimeout(limit_s)
            return connection.recv(len(_BANNER)) == _BANNER
    except OSError:
        return False
