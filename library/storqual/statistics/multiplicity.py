# SPDX-License-Identifier: Apache-2.0
"""Many tests at once: what of a list of small probabilities still means something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(probabilities: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses to reject so that any false rejection at all has a probability of at most `alpha`."""
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    below = p[order] <= alpha / np.arange(len(p), 0, -1)
    # the first that is not below ends the list
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.cumprod(below).astype(bool)
    return [bool(one) for one in rejected]


def benjamini_hochberg(probabilities: Sequence[float], share: float) -> list[bool]:
    """Which hypotheses to reject so that at most `share` of the rejected are expected to be false."""
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    below = np.flatnonzero(p[order] <= share * np.arange(1, len(p) + 1) / max(len(p), 1))
    rejected = np.zeros(len(p), dtype=bool)
    if below.size:
        rejected[order[: below[-1] + 1]] = True
    return [bool(one) for one in rejected]
