# SPDX-License-Identifier: Apache-2.0
"""The shape of a load that goes to a latency cap: `load: {to: 100ms, of: mean, by: processes}`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from storqual.model.fields import Duration
from storqual.model.shape import Shape

__all__ = ["Load"]

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
    of: Annotated[str, BeforeValidator(_of)] = "mean"
    by: Literal["iodepth", "processes"] = "iodepth"
    most: int | None = Field(default=None, gt=0, le=65536, description="the largest load to try, per drive")

    @property
    def parameter(self) -> str:
        """The parameter of the workload that is raised."""
        return _PARAMETER[self.by]

    def to_block(self, least: int) -> dict[str, Any]:
        """The `load` of a launch in a block file, from `least` on."""
        most = self.most or _MOST[self.by]
        return {
            "cap_ns": round(self.to * 1e9),
            "share_ppm": 0 if self.of == "mean" else round(float(self.of[1:]) * _PPM),
            "by": self.parameter,
            "least": least,
            "most": max(most, least),
        }
