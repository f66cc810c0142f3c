# SPDX-License-Identifier: Apache-2.0
"""What else went on on the bench while a launch ran: reasons to doubt its numbers, from the counters around it.

None of it says that a number is wrong: it says that the number may be about something else than the adapter. Limits
are far above what benches of metal and emulated ones show of themselves (an emulated bench of one processor spends up
to 0.3 of it on answering the control node).
"""

from __future__ import annotations

from typing import Any, Mapping

from .fio_job import FioAsk

__all__ = ["environment_doubts"]

_FOREIGN_PROCESSORS = 0.5
_FOREIGN_SHARE = 0.1
"""Of fio's own: its time is measured, the system's is sampled by the tick."""
_MORE_BYTES = 0.1
_MORE_IOS = 32
_SLOWER_CLOCK = 0.9
_SECTOR = 512


def environment_doubts(ask: FioAsk, targets: int, primitives: Mapping[str, Any]) -> list[str]:
    """Sentences about one launch on so many targets; none where nothing was counted."""
    wall, runtime = primitives.get("wall_ns"), primitives.get("runtime_ns")
    if not wall or not runtime:
        return []
    return [
        *_other_programs(primitives, wall, runtime),
        *_other_ios(ask, targets, primitives, wall, runtime),
        *_heat(primitives),
    ]


def _other_programs(primitives: Mapping[str, Any], wall: int, runtime: int) -> list[str]:
    """Programs beside fio and ours, by the time that the system spent outside of the kernel."""
    needed = ("stat_user_ticks", "tick_ns", "fio_user_ns")
    if any(name not in primitives for name in needed):
        return []
    ticks = primitives["stat_user_ticks"] + primitives.get("stat_nice_ticks", 0)
    fio = primitives["fio_user_ns"] / runtime
    others = (ticks * primitives["tick_ns"] - primitives.get("own_cpu_ns", 0)) / wall - fio
    if others <= max(_FOREIGN_PROCESSORS, _FOREIGN_SHARE * fio):
        return []
    return [f"another load on the bench: programs beside fio used {others:.2f} processors while it ran"]


def _other_ios(ask: FioAsk, targets: int, primitives: Mapping[str, Any], wall: int, runtime: int) -> list[str]:
    """I/O of somebody else on the launch's own drives. Buffered I/O is not counted by fio as the drives see it."""
    if not ask.direct or "disk_read_sectors" not in primitives:
        return []
    for way in ("read", "write"):
        moved = primitives.get(f"disk_{way}_sectors", 0) * _SECTOR / wall
        asked = primitives.get(f"{way}_bytes", 0) / runtime
        # what was outstanding at the window's ends, and a few more
        edge = (2 * ask.iodepth * ask.numjobs * targets + _MORE_IOS) * ask.bs / wall
        if moved - asked > max(_MORE_BYTES * asked, edge):
            told = f"the drives moved {1e3 * moved:.1f} MB/s in {way}s, fio {1e3 * asked:.1f}"
            return [f"another load on the bench: {told}"]
    return []


def _heat(primitives: Mapping[str, Any]) -> list[str]:
    """Processors that were slowed down."""
    said = []
    if primitives.get("thermal_throttles"):
        said.append(f"processors were slowed down for heat {primitives['thermal_throttles']} times while it ran")
    before, after = primitives.get("cpu_khz_before"), primitives.get("cpu_khz_after")
    if before and after and after < _SLOWER_CLOCK * before:
        said.append(f"the processors' clock fell from {before / 1e6:.2f} to {after / 1e6:.2f} GHz while it ran")
    return said
