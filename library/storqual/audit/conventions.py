# SPDX-License-Identifier: Apache-2.0
"""Which senses of MB, KB, time and CPU make a table consistent: found by trying them all."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from storqual.audit.comparison import Comparison
from storqual.inputs.expression import Convention
from storqual.inputs.printed import Rounding

_SENSES: Mapping[str, tuple[tuple[str, Fraction], ...]] = {
    "MB": (("MB = 10^6 bytes", Fraction(10**6)), ("MB = 2^20 bytes", Fraction(2**20))),
    "KB": (("KB = 1000 bytes", Fraction(1000)), ("KB = 1024 bytes", Fraction(1024))),
    "TIME": (
        ("seconds", Fraction(1, 10**6)),
        ("milliseconds", Fraction(1, 1000)),
        ("microseconds", Fraction(1)),
    ),
}


@dataclass(frozen=True)
class Sense:
    """The senses that fit best. `fits` of `members` agree; `others` are senses that fit as well, in words."""

    values: Mapping[str, Fraction]
    words: str
    fits: int
    members: int
    next_best: int
    others: tuple[str, ...] = ()

    def sentence(self) -> str:
        """What was inferred and how surely."""
        if not self.words:
            return ""
        if not self.fits:
            return f"No sense of its units makes it agree (here with {self.words})."
        if self.others:
            return (
                f"With {self.words} {self.fits} of {self.members} agree; so they do with {', or '.join(self.others)}."
            )
        return (
            f"With {self.words} {self.fits} of {self.members} agree, with any other reading at most {self.next_best}."
        )


def infer_conventions(members: Sequence[Comparison]) -> Sense:
    """The senses in which most members agree; of equals the one with more exact hits, then the first listed."""
    names = [name for name in [*_SENSES, "CPUS"] if any(Convention(name) in member.leaves() for member in members)]
    if not names:
        return Sense({}, "", 0, len(members), 0)
    cpus = max((member.assertion.cpus or 1 for member in members), default=1)
    tried: list[tuple[int, int, Mapping[str, Fraction], str]] = []
    for combination in itertools.product(*(_senses(name, cpus) for name in names)):
        values = {name: value for name, (_, value) in zip(names, combination, strict=True)}
        judged = [member.using(values) for member in members]
        fits = sum(member.agrees() for member in judged)
        exact = sum(any(member.agrees_exactly(manner) for manner in Rounding) for member in judged)
        tried.append((fits, exact, values, _words([words for words, _ in combination])))
    best = max(tried, key=lambda one: one[:2])
    equal = tuple(words for *score, _, words in tried if tuple(score) == best[:2] and words != best[3])
    next_best = max((fits for fits, _, values, _ in tried if values != best[2]), default=0)
    return Sense(best[2], best[3], best[0], len(members), next_best, equal)


def _senses(name: str, cpus: int) -> tuple[tuple[str, Fraction], ...]:
    if name != "CPUS":
        return _SENSES[name]
    return (
        (f"CPU % as printed (of all {cpus} CPUs together)", Fraction(1)),
        (f"CPU % summed over {cpus} CPUs", Fraction(1, cpus)),
        (f"CPU % of one of {cpus} CPUs", Fraction(cpus)),
    )


def _words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


_EVIDENCE = 2
"""How many figures must speak for a manner other than rounding to nearest: one could be a misprint."""


def infer_manner(members: Sequence[Comparison]) -> Rounding:
    """The manner in which most members, computed from the figures exactly as printed, give what is printed."""
    values = [member for member in members if not member.bound]
    if len(values) < _EVIDENCE:
        return Rounding.NEAREST
    hits = {manner: [member for member in values if member.agrees_exactly(manner)] for manner in Rounding}
    nearest = hits[Rounding.NEAREST]
    best = max((Rounding.DOWN, Rounding.UP), key=lambda manner: len(hits[manner]))
    evidence = [member for member in hits[best] if member not in nearest]
    return best if len(hits[best]) > len(nearest) and len(evidence) >= _EVIDENCE else Rounding.NEAREST


def hedged_manners(member: Comparison) -> tuple[Rounding, ...]:
    """What "about" lets an author do: round either way, by less than a unit of the last digit."""
    return (Rounding.DOWN, Rounding.UP) if member.assertion.relation == "about" else ()
