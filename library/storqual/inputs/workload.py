# SPDX-License-Identifier: Apache-2.0
"""The shape of a load that goes to a latency cap: `load: {to: 100ms, of: mean, by: processes}`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from storqual.inputs.fields import Duration, Size, written
from storqual.inputs.shape import Shape

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)\Z")
_PARAMETER = {"iodepth": "iodepth", "processes": "numjobs"}
_MOST = {"iodepth": 4096, "processes": 1024}
_PPM = 10_000


def _of(value: object) -> object:
    match = _PERCENTILE.match(str(value))
    if value != "mean" and (match is None or float(match.group(1)) <= 0):
        raise ValueError("mean, or a percentile such as p99")
    return value


class Load(Shape):
    """Outstanding I/Os or issuing processes are added until the response time passes `to` (seconds)."""

    to: Annotated[Duration, Field(gt=0)]
    of: Annotated[str, BeforeValidator(_of), written("`mean` or a percentile", "p99", pattern="^(mean|p[0-9])")] = (
        "mean"
    )
    by: Literal["iodepth", "processes"] = "iodepth"
    most: int | None = Field(default=None, gt=0, le=65536, description="the largest load to try, per drive")

    @property
    def parameter(self) -> str:
        return _PARAMETER[self.by]

    def to_batch(self, least: int) -> dict[str, Any]:
        most = self.most or _MOST[self.by]
        return {
            "cap_ns": round(self.to * 1e9),
            "share_ppm": 0 if self.of == "mean" else round(float(self.of[1:]) * _PPM),
            "by": self.parameter,
            "least": least,
            "most": max(most, least),
        }


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
    media: Literal["all", "flash"] = Field(default="all", description="flash: only solid state drives")

    def to_batch(self, consent: tuple[str, ...], fallback: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The `precondition` of a batch file; `fallback` is what may be used instead of libaio and O_DIRECT."""
        return {
            "purge": self.purge,
            "consent": list(consent),
            "fill": None if self.fill is None else {"bs": _FILL_BLOCK, "times": self.fill},
            "steady": None if self.steady is None else _steady(self.steady, fallback),
            "media": self.media,
        }


def _steady(ask: Steady, fallback: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fio: dict[str, Any] = {name: getattr(ask, name) for name in ("rw", "bs", "iodepth", "numjobs", "rwmixread")}
    fio |= {"ioengine": "libaio", "direct": 1, "runtime_s": ask.round, "ramp_s": 0.0, "options": {}}
    if fallback:
        fio["fallback"] = list(fallback)
    return {"fio": fio, "volume": ask.volume, "rounds": max(1, round(ask.at_most / ask.round))}
