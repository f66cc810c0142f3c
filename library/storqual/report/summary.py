# SPDX-License-Identifier: Apache-2.0
"""The end of a run on a terminal: a table of criteria, then the outcome, why, the exit code and where the report is.

On a terminal that is wide enough a coloured table, on a narrower one a paragraph for each criterion; in a pipe plain
lines, one per criterion, that `grep` and `awk` can read. Every text of a device or a drop is made safe first, and
none is read as markup.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from storqual.base.figures import NONE, TIED, percent
from storqual.base.table import Table, fits, print_lines, print_paragraphs, print_table
from storqual.base.text import terminal_text, with_minus
from storqual.report.criterion import JudgedCriterion, read_criteria, says_nothing
from storqual.report.parts.first_screen import BENCH_KINDS, EXIT_CODES, sentence_for

_MOST_ROWS = 40
_HEADS = ("Outcome", "Criterion", "Point", "Change", "95 % interval", "Limit", "Reason")
_WIDTHS = {"95 % interval": 14, "Reason": 44}
_BAD_NEWS = ("FAIL", "ERROR")
_REST = ("FAIL", "ERROR", "INCONCLUSIVE", "MARGINAL", "SKIPPED", "PASS")


def print_summary(
    verdict: Mapping[str, Any],
    run: Mapping[str, Any] | None = None,
    report: Path | None = None,
    *,
    file: TextIO | None = None,
) -> None:
    out = file or sys.stdout
    rows = read_criteria(verdict)
    shown, omitted = _chosen(rows)
    drops = {name: str(arm.get("drop")) for name, arm in ((run or {}).get("arms") or {}).items()}
    ending = _ending(verdict, rows, run, drops, report)
    several = len({row.text("bench") for row in rows} - {""}) > 1
    cells = tuple(_cells(row, several=several, symbol=out.isatty()) for row in shown)
    table = Table("", _HEADS, cells, widths=_WIDTHS)
    if fits(table, out):
        print_table(table, out)
    else:
        print_paragraphs([_paragraph(cell) for cell in cells], out)
    print_lines([*omitted, *ending], out)


def _chosen(rows: Sequence[JudgedCriterion]) -> tuple[list[JudgedCriterion], list[str]]:
    """Required criteria and informative ones with bad news; of very many only those that did not pass."""
    notable = [row for row in rows if row.required or row.outcome in _BAD_NEWS]
    points = [row for row in rows if row.against != "check"]
    if points and all(row.outcome in ("ERROR", "SKIPPED") for row in points):
        # nothing was measured: why stands in the last lines, and no point can add to it
        notable = [row for row in notable if row.against == "check"]
    if len(notable) > _MOST_ROWS:
        # checks that pass go first: each point says more than a sentence that holds
        notable = [row for row in notable if row.against != "check" or row.outcome != "PASS"]
    if len(notable) > _MOST_ROWS:
        notable = [row for row in notable if row.outcome not in ("PASS", "SKIPPED")]
        notable.sort(key=lambda row: (not row.required, _rank(row.outcome), row.index))
    shown = notable[:_MOST_ROWS]
    omitted = [row for row in rows if row not in shown]
    if not omitted:
        return shown, []
    counted = Counter(f"{row.outcome}{'' if row.required else ' (informative)'}" for row in omitted)
    counts = ", ".join(f"{number} {word}" for word, number in counted.items())
    return shown, [f"not listed, see the report: {counts}"]


def _rank(word: str) -> int:
    return _REST.index(word) if word in _REST else 0


def _cells(row: JudgedCriterion, *, several: bool, symbol: bool) -> tuple[str, ...]:
    """Outcome, criterion, where, change, interval, margin, and the reason of what did not pass: safe texts.

    `several`: the run has more than one bench, so each line names its own.
    """
    low, high = row.bounds
    shift = row.change
    margin = percent(row.number("margin_percent"), "", signed=False)
    word = row.outcome if row.required else f"{row.outcome} (informative)"
    if row.waived:
        word += f" (waived until {(row.fields.get('waiver') or {}).get('expiry')})"
    if symbol:
        word = f"{row.badge.symbol} {word}"
    check = row.against == "check"
    parts = (
        word,
        # the name by which a suite, a gate and a waiver mean it
        "check" if check else row.text("id"),
        _where(row, several=several),
        "" if shift is NONE else str(shift),
        "interval too wide" if says_nothing(row) else "" if low is NONE else f"{low} to {high}",
        "" if margin is NONE or shift is NONE else f"limit {margin}",
        # of a pass against a limit (a suite's, a spec sheet's) the reason has figure and limit, which no column has
        "" if row.outcome == "PASS" and (check or shift is not NONE) else row.text("reason"),
    )
    return tuple(with_minus(part.replace(TIED, " ")) for part in parts)


def _paragraph(cells: Sequence[str]) -> tuple[str, str, str]:
    """The same in words: the outcome, what was judged and how it ended, and the reason below them."""
    outcome, criterion, where, change, interval, limit, reason = cells
    what = where if criterion == "check" or where in criterion else f"{criterion} at {where}"
    figures = f"{change} ({interval})" if interval and change else change or interval
    return outcome, ": ".join(filter(None, [what, ", ".join(filter(None, [figures, limit]))])), reason


def _where(row: JudgedCriterion, *, several: bool) -> str:
    """A point with its adapter, of a check behind its name; behind the bench of a run that has several."""
    point = "/".join(filter(None, [row.text("adapter"), row.text("point")]))
    named = " at ".join(filter(None, [row.text("id"), point])) if row.against == "check" else point
    bench = row.text("bench") if several else ""
    return f"{bench}: {named}" if bench else named


def _ending(
    verdict: Mapping[str, Any],
    rows: Sequence[JudgedCriterion],
    run: Mapping[str, Any] | None,
    drops: Mapping[str, str],
    report: Path | None,
) -> list[str]:
    code = verdict.get("exit_code")
    meaning = EXIT_CODES.get(code, "not known") if isinstance(code, int) else "not known"
    sentence = "".join(str(part) for part in sentence_for(verdict, rows, drops))
    kinds = {str(bench.get("kind")) for bench in ((run or {}).get("benches") or {}).values()}
    lines = [f"warning: {text}" for text in verdict.get("warnings") or ()]
    lines += [
        f"{BENCH_KINDS[kind][0]}: {BENCH_KINDS[kind][1]}" for kind in sorted(kinds) if kind in ("local", "virtual")
    ]
    lines.append(f"{verdict.get('outcome')}: {sentence}")
    lines.append(f"exit code {code} ({meaning})")
    if report is not None:
        lines.append(f"report: {report}")
    return [with_minus(terminal_text(line.replace(TIED, " "))) for line in lines]
