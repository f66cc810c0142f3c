# SPDX-License-Identifier: Apache-2.0
"""The one way in which settings are brought about: read, compare, refuse or (remember, write, read back), prove.

A subsystem says how one kind of setting is read, written and proven, and nothing else. The engine does the rest, for
provisioning, for check mode and its drift, for a switch between two launches, and for the restore, which is the same
subsystem with the values that were remembered. All owners (drives, adapters) are read and every objection is known
before the first of them is written.
"""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import (
    Any,
    Callable,
    Collection,
    ContextManager,
    Dict,
    Generic,
    Iterable,
    Mapping,
    Protocol,
    Sequence,
    Tuple,
    TypeVar,
)

from ..kit.errors import BadInputError, StorqualError, ToolError
from ..kit.lock import BenchLock, SavedState, hold_lock, read_saved, remember
from ..kit.results import Provisioned, partial_errors, refuse_unlike
from ..kit.settings import check_section, section_of

C_contra = TypeVar("C_contra", contravariant=True)
Values = Dict[str, Any]
Proof = Tuple["bool | None", str]


class Subsystem(Protocol[C_contra]):
    """One kind of setting. `section` is the vocabulary's, `owned_by` is `drive`, `adapter`, or empty: the bench.

    `watched` are the names that watching can show in effect, the cheapest first.
    """

    section: str
    owned_by: str
    watched: Sequence[str]

    def read(self, target: C_contra, names: Sequence[str]) -> Values:
        """The values that `names` have now; what the target does not have is left out. Raises ToolError."""

    def objections(self, target: C_contra, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """Why `wanted` cannot be brought about, where that can be known before a write. Raises ToolError."""

    def disturbs(self, name: str) -> Collection[str]:
        """The names that a write of `name` may change, itself not among them."""

    def together(self, name: str) -> object:
        """Names for which this is equal go in one write."""

    def write(self, target: C_contra, values: Mapping[str, Any]) -> list[str]:
        """Write names that go together; what was done. Raises ToolError."""

    def prove(self, target: C_contra, name: str, value: object) -> Proof:
        """Whether `value` is in effect (None: not shown), and how that is known without watching anything."""

    def watch(self, target: C_contra, name: str, value: Any, seconds: float) -> Proof | None:  # noqa: ANN401
        """The same by watching for about `seconds`, without a write; None: `prove` is all there is."""


class Separate:
    """Names of a subsystem that leave each other alone, are written one by one, and are not watched."""

    watched: Sequence[str] = ()

    def watch(self, target: Any, name: str, value: Any, seconds: float) -> Proof | None:  # noqa: ANN401
        del target, name, value, seconds
        return None

    def disturbs(self, name: str) -> Collection[str]:
        del name
        return ()

    def together(self, name: str) -> object:
        return name


LOCK_WAIT_S, PROOFS_S = 30.0, 8.0
"""How long a step waits for a bench that another one is changing, and watches what all its settings do."""

T = TypeVar("T")


@dataclass(frozen=True)
class SettingChange:
    """One setting that is not as declared."""

    owner: str
    name: str
    before: object
    declared: object

    def line(self, value: object) -> str:
        return f"{self.owner} {self.name}: {value}\n"


@dataclass(frozen=True)
class SettingPlan(Generic[T]):
    """One owner: what is declared (None: only read), what was read, what a write would touch, what forbids it.

    `touched` are the names that differ and all that their writes may change, in the order of writing; `found` is what
    they were before the run's first write, as far as that is remembered.
    """

    owner: str
    target: T
    declared: Mapping[str, Any]
    before: Mapping[str, Any]
    touched: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    found: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changes(self) -> Values:
        wanted = ((name, value) for name, value in self.declared.items() if value is not None)
        return {name: value for name, value in wanted if self.before.get(name) != value}

    @property
    def memory(self) -> Values:
        return {name: self.before[name] for name in self.touched if name in self.before}

    @property
    def goal(self) -> Values:
        """What must be there after the writes: what is declared, and else what a write may change as it was found."""
        undeclared = {name: self.found.get(name, value) for name, value in self.memory.items()}
        return {**undeclared, **{name: value for name, value in self.declared.items() if value is not None}}


@dataclass(frozen=True)
class StepOutcome:
    """What a step did, or in check mode what it would do."""

    settings: Sequence[Provisioned]
    steps: Sequence[str]
    changes: Sequence[SettingChange] = ()

    def result(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the module adds
        """The module's result: everything that was done is a change, everything that differed is drift."""
        return {
            "changed": bool(self.steps),
            "settings": [entry.record() for entry in self.settings],
            "steps": list(self.steps),
            "drift": [f"{c.owner} {c.name}: {c.before}, declared {c.declared}" for c in self.changes],
            "diff": {
                "before": "".join(change.line(change.before) for change in self.changes),
                "after": "".join(change.line(change.declared) for change in self.changes),
            },
            **more,
        }


def lock_for(state_dir: str, run: str, purpose: str, *, check: bool) -> ContextManager[BenchLock | None]:
    """The bench's lock; check mode touches nothing, not even that."""
    return nullcontext() if check else hold_lock(Path(state_dir), run, purpose, wait_s=LOCK_WAIT_S)


@dataclass(frozen=True)
class Call:
    """How a step was called: the bench's state folder, the run that it belongs to, and whether it only looks."""

    state_dir: str = "/var/lib/storqual"
    run: str = "provision"
    check: bool = False

    def lock(self, purpose: str) -> ContextManager[BenchLock | None]:
        """The bench's lock; none in check mode."""
        return lock_for(self.state_dir, self.run, purpose, check=self.check)


def saver(lock: BenchLock | None) -> Callable[[Values], None] | None:
    """What remembers old values under a lock; None without one (check mode)."""

    def save(memory: Values) -> None:
        if memory and lock is not None:
            remember(lock, memory)

    return None if lock is None else save


def refuse_problems(problems: Sequence[str]) -> None:
    """Raise ToolError with all problems, a line each, when there are any; nothing was written."""
    if problems:
        raise ToolError("\n".join(problems))


def declared_by_owner(
    section: str,
    declared: Mapping[str, Mapping[str, object]],
    as_found: Mapping[str, Collection[str]],
    state_dir: str,
) -> dict[str, Values]:
    """Values in plain form by owner, and those that must be as they were found; None only reads.

    `as_found` are names by owner: their value is what was remembered, None where nobody changed it. Raises
    BadInputError with every problem.
    """
    known = section_of(section)
    settings: dict[str, Values] = {}
    problems: list[str] = []
    for owner, values in declared.items():
        # what is only read needs a name that exists, and no value
        given = {name: value for name, value in values.items() if value is not None or name not in known}
        try:
            plain = check_section(section, given)
        except BadInputError as problem:
            problems += [f"{owner}: {line}" for line in problem.problems]
            continue
        settings[owner] = {name: plain.get(name) for name in values}
    if problems:
        raise BadInputError(problems)
    saved = read_saved(Path(state_dir)) if as_found else None
    for owner, names in as_found.items():
        for name in names:
            value = saved.values.get(f"{section}.{name}@{owner}") if saved else None
            settings.setdefault(owner, {}).setdefault(name, value)
    return settings


def plan(
    subsystem: Subsystem[T], owner: str, target: T, declared: Mapping[str, Any], saved: SavedState | None = None
) -> SettingPlan[T]:
    """Read one owner and say what must be written; what stands against it is in `problems`, not raised.

    What a write may change and nobody declares is to be as it was found, so `saved` is the bench's memory.
    """
    try:
        before = subsystem.read(target, list(declared))
        wanted = {name: value for name, value in declared.items() if value is not None}
        touched = _touched(subsystem, [name for name, value in wanted.items() if before.get(name) != value])
        before.update(subsystem.read(target, [name for name in touched if name not in declared]))
        problems = subsystem.objections(target, wanted, before)
    except ToolError as problem:
        return SettingPlan(owner, target, declared, {}, problems=(f"{owner}: {problem}",))
    values = saved.values if saved else {}
    keys = {name: f"{subsystem.section}.{name}@{owner}" for name in touched}
    originals = {name: values[key] for name, key in keys.items() if key in values}
    return SettingPlan(
        owner, target, declared, before, touched, tuple(f"{owner}: {reason}" for reason in problems), originals
    )


def _touched(subsystem: Subsystem[T], names: Iterable[str]) -> tuple[str, ...]:
    """`names` and all that their writes may change, and so on, in the order of writing."""
    hits: list[str] = []
    left = list(names)
    while left:
        hits.append(left.pop(0))
        left += [hit for hit in subsystem.disturbs(hits[-1]) if hit not in hits and hit not in left]
    return _in_order(subsystem, hits)


def _in_order(subsystem: Subsystem[T], names: Iterable[str]) -> tuple[str, ...]:
    """Each name behind those whose writes may change it; names that go together side by side."""
    left, ordered = list(names), []
    while left:
        disturbed = {hit for name in left for hit in subsystem.disturbs(name)}
        free = [name for name in left if name not in disturbed]
        if not free:
            raise ValueError(f"settings that change each other in a circle: {', '.join(left)}")
        kinds = list(dict.fromkeys(subsystem.together(name) for name in free))
        ordered += sorted(free, key=lambda name: kinds.index(subsystem.together(name)))
        left = [name for name in left if name in disturbed]
    return tuple(ordered)


def apply(
    subsystem: Subsystem[T],
    plans: Sequence[SettingPlan[T]],
    *,
    save: Callable[[Values], None] | None,
    also: Callable[[SettingPlan[T]], Mapping[str, Any]] = lambda _plan: {},
    afterwards: Callable[[list[str]], None] = lambda _steps: None,
    prove_s: float = 0.0,
) -> StepOutcome:
    """Make all owners as planned, or, without `save` (check mode), only say what would change.

    `save` is called once before the first write, with old values by `<section>.<name>@<owner>` and what `also` gives
    for a plan that writes; `afterwards` does what must follow the writes before they count, and tells its steps.
    What reads back as declared is watched for `prove_s` seconds a setting, all together for about `PROOFS_S`.
    Raises ToolError (nothing was written; every problem of every owner is in it) or PartialError (something was).
    """
    refuse_problems([problem for each in plans for problem in each.problems])
    section = subsystem.section
    changes = [
        SettingChange(each.owner, f"{section}.{name}", each.before.get(name), value)
        for each in plans
        for name, value in each.changes.items()
    ]
    writing = [each for each in plans if each.changes]
    if save is None:
        foreseen = [f"{each.owner}: {', '.join(each.changes)} would be written" for each in writing]
        return StepOutcome(_records(subsystem, plans, {each.owner: each.before for each in plans}), foreseen, changes)
    memory: Values = {}
    for each in writing:
        memory.update(also(each))
        memory.update({f"{section}.{name}@{each.owner}": value for name, value in each.memory.items()})
    save(memory)
    steps: list[str] = []
    with partial_errors(steps, lambda: _left(subsystem, plans)):
        for each in writing:
            _write(subsystem, each, steps)
        afterwards(steps)
        now = {each.owner: _read_again(subsystem, each) for each in plans}
    refuse_unlike(_records(subsystem, plans, now), steps)
    shown = _watched(subsystem, plans, prove_s) if prove_s > 0 else {}
    return StepOutcome(_records(subsystem, plans, now, shown), steps, changes)


def _watched(
    subsystem: Subsystem[T], plans: Sequence[SettingPlan[T]], seconds: float
) -> dict[tuple[str, str], Proof]:
    """What watching shows by owner and name, the cheapest name of all owners first, as long as there is time."""
    deadline = time.monotonic() + PROOFS_S
    shown: dict[tuple[str, str], Proof] = {}
    for name in subsystem.watched:
        for each in (candidate for candidate in plans if candidate.declared.get(name) is not None):
            late = time.monotonic() > deadline
            seen = None if late else subsystem.watch(each.target, name, each.declared[name], seconds)
            if late or seen:
                shown[each.owner, name] = seen or (None, f"the time for watching ({PROOFS_S:g} s) was used up")
    return shown


def _write(subsystem: Subsystem[T], each: SettingPlan[T], steps: list[str]) -> None:
    """Write what differs, in order; what an earlier write may have changed is read again before it is compared."""
    now, wanted = dict(each.before), each.goal
    for _, group in groupby(_in_order(subsystem, wanted), key=subsystem.together):
        names = list(group)
        declared = {name: wanted[name] for name in names if each.declared.get(name) is not None}
        originals = {name: wanted[name] for name in names if name not in declared}
        if any(now.get(name) != value for name, value in declared.items()):
            steps += subsystem.write(each.target, declared)
        if any(now.get(name) != value for name, value in originals.items()):
            # nobody declares it: where its former value is no longer possible, what the write made of it stays
            with suppress(ToolError):
                steps += subsystem.write(each.target, originals)
        hit = [name for name in _touched(subsystem, names) if name in wanted and name not in names]
        now.update(subsystem.read(each.target, hit))


def _read_again(subsystem: Subsystem[T], each: SettingPlan[T]) -> Mapping[str, Any]:
    names = dict.fromkeys([*each.declared, *each.touched])
    return subsystem.read(each.target, list(names)) if each.changes else each.before


def _left(subsystem: Subsystem[T], plans: Sequence[SettingPlan[T]]) -> list[Provisioned]:
    settings: list[Provisioned] = []
    for each in plans:
        with suppress(StorqualError):
            settings += _records(subsystem, [each], {each.owner: _read_again(subsystem, each)})
    return settings


def _records(
    subsystem: Subsystem[T],
    plans: Sequence[SettingPlan[T]],
    now: Mapping[str, Mapping[str, Any]],
    shown: Mapping[tuple[str, str], Proof] | None = None,
) -> list[Provisioned]:
    """One record per declared setting, and one for each that a write may have changed."""
    return [
        _record(subsystem, each, name, now[each.owner].get(name), (shown or {}).get((each.owner, name)))
        for each in plans
        for name in dict.fromkeys([*each.declared, *(name for name in each.touched if name in each.before)])
    ]


def _record(subsystem: Subsystem[T], each: SettingPlan[T], name: str, now: object, seen: Proof | None) -> Provisioned:
    declared, before = each.declared.get(name), each.before.get(name)
    proven, proof = (None, "") if declared is None else seen or subsystem.prove(each.target, name, now)
    return Provisioned(
        f"{subsystem.section}.{name}",
        declared,
        before,
        now,
        changed=before != now,
        proven=proven,
        proof=proof,
        **({subsystem.owned_by: each.owner} if subsystem.owned_by else {}),
    )
