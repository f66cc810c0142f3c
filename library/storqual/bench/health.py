# SPDX-License-Identifier: Apache-2.0
"""Whether the means work by which a bench is watched and brought back: power, console, watchdog, pstore, kdump."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

PARTS = ("power", "console", "watchdog", "pstore", "kdump")
Works = Literal["works", "broken", "absent", "not tried"]


@dataclass(frozen=True)
class PartHealth:
    """One of PARTS: whether it works, and what was seen of it; what is `not tried` only a proof would show."""

    part: str
    works: Works
    text: str

    def to_json(self) -> dict[str, str]:
        return {"part": self.part, "works": self.works, "text": self.text}


LOOK = "; ".join(
    (
        "echo identity $(cat /sys/class/watchdog/watchdog0/identity 2>/dev/null)",
        "echo state $(cat /sys/class/watchdog/watchdog0/state 2>/dev/null)",
        "echo timeout $(cat /sys/class/watchdog/watchdog0/timeout 2>/dev/null)",
        "echo pstore $(cat /sys/module/pstore/parameters/backend 2>/dev/null)",
        "echo kdump $(cat /sys/kernel/kexec_crash_loaded 2>/dev/null)",
        "echo panic $(cat /proc/sys/kernel/panic)",
    )
)
"""One word and its value a line; a value that is not there is empty."""
# PID 1 starts what outlives the command: a terminal's end would end it
_LATER = "systemd-run --quiet --no-block sh -c "
FIRE = (
    "mkdir -p /run/systemd/system.conf.d && "
    "printf '[Manager]\\nRuntimeWatchdogSec=0\\n' > /run/systemd/system.conf.d/zz-storqual-health.conf && "
    f"systemctl daemon-reexec && {_LATER}'exec 3>/dev/watchdog0; echo . >&3; sleep 1800'"
)
"""Has systemd let the watchdog go, then opens it and never feeds it again; the next boot knows nothing of it."""
PANIC = f"echo 1 > /proc/sys/kernel/sysrq; {_LATER}'sleep 1; echo c > /proc/sysrq-trigger'"


def parse_look(text: str) -> dict[str, str]:
    """The answer to LOOK; lines of anything else are none of it."""
    read: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        read[name] = value.strip()
    return read


def power_health(answers: Mapping[str, str] | None) -> PartHealth:
    """`answers` is what each backend answered about a bench that answers; None without an inventory entry."""
    if answers is None:
        return PartHealth("power", "absent", "the inventory names no `storqual_power`")
    words = "; ".join(f"{name} says {answer}" for name, answer in answers.items())
    wrong = [name for name, answer in answers.items() if answer not in ("on", "unknown")]
    if wrong:
        return PartHealth("power", "broken", f"{words}, and the bench answers")
    if "on" not in answers.values():
        return PartHealth("power", "not tried", f"{words}: only a power cycle would show whether it switches")
    return PartHealth("power", "works", words)


def console_health(token: str, heard: str | None) -> PartHealth:
    """`heard` is what a recorded console showed after the kernel was told to log `token`, None where none is."""
    if heard is None:
        return PartHealth("console", "absent", "nothing records it: name `storqual_console`, and have it recorded")
    if token in heard:
        return PartHealth("console", "works", "a line of the kernel's log came out of it")
    missing = "a line of the kernel's log did not come out: look for `console=` on the kernel's command line"
    return PartHealth("console", "broken", missing)


def standing_health(look: Mapping[str, str]) -> list[PartHealth]:
    """Watchdog, pstore and kdump by what stands on the bench; whether they work only a proof shows."""
    identity, state = look.get("identity", ""), look.get("state", "")
    if not identity:
        watchdog = PartHealth("watchdog", "absent", "the kernel knows none: a hang is ended from the control node")
    elif state != "active":
        watchdog = PartHealth("watchdog", "broken", f"{identity} is fed by nobody (RuntimeWatchdogSec=)")
    else:
        watchdog = PartHealth("watchdog", "not tried", f"{identity}, {look.get('timeout', '')} s, is fed")
    backend = look.get("pstore", "")
    kept = backend not in ("", "(null)", "null")
    pstore = (
        PartHealth("pstore", "not tried", f"kept by {backend}")
        if kept
        else PartHealth("pstore", "absent", "no backend")
    )
    loaded = look.get("kdump") == "1"
    kdump = (
        PartHealth("kdump", "not tried", "a crash kernel is loaded")
        if loaded
        else PartHealth("kdump", "absent", "no crash kernel is loaded (crashkernel=, and the service of kdump)")
    )
    return [watchdog, pstore, kdump]


def fired_health(before: PartHealth, *, ended_by: str, fired: bool, seconds: float) -> PartHealth:
    """The watchdog after nobody fed it; `ended_by` is what had to bring the bench back, empty for nothing."""
    if ended_by and not fired:
        return PartHealth("watchdog", "broken", f"it did not fire: the bench was brought back by {ended_by}")
    how = "and says so" if fired else "which this driver does not say of itself"
    return PartHealth("watchdog", "works", f"{before.text}; it fired, {how}: another boot after {seconds:.0f} s")


def panic_health(part: PartHealth, sources: Mapping[str, bool]) -> PartHealth:
    """One of console, pstore, kdump after a panic was made; `sources` says which had its trace."""
    if part.works == "absent":
        return part
    if sources.get(part.part):
        return PartHealth(part.part, "works", f"{part.text}; it had the trace of a panic")
    return PartHealth(part.part, "broken", f"{part.text}; it had no trace of a panic")


def broken(rows: Sequence[PartHealth]) -> list[str]:
    """A sentence for each part that is there and does not work."""
    return [f"{row.part}: {row.text}" for row in rows if row.works == "broken"]
