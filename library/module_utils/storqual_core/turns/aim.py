# SPDX-License-Identifier: Apache-2.0
"""What a fault on the bench is aimed at, and whom it tells what it saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from ..guard.hold import STATE_DIR
from ..host.sysfs import Drive
from ..kit.command import Runner
from ..kit.machine import Machine

Tell = Callable[[str, str], None]
"""Takes what was seen (`drive_gone`, `drive_back`, `read_back` …) and a sentence."""


@dataclass(frozen=True)
class Aim:
    """What a fault is aimed at, as it is now; `away_s` is how long a thing stays away or changed.

    `spare` is the first byte and the length of what the guard lets be written and the load leaves alone: from there,
    and from nowhere else, a fault takes sectors that it writes to. `tag` is of this trial alone.
    """

    machine: Machine
    runner: Runner
    drive: Drive
    away_s: float
    limit_s: float
    spare: tuple[int, int] = (0, 0)
    tag: str = ""
    state_dir: str = STATE_DIR
