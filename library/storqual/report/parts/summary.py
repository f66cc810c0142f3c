# SPDX-License-Identifier: Apache-2.0
"""The end of a run on a terminal: a table of criteria, then the outcome, why, the exit code and where the report is.

On a terminal a coloured table; in a pipe plain lines, one per criterion, that `grep` and `awk` can read. Every text
of a device or a drop is made safe first, and none is read as markup.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table

from storqual.base.text import OUTCOME_COLOURS, terminal_text, with_minus
from storqual.report.change import amount, ends_in_words, says_nothing
from storqual.report.criterion import Criterion, outcome, read_criteria
from storqual.report.figures import NONE, TIED, percent
from storqual.report.parts.first_screen import BENCH_KINDS, EXIT_CODES
from storqual.report.parts.sentence import sentence_for

_MOST_ROWS = 40
_REASON = 44
_INTERVAL = 14
_BAD_NEWS = ("FAIL", "ERROR")
_REST = ("FAIL", "ERROR", "INCONCLUSIVE", "MARGINAL", "SKIPPED", "PASS")


def print_summary(
    verdict: Mapping[str, Any],
    run: Mapping[str, Any] | None = None,
    report: Path | None = None,
    *,
    file: TextIO | None = None,
) -> None:
    """Print the summary of a verdict to `file` (standard output without it)."""
    out = file or sys.stdout
    rows = read_criteria(verdict)
    shown, left = _chosen(rows)
    drops = {name: str(arm.get("drop")) for name, arm in ((run or {}).get("arms") or {}).items()}
    ending = _ending(verdict, rows, run, drops, report)
    several = _several(rows)
    if out.isatty():
        _print_rich(verdict, shown, left, ending, out, several=several)
        return
    for line in [*_plain_rows(shown, several=several), *left, *ending]:
        out.write(line + "\n")


def _chosen(rows: Sequence[Criterion]) -> tuple[list[Criterion], list[str]]:
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
    left = [row for row in rows if row not in shown]
    if not left:
        return shown, []
    counted = Counter(f"{row.outcome}{'' if row.required else ' (informative)'}" for row in left)
    told = ", ".join(f"{number} {word}" for word, number in counted.items())
    return shown, [f"not listed, see the report: {told}"]


def _rank(word: str) -> int:
    return _REST.index(word) if word in _REST else 0


def _cells(row: Criterion, *, several: bool) -> tuple[str, ...]:
    """Outcome, criterion, where, change, interval, margin, and the reason of what did not pass: safe texts.

    `several`: the run has more than one bench, so each line names its own.
    """
    low, high = ends_in_words(row)
    shift = amount(row, row.shift)
    margin = percent(row.number("margin_percent"), "", signed=False)
    word = row.outcome if row.required else f"{row.outcome} (informative)"
    if row.waived:
        word += f" (waived until {(row.fields.get('waiver') or {}).get('expiry')})"
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
    return tuple(with_minus(terminal_text(part.replace(TIED, " "))) for part in parts)


def _where(row: Criterion, *, several: bool) -> str:
    """A point with its adapter, of a check behind its name; behind the bench of a run that has several."""
    point = "/".join(filter(None, [row.text("adapter"), row.text("point")]))
    named = " at ".join(filter(None, [row.text("id"), point])) if row.against == "check" else point
    bench = row.text("bench") if several else ""
    return f"{bench}: {named}" if bench else named


def _several(rows: Sequence[Criterion]) -> bool:
    return len({row.text("bench") for row in rows} - {""}) > 1


def _plain_rows(rows: Sequence[Criterion], *, several: bool) -> list[str]:
    """Aligned columns with two spaces between."""
    cells = [_cells(row, several=several) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(6)] if cells else []
    return [
        "  ".join([*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[6]]).rstrip()
        for line in cells
    ]


def _ending(
    verdict: Mapping[str, Any],
    rows: Sequence[Criterion],
    run: Mapping[str, Any] | None,
    drops: Mapping[str, str],
    report: Path | None,
) -> list[str]:
    """The last lines: warnings, the outcome in a word and a sentence, the exit code, the report."""
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


def _print_rich(
    verdict: Mapping[str, Any],
    rows: Sequence[Criterion],
    left: Sequence[str],
    ending: Sequence[str],
    out: TextIO,
    *,
    several: bool,
) -> None:
    from rich.console import Console  # noqa: PLC0415 - a pipe does not pay for colours
    from rich.text import Text  # noqa: PLC0415

    console = Console(file=out, highlight=False)
    if rows:
        console.print(_table(rows, several=several))
    word = str(verdict.get("outcome"))
    for line in [*left, *ending]:
        told = Text(line)
        if line.startswith(f"{word}:"):
            told.stylize(OUTCOME_COLOURS.get(word, "bold"), 0, len(word))
        console.print(told, soft_wrap=True)


def _table(rows: Sequence[Criterion], *, several: bool) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("Outcome", "Criterion", "Point"):
        table.add_column(name, overflow="fold", no_wrap=name != "Point")
    table.add_column("Change", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", min_width=_INTERVAL, max_width=_INTERVAL)
    table.add_column("Limit", justify="right", no_wrap=True)
    table.add_column("Reason", overflow="fold", max_width=_REASON)
    for row in rows:
        word, *others = _cells(row, several=several)
        others[4] = others[4].removeprefix("limit ")
        style = OUTCOME_COLOURS.get(row.outcome, "bold") if row.required else "dim"
        # Text, not str: a drive called "[bold]" must stay that
        table.add_row(Text(f"{outcome(row.outcome).symbol} {word}", style=style), *(Text(text) for text in others))
    return table
