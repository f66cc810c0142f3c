# SPDX-License-Identifier: Apache-2.0
"""What a load curve says: rate and load at the latency cap of its workload, and the rate at given response times.

All are of a closed loop, in which a stall holds back the I/Os behind it: arrivals that do not wait for completions
would meet longer response times (coordinated omission). The cap's point lies between two launches of the search, on
the line through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value
from storqual_core.turns.launch import LoadStep, at_response, read_steps

RESPONSES_MS = (1, 2, 5, 8, 10, 20, 50, 100)
"""Response times at which rates are told, in milliseconds; 8 and 100 are those of published reports."""
_NEEDS = ("load_steps",)
_MS = 1e6


def load_curve(measured: Measured) -> tuple[LoadStep, ...]:
    """The launches of a search, by load. Raises ValueError, TypeError or KeyError for steps that are none."""
    steps = read_steps(measured.primitives["load_steps"], int(measured.primitives["load_share_ppm"]))
    return tuple(sorted(steps, key=lambda step: step.load))


def _at(measured: Measured, response: float) -> tuple[float, float]:
    curve = load_curve(measured)
    found = at_response(curve, response)
    if found is not None:
        return found
    if not curve:
        raise UnavailableError("no load was measured")
    first, last = curve[0], curve[-1]
    wanted = f"{response / _MS:g} ms"
    if first.response_ns > response:
        raise UnavailableError(
            f"the response time is {first.response_ns / _MS:.3g} ms at load {first.load}, which is "
            f"already above {wanted}"
        )
    raise UnavailableError(
        f"{wanted} is not reached: {last.response_ns / _MS:.3g} ms at load {last.load}, the highest "
        "load that was planned"
    )


def _cap(measured: Measured) -> float:
    return float(measured.primitives["load_cap_ns"])


def _source(measured: Measured) -> str:
    share = int(measured.primitives["load_share_ppm"])
    return f"closed loop, {f'p{share / 10000:g}' if share else 'mean'} response time"


def _rate_at(response_ms: int) -> Callable[[Measured], Value]:
    def function(measured: Measured) -> Value:
        return Value(_at(measured, response_ms * _MS)[0], _source(measured))

    return function


def _all() -> Iterator[Metric]:
    yield Metric(
        "iops_at_cap",
        "IOPS at the latency cap",
        "IOPS",
        "higher",
        _NEEDS,
        "rate",
        lambda measured: Value(_at(measured, _cap(measured))[0], _source(measured)),
    )
    yield Metric(
        "load_at_cap",
        "Load at the latency cap",
        "outstanding",
        "higher",
        _NEEDS,
        "rate",
        lambda measured: Value(_at(measured, _cap(measured))[1], _source(measured)),
    )
    for response in RESPONSES_MS:
        label = f"IOPS at a response time of {response} ms"
        yield Metric(f"iops_at_{response}ms", label, "IOPS", "higher", _NEEDS, "rate", _rate_at(response))


LOAD: tuple[Metric, ...] = tuple(_all())
