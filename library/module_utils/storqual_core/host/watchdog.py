# SPDX-License-Identifier: Apache-2.0
"""Watchdogs of a bench: which the kernel shows, and what each of them cannot end."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..kit.machine import Machine, visible

_CLASS = "/sys/class/watchdog"
_SOFTWARE = "Software Watchdog"
BLIND = (
    "softdog is a timer of the kernel that it watches: it ends neither a panic nor a processor that spins with "
    "interrupts off"
)
NONE = "no watchdog: a kernel that stops is ended by panic= or by hand"


def read_watchdogs(machine: Machine) -> list[dict[str, Any]]:
    """Each watchdog in the order of its number; the first is the one that systemd feeds.

    `hardware` is False for softdog; `armed`: somebody feeds it, and it fires `timeout_s` after the last time.
    """
    names = [name for name in machine.names(_CLASS) if name[len("watchdog") :].isdecimal()]
    watchdogs = []
    for name in sorted(names, key=lambda name: int(name[len("watchdog") :])):
        identity = machine.text(f"{_CLASS}/{name}/identity") or "unnamed"
        watchdogs.append(
            {
                "name": name,
                "identity": identity,
                "hardware": identity != _SOFTWARE,
                "timeout_s": machine.number(f"{_CLASS}/{name}/timeout"),
                "armed": machine.text(f"{_CLASS}/{name}/state") == "active",
            }
        )
    return watchdogs


def has_hardware(watchdogs: Sequence[Mapping[str, Any]]) -> bool:
    return any(each["hardware"] for each in watchdogs)


def watchdog_words(watchdogs: Sequence[Mapping[str, Any]]) -> str:
    """All of them on a line, with what softdog cannot see where there is no other."""
    if not watchdogs:
        return NONE
    names = ", ".join(visible(each["identity"]) for each in watchdogs)
    return names if has_hardware(watchdogs) else f"{names} ({BLIND})"
