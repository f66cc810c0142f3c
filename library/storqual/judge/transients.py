# SPDX-License-Identifier: Apache-2.0
"""Does the ramp cover the start of a launch: what is measured after it must be level.

The rule that cuts start-up transients is the profile's `ramp`: fio discards it in every launch, of both arms alike.
Here it is checked. The seconds of all launches of a bench, each as a share of its own mean, are averaged by their
place in the launch, which leaves little noise; where MSER still cuts that series, and what it cuts is off by more
than a percent and by more than chance explains, the ramp was too short, and by how much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from storqual.judge.extract import Key, Place
from storqual_core.steady_state import settled_from

__all__ = ["short_ramps"]

_FEWEST_LAUNCHES = 8
_FEWEST_SECONDS = 4
_LARGEST_OFF = 0.01
_SPREADS = 3.0


def short_ramps(places: Mapping[Key, Place]) -> list[str]:
    """A sentence for each bench whose launches still settle when they are measured."""
    series: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for (bench, _, _), place in places.items():
        for launches in place.arms.values():
            series[bench] += [one.seconds for one in launches if len(one.seconds) >= _FEWEST_SECONDS]
    said = []
    for bench, seconds in series.items():
        found = _transient(seconds)
        if found is not None:
            cut, off = found
            told = f"launches settle for {cut} s more than their ramp, {100 * off:+.1f} % off in that time"
            said.append(f"{bench}: {told}: a longer ramp would cut it")
    return said


def _transient(series: list[tuple[float, ...]]) -> tuple[int, float] | None:
    """How many seconds of the usual launch are a transient, and how far they are off; None for none."""
    if len(series) < _FEWEST_LAUNCHES:
        return None
    length = min(map(len, series))
    shares = np.array([np.asarray(one[:length]) / np.mean(one) for one in series])
    cut = settled_from(shares.mean(axis=0).tolist(), group=1)
    if not cut:
        return None
    off = shares[:, :cut].mean(axis=1) / shares[:, cut:].mean(axis=1) - 1
    mean, error = float(off.mean()), float(off.std(ddof=1)) / np.sqrt(len(off))
    return (cut, mean) if abs(mean) > max(_LARGEST_OFF, _SPREADS * error) else None
