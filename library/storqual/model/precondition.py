# SPDX-License-Identifier: Apache-2.0
"""The shape of what is done to drives before they are measured: `precondition: {purge, fill, steady}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from storqual.model.fields import Duration, Size
from storqual.model.shape import Shape

__all__ = ["Precondition", "Steady"]

_FILL_BLOCK = 128 * 1024


class Steady(Shape):
    """The load whose rate must be level, and how long it may take. Sizes in bytes, times in seconds."""

    rw: Literal["write", "randwrite", "rw", "randrw"] = "randwrite"
    bs: Size = 4096
    iodepth: int = Field(default=32, gt=0, le=65536)
    numjobs: int = Field(default=1, gt=0, le=4096)
    rwmixread: int | None = Field(default=None, ge=0, le=100)
    round: Annotated[Duration, Field(gt=0)] = 60.0
    volume: float = Field(default=1.0, ge=0, le=100, description="capacities to write before the first test")
    at_most: Annotated[Duration, Field(gt=0)] = 4 * 3600.0


class Precondition(Shape):
    """Purge, fill and steady state; SNIA's values where nothing is said."""

    purge: Literal["none", "discard", "format"] = "none"
    fill: int | None = Field(default=2, gt=0, le=100, description="capacities of sequential writes; null: none")
    steady: Steady | None = Steady()

    def to_block(self, consent: tuple[str, ...], fallback: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The `precondition` of a block file; `fallback` is what may be used instead of libaio and O_DIRECT."""
        return {
            "purge": self.purge,
            "consent": list(consent),
            "fill": None if self.fill is None else {"bs": _FILL_BLOCK, "times": self.fill},
            "steady": None if self.steady is None else _steady(self.steady, fallback),
        }


def _steady(ask: Steady, fallback: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fio: dict[str, Any] = {name: getattr(ask, name) for name in ("rw", "bs", "iodepth", "numjobs", "rwmixread")}
    fio |= {"ioengine": "libaio", "direct": 1, "runtime_s": ask.round, "ramp_s": 0.0, "options": {}}
    if fallback:
        fio["fallback"] = list(fallback)
    return {"fio": fio, "volume": ask.volume, "rounds": max(1, round(ask.at_most / ask.round))}
