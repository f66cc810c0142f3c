# SPDX-License-Identifier: Apache-2.0
"""What a kind of turn must say of itself, and the neutral forms in which it does: checks, tables and sentences."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from storqual.base.table import Table
from storqual_core.kit.durable import MOST, checked_name
from storqual_core.kit.quantities import is_whole

COUNTED = "trials"
"""The source of checks that are counted from records: nobody appends them to a run, each judging counts them."""

Record = Mapping[str, Any]
Document = Mapping[str, Any]
"""run.json."""


class Raw(Protocol):
    """The raw files that a record names, each held to its digest when it is read. Both raise StorqualError."""

    def texts(self) -> Mapping[str, str]:
        """All of them, by their path in the run directory."""

    def lines(self, what: str) -> Iterator[Any] | None:
        """The lines of the one that is called so (`raw/<sha256>.stream.jsonl.gz`), None where there is none."""


@dataclass(frozen=True)
class PlannedTurn:
    """A turn as its batch file has it: what a bench is asked for. `run` and `bench` are those of the batch."""

    run: str
    bench: str
    session: str
    kind: str
    id: str
    adapter: str
    arm: str
    point: str
    n: int
    drive: str
    request: Mapping[str, Any]

    @classmethod
    def of(cls, batch: Mapping[str, Any], turn: Mapping[str, Any]) -> "PlannedTurn":
        """A turn of a batch. Raises KeyError, TypeError, ValueError or AttributeError for one that is none.

        Raises BadInputError for an id that is no name: files are called by it.
        """
        block, _, index = str(turn["id"]).rpartition("/")
        # a launch has its batch's name and its number there
        name = block if is_whole(index) else turn["id"]
        checked_name(name, f"blocks/{batch.get('block')}.json: turn", most=4 * MOST)
        names = {name: str(turn[name]) for name in ("kind", "id", "adapter", "arm", "point")}
        whose = {name: str(batch[name]) for name in ("run", "bench", "session")}
        return cls(**whose, **names, n=int(turn["n"]), drive=str(turn["drives"][0]), request=dict(turn["request"]))

    def head(self) -> dict[str, Any]:
        names = ("kind", "id", "bench", "session", "adapter", "arm", "point", "n", "drive")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class RepeatedPair:
    """A turn that is made again in these arms: the names of the pairs that are to be."""

    turn: PlannedTurn
    names: Sequence[str]
    arms: Sequence[str] = ("baseline", "candidate")


@dataclass(frozen=True)
class FoldedList:
    """A list that is folded away, unless somebody must look; `command` is what repeats it, where that can be."""

    title: str
    table: Table
    sentences: tuple[str, ...] = ()
    command: str = ""
    unfolded: bool = False


@dataclass(frozen=True)
class Part:
    """A part of a section, in this order: its title, a table, sentences, folded lists."""

    title: str = ""
    table: Table | None = None
    sentences: tuple[str, ...] = ()
    folded: tuple[FoldedList, ...] = ()


@dataclass(frozen=True)
class Section:
    """What is shown of the turns of one kind. `figures` are for a first screen: name, value, what it counts.

    `criterion_ids` are the checks that it lists by itself: where they are quiet, no other table needs to.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    about: str = ""
    figures: tuple[tuple[str, str, str], ...] = ()
    criterion_ids: frozenset[str] = frozenset()


def _nothing(*_: object) -> Iterable[Any]:
    return ()


@dataclass(frozen=True)
class Kind:
    """One kind of turn.

    `derive` makes the values of a record from the turn and its raw files, when it is made and whenever it is judged;
    it raises what it raises for raw files that are not of this turn. `problems` are those of a record's shape.
    `checks` are counted from the turns that were planned and the records that there are. `show`, `plan` and `summary`
    are for the report, the test plan and a customer. `absent` is what a run without such turns leaves untested, as
    its name and a sentence; `unreached` is what its records say was not reached, likewise. `repeats` are turns of
    which more can decide what is undecided.
    """

    name: str
    derive: Callable[[PlannedTurn, Raw], Mapping[str, Any]]
    problems: Callable[[Record], Iterable[str]] = _nothing
    checks: Callable[[Sequence[PlannedTurn], Sequence[Record], Document], Iterable[dict[str, Any]]] = _nothing
    show: Callable[[Sequence[PlannedTurn], Sequence[Record], Document], Section] | None = None
    plan: Callable[[Sequence[PlannedTurn], Document], Iterable[Part]] = _nothing
    summary: Callable[[Sequence[Record]], Part] | None = None
    absent: tuple[str, str] | None = None
    unreached: Callable[[Sequence[Record]], Iterable[tuple[str, str]]] = _nothing
    repeats: Callable[[Sequence[PlannedTurn], Sequence[Record]], Iterable[RepeatedPair]] = _nothing


def check(ident: str, bench: str, adapter: str, outcome: str, reason: str) -> dict[str, Any]:
    """The line of a check that is counted from records."""
    where = {"bench": bench, "adapter": adapter}
    return {"id": ident, **where, "outcome": outcome, "reason": reason, "source": COUNTED}
