# SPDX-License-Identifier: Apache-2.0
"""The lines of a plan's bench time: what takes it, how long, and where the figure comes from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Profile
from storqual.plan.arms import change_cost, differences
from storqual.plan.budget import WRITTEN_BYTES_S, Costs
from storqual.plan.resolve import Resolved, find_drive

_CHANGES = {
    "reboot": "boots",
    "reload": "reloads of drivers",
    "rebuild": "volumes made again",
    "instant": "settings written",
}
_PACKAGE_S: Mapping[str, float] = {"virtual": 40.0, "hardware": 60.0, "local": 0.0}
_BUILD_S: Mapping[str, float] = {"virtual": 120.0, "hardware": 90.0, "local": 0.0}
"""Seconds of installing one package, and of DKMS building a driver for one kernel."""


@dataclass(frozen=True)
class TimeLine:
    """One line of the estimate: `what` takes `seconds` of a bench, and `source` says where the figure comes from."""

    what: str
    seconds: float
    source: str

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.bench_time`."""
        return {"what": self.what, "seconds": round(self.seconds, 1), "source": self.source}


class BenchTime:
    """Adds up what a bench's campaign takes; lines of no seconds are left out."""

    def __init__(self, bench: Bench, profile: Profile, costs: Costs) -> None:
        self._bench = bench
        self._profile = profile
        self._costs = costs
        self._usual = f"usual for {bench.kind} benches"
        self._seconds: dict[tuple[str, str], float] = {}

    def add(self, what: str, seconds: float, source: str) -> None:
        """So many more seconds of `what`."""
        if seconds:
            key = (what, source)
            self._seconds[key] = self._seconds.get(key, 0.0) + seconds

    def add_change(self, change: str, times: int = 1, what: str = "") -> None:
        """What getting from one configuration to another takes."""
        source = f"`costs` of the profile: {change}" if change in self._profile.costs else self._usual
        self.add(what or _CHANGES.get(change, change), times * self._costs.change.get(change, 0.0), source)

    def add_session(self, change: str, batches: Sequence[float]) -> None:
        """A session: getting there, being provisioned and collected, and its launches, in seconds of each batch."""
        self.add_change(change)
        self.add("sessions provisioned and collected", self._costs.session, self._usual)
        self.add("launches", sum(batches), "the launches planned, with what starting one takes")

    def lines(self, factor: float, more: Collection[TimeLine]) -> tuple[TimeLine, ...]:
        """All lines; what was added is the first part of a campaign that is expected to take `factor` of it."""
        each = (TimeLine(what, factor * seconds, source) for (what, source), seconds in self._seconds.items())
        return (*each, *(line for line in more if line.seconds))


def once(bench: Bench, arms: Sequence[Resolved], costs: Costs) -> tuple[TimeLine, ...]:
    """What comes once in a campaign: packages, the way to the first configuration, and restore as the last.

    Each arm's packages are installed once; the bench is put back as it was found at the end.
    """
    usual = f"usual for {bench.kind} benches"
    first = change_cost(differences(Resolved(), arms[0]))
    back = max(
        (change_cost(differences(Resolved(), arm)) for arm in arms), key=lambda name: costs.change.get(name, 0)
    )
    packages = {str(arm.driver.get(name)) for arm in arms for name in ("kernel", "dkms") if arm.driver.get(name)}
    return (
        TimeLine("packages installed", len(packages) * _PACKAGE_S[bench.kind], f"{len(packages)} of them, {usual}"),
        TimeLine("the first configuration", costs.change.get(first, 0.0), f"a {first}, {usual}"),
        TimeLine("restore", costs.change.get(back, 0.0) + costs.session, f"the way back, {usual}"),
    )


def provisioning(
    bench: Bench, resolved: Resolved, change: str, costs: Costs, *, kept: bool = False
) -> tuple[TimeLine, ...]:
    """What a configuration takes each time the bench comes to it, beside the change itself.

    A DKMS package is taken off for the other arm, so each session of its arm builds it. Volumes are made again where
    a change of them is the reason for the session, and a full initialisation writes all members at once. `kept`: the
    volumes are those of the session before.
    """
    usual = f"usual for {bench.kind} benches"
    made = [TimeLine("DKMS builds", _BUILD_S[bench.kind] if resolved.driver.get("dkms") else 0.0, usual)]
    if resolved.raid and not kept:
        # a `rebuild` is what making volumes takes; where a boot is the costlier change, they are made beside it
        making = 0.0 if change == "rebuild" else costs.change["rebuild"]
        made.append(TimeLine("volumes made (RAID)", making, usual))
        sizes = [
            drive.size or 0
            for volume in resolved.raid
            if volume.get("initialisation") == "full"
            for member in volume["members"]
            if (drive := find_drive(bench, member)) is not None
        ]
        rate = WRITTEN_BYTES_S[bench.kind]
        source = f"the largest member at {rate / 1e6:g} MB/s, {usual}"
        made.append(TimeLine("volumes initialised", max(sizes, default=0) / rate, source))
    return tuple(made)


def seconds_per_session(bench: Bench, arms: Sequence[Resolved], change: str, costs: Costs, *, kept: bool) -> float:
    """What provisioning adds to a further session in the mean of the arms, beside the change."""
    lines = [line for arm in arms for line in provisioning(bench, arm, change, costs, kept=kept)]
    return sum(line.seconds for line in lines) / len(arms)
