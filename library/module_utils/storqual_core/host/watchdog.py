# SPDX-License-Identifier: Apache-2.0
"""Watchdogs of a bench: which the kernel shows, what each of them cannot end, and which of them fired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from ..kit.machine import Machine, visible

_CLASS = "/sys/class/watchdog"
_SOFTWARE = "Software Watchdog"
_PANIC_S = 10.0
"""`panic=` of trial boots, and of benches that were set up."""
CHECK_S = 10
"""So often a kernel looks for tasks that wait too long: by its own rule as seldom as the limit of their wait is long,
which finds one after up to twice that limit."""
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


@dataclass(frozen=True)
class Watch:
    """What ends a hang by itself: the watchdog that is armed, `timeout_s` after it was fed last (0: there is none).

    `panic_s` is `panic=`: so long after its panic a kernel starts again; 0: never, and below that at once.
    """

    identity: str = ""
    timeout_s: float = 0.0
    panic_s: float = _PANIC_S

    @property
    def is_hardware(self) -> bool:
        """Whether it also ends what softdog does not: a panic, and a processor that spins with interrupts off."""
        return self.timeout_s > 0 and self.identity != _SOFTWARE

    @classmethod
    def of_setting(cls, text: str) -> Watch:
        """The watchdog that a session's settings name: `iTCO_wdt, 60 s`."""
        identity, _, seconds = text.rpartition(", ")
        number = seconds.partition(" ")[0]
        return cls(identity, float(number)) if number.isascii() and number.isdecimal() else cls()


_FIRST = f"{_CLASS}/watchdog0"
ARMED = f"echo $(cat /proc/sys/kernel/panic) $(cat {_FIRST}/timeout {_FIRST}/state {_FIRST}/identity 2>/dev/null)"
"""Shell words that print a line for `parse_armed`."""
FIRED = f"cat {_FIRST}/bootstatus 2>/dev/null || echo 0"
_BY_WATCHDOG = 0x20
"""WDIOF_CARDRESET of the kernel's watchdog interface."""


def parse_armed(line: str) -> Watch:
    """The answer to ARMED; of what is none, the usual `panic=` and no watchdog."""
    panic, _, rest = line.strip().partition(" ")
    try:
        watch = Watch(panic_s=float(panic))
    except ValueError:
        return Watch()
    timeout, _, rest = rest.partition(" ")
    state, _, identity = rest.partition(" ")
    armed = state == "active" and timeout.isascii() and timeout.isdecimal()
    return Watch(identity, float(timeout), watch.panic_s) if armed else watch


def has_fired(status: str) -> bool:
    """Whether the watchdog made the boot that gives this answer to FIRED; not every driver of one says so."""
    number = status.strip()
    return number.isascii() and number.isdecimal() and bool(int(number) & _BY_WATCHDOG)
