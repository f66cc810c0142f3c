# SPDX-License-Identifier: Apache-2.0
"""Sessions of one bench: A B B A by the cost of the change, the costliest varied setting outermost."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from storqual.plan.arms import Difference, change_cost, differences, interleavable, switched_between_batches
from storqual.plan.resolve import Resolved
from storqual_core.kit.settings import COSTS, MEMBERS, RAID_LEVEL, SETTINGS, check_level

ARMS = ("baseline", "candidate")

Varied = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Configuration:
    """A drop plus one level of each varied setting, resolved for one bench."""

    name: str
    arm: str
    varied: Varied
    resolved: Resolved


@dataclass(frozen=True)
class Design:
    """How the arms of a bench alternate: `sessions` (each has its own), `interleaved` (inside a session).

    `single`: there is one arm, the candidate; nothing is compared with a baseline.
    """

    kind: Literal["sessions", "interleaved", "single"]
    change: str
    differences: tuple[Difference, ...]

    @property
    def identical(self) -> bool:
        """Nothing is declared differently: the campaign compares a drop with itself."""
        return self.kind != "single" and not self.differences

    @property
    def by_batch(self) -> bool:
        """Interleaved arms alternate batch by batch, not launch by launch: the control node switches them."""
        return self.kind == "interleaved" and switched_between_batches(self.differences)


@dataclass(frozen=True)
class SessionPlan:
    """One session before its batches: which arms, which slow levels of varied settings, how the bench gets there."""

    id: str
    arms: tuple[str, ...]
    slow: Varied
    change: str
    boot: str
    fresh: bool


def configuration_name(arm: str, varied: Mapping[str, Any] | Varied) -> str:
    """`candidate` or `candidate[drive.WCE=0]`."""
    inside = ",".join(f"{name}={value}" for name, value in sorted(dict(varied).items()))
    return f"{arm}[{inside}]" if inside else arm


def design_of(first: Resolved | None, second: Resolved, *, by_sessions: bool = False) -> Design:
    """How two arms alternate on a bench; `by_sessions` keeps sessions although the arms could interleave.

    Without a first one there is one arm, and the change is what it takes to get there.
    """
    if first is None:
        return Design("single", change_cost(differences(Resolved(), second)), ())
    changes = tuple(differences(first, second))
    change = change_cost(changes)
    if interleavable(changes) and not by_sessions:
        return Design("interleaved", change, changes)
    return Design("sessions", "reboot" if by_sessions and change in ("none", "instant") else change, changes)


def split(vary: Mapping[str, Sequence[Any]]) -> tuple[list[Varied], list[Varied]]:
    """Combinations of varied settings that cost more than a write, costliest outermost, and of those that do not."""

    def cost(name: str) -> int:
        return COSTS.index(SETTINGS[name].cost)

    slow = sorted((name for name in vary if not is_quick(name)), key=lambda name: (-cost(name), name))
    quick = sorted(name for name in vary if is_quick(name))
    return _combinations(vary, slow), _combinations(vary, quick)


def combinations(vary: Mapping[str, Sequence[Any]]) -> tuple[list[Varied], list[Varied]]:
    """`split` of a suite's levels in plain form; where counts are bound to RAID levels, those that go together."""
    plain = {name: [check_level(SETTINGS[name], level) for level in levels] for name, levels in vary.items()}
    bound = next((entry for entry in plain.get(MEMBERS, ()) if isinstance(entry, dict)), None)
    if bound is None:
        return split(plain)
    slow, quick = split(
        {**plain, MEMBERS: list(dict.fromkeys(count for counts in bound.values() for count in counts))}
    )
    return [varied for varied in slow if _go_together(dict(varied), bound)], quick


def _go_together(levels: Mapping[str, Any], bound: Mapping[str, Sequence[int]]) -> bool:
    return levels[MEMBERS] in bound.get(str(levels.get(RAID_LEVEL)), ())


def plan_sessions(design: Design, slow: Sequence[Varied], count: int, prefix: str = "s") -> list[SessionPlan]:
    """The sessions in order. `count` is the number of sessions of each slow combination in a sessions design.

    A B B A: the mean time of both arms is equal, so that a linear drift cancels. Neighbours of one arm are separated
    by a fresh boot (or reload), else they would be one session that is counted as two. With one arm each combination
    is visited half as often as `count` says, there and back again for the same reason.
    """
    planned: list[SessionPlan] = []
    before: Varied | None = None
    for combination in _visits(design, slow, count):
        vary_change = _vary_change(before, combination)
        before = combination
        if design.kind == "single":
            orders: list[tuple[str, ...]] = [ARMS[1:]]
        elif design.kind == "interleaved":
            orders = [ARMS]
        else:
            orders = [(arm,) for arm in itertools.islice(itertools.cycle((*ARMS, *reversed(ARMS))), count)]
        for arms in orders:
            number = len(planned) + 1
            arrived = design.kind == "single" and bool(planned)
            change = vary_change if arrived else max(design.change, vary_change, key=_rank)
            reboots = change == "reboot" and design.kind == "sessions"
            boot = "if_needed" if not planned or not reboots else "always"
            planned.append(
                SessionPlan(
                    id=f"{prefix}{number:02d}",
                    arms=arms,
                    slow=combination,
                    change=change,
                    boot=boot if change == "reboot" else "never" if planned else "if_needed",
                    fresh=bool(planned) and change not in ("none", "instant"),
                )
            )
            vary_change = "none"
    return planned


def _visits(design: Design, slow: Sequence[Varied], count: int) -> list[Varied]:
    """The slow combinations in the order in which they are measured."""
    if design.kind != "single" or len(slow) < 2:
        return list(slow)
    ways = itertools.islice(itertools.cycle((list(slow), list(reversed(slow)))), count // 2)
    return [combination for way in ways for combination in way]


def is_quick(name: str) -> bool:
    """Whether a bench can switch a varied setting between two launches."""
    return Difference(*_parts(name), first=0, second=1).switchable


def _parts(name: str) -> tuple[str, str, str]:
    section, _, setting = name.partition(".")
    return section, "0x0", setting


def _combinations(vary: Mapping[str, Sequence[Any]], names: Sequence[str]) -> list[Varied]:
    products = itertools.product(*(vary[name] for name in names))
    return [tuple(zip(names, levels, strict=True)) for levels in products]


def _rank(change: str) -> int:
    return COSTS.index(change) if change in COSTS else -1


def turn_change(design: Design, vary: Iterable[str]) -> str:
    """What it costs to come to an arm as its drop declares it, from the other one or from any level of a setting."""
    return max((change_cost(design.differences), *(SETTINGS[name].cost for name in vary)), key=_rank)


def _vary_change(before: Varied | None, after: Varied) -> str:
    """What it costs to go from one combination to the next."""
    if before is None:
        return max((SETTINGS[name].cost for name, _ in after), key=_rank, default="none")
    changed = [name for (name, level), (_, old) in zip(after, before, strict=True) if level != old]
    return max((SETTINGS[name].cost for name in changed), key=_rank, default="none")
