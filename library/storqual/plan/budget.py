# SPDX-License-Identifier: Apache-2.0
"""What a plan costs in bench time, and the smallest loss it can see: said before a bench is touched."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from storqual.model.suite import Profile

__all__ = ["Costs", "costs_of", "detectable_loss", "session_seconds"]

_KINDS: Mapping[str, Mapping[str, float]] = {
    # seconds of each change, of one launch beyond ramp and runtime, and of provisioning and collecting a session
    "virtual": {"reboot": 45.0, "reload": 8.0, "rebuild": 20.0, "instant": 2.0, "launch": 0.9, "session": 8.0},
    "hardware": {"reboot": 240.0, "reload": 20.0, "rebuild": 120.0, "instant": 2.0, "launch": 0.45, "session": 10.0},
    "local": {"reboot": 0.0, "reload": 0.0, "rebuild": 5.0, "instant": 1.0, "launch": 0.45, "session": 3.0},
}

_LAUNCH_NOISE = {"virtual": 0.02, "hardware": 0.01, "local": 0.05}
_SESSION_NOISE = {"virtual": 0.01, "hardware": 0.01, "local": 0.02}


@dataclass(frozen=True)
class Costs:
    """Seconds on one kind of bench; the profile's `costs` take the place of what is expected of the kind."""

    change: Mapping[str, float]
    launch: float
    session: float


def costs_of(kind: str, profile: Profile) -> Costs:
    """The costs of a bench of this kind."""
    table: dict[str, float] = dict(_KINDS[kind])
    table.update({str(name): seconds for name, seconds in profile.costs.items()})
    return Costs(
        {name: table[name] for name in ("reboot", "reload", "rebuild", "instant")}, table["launch"], table["session"]
    )


def session_seconds(change: str, launches: Iterable[int], profile: Profile, costs: Costs) -> float:
    """Expected seconds of a session: getting there, then its blocks of so many launches each."""
    measuring = sum(
        count * (profile.ramp + profile.runtime + costs.launch) + 2 * profile.idle + 1.0 for count in launches
    )
    return costs.change.get(change, 0.0) + costs.session + measuring


def detectable_loss(kind: str, profile: Profile, *, interleaved: bool) -> float:
    """The loss (a fraction) that is found with power 0.8 at the profile's alpha, at the noise that is expected.

    The unit is the session where each arm has its own, else the pair. One unit can show nothing: infinity.
    """
    noise = profile.noise if profile.noise is not None else _LAUNCH_NOISE[kind]
    if interleaved:
        units = profile.pairs
        spread = math.sqrt(2.0) * noise / math.sqrt(units)
        freedom = units - 1
    else:
        units = profile.sessions // 2
        variance = _SESSION_NOISE[kind] ** 2 + noise**2 / profile.launches
        spread = math.sqrt(2.0 * variance / units)
        freedom = 2 * (units - 1)
    if freedom < 1:
        return math.inf
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to import, and only a plan needs it

    width = float(stdtrit(freedom, 1.0 - profile.alpha)) + float(stdtrit(freedom, 0.8))
    return 1.0 - math.exp(-width * spread)
