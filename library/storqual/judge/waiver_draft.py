# SPDX-License-Identifier: Apache-2.0
"""A waiver file for what failed, as narrow as it can be: who answers, why and until when are left for a person."""

import glob
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.base.text import terminal_text
from storqual.judge.verdict import kept_waivers, verdict_of
from storqual.run import Run, read_run
from storqual.run.files import read_object
from storqual_core.kit.errors import BadInputError, StorqualError

_OPEN = {
    "owner": "who is responsible for it",
    "reason": "why it is accepted",
    "reference": "ticket or document",
    "expiry": "the last day on which it counts, such as 2035-03-31",
}
"""What only a person knows. The keys are written without a value, which every reader of waivers refuses."""


@dataclass(frozen=True)
class Draft:
    """The text of the file, and how many failures it names."""

    text: str
    failures: int


def draft_waivers(path: Path) -> Draft:
    """One waiver for each required failure of the run's verdict that nobody has accepted yet.

    Raises BadInputError for a run that was not judged, and for one in which there is nothing to accept.
    """
    run = read_run(path)
    verdict = _verdict(path)
    _refuse_outdated(path, verdict)
    open_failures = [entry for entry in verdict["criteria"] if entry["outcome"] == "FAIL" and entry["required"]]
    failures = [entry for entry in open_failures if not entry.get("waiver")]
    if not failures:
        raise BadInputError([f"{path}: {_nothing(verdict, waived=len(open_failures))}"])
    head = [
        f"# What failed in {run.name}. Fill in owner, reason, reference and expiry; delete what is not accepted.",
        (
            "# A key that is left out matches everything; keep the scope as narrow as possible. Until "
            "all are filled in, the file is refused."
        ),
        "waivers:",
    ]
    lines = [line for failure in failures for line in _waiver(run, failure)]
    return Draft("\n".join([*head, *lines, ""]), len(failures))


def write_draft(draft: Draft, output: Path) -> None:
    """Write a new file. Raises BadInputError where there is one: somebody's reasons may stand in it."""
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(draft.text)
    except FileExistsError:
        remedy = "name another one with --output and move what you accept"
        raise BadInputError([f"{output}: this file exists and is not overwritten; {remedy}"]) from None
    except OSError as problem:
        raise BadInputError([f"{output}: cannot be written: {problem.strerror or problem}"]) from None


def _verdict(path: Path) -> Mapping[str, Any]:
    try:
        verdict = read_object(path, "verdict.json")
        if isinstance(verdict["criteria"], list):
            return dict(verdict)
    except FileNotFoundError:
        raise BadInputError([f"{path}: this run has no verdict yet; judge it first: storqual judge {path}"]) from None
    except (OSError, StorqualError, KeyError, TypeError) as problem:
        raise BadInputError([f"{path / 'verdict.json'}: found no verdict ({problem!r})"]) from None
    raise BadInputError([f"{path / 'verdict.json'}: found no list of criteria"])


def _refuse_outdated(path: Path, stored: Mapping[str, Any]) -> None:
    """Raise BadInputError for a verdict that the run's files do not give any more: nobody could sign it."""
    present = json.loads(json.dumps(verdict_of(path, waivers=kept_waivers(path))))
    if [_decided(entry) for entry in stored["criteria"]] != [_decided(entry) for entry in present["criteria"]]:
        summary = "this verdict is outdated: judged today the run has another one"
        # the reason may be a file that is not what it was
        before = {str(entry.get("reason")) for entry in stored["criteria"]} | set(
            map(str, stored.get("warnings") or ())
        )
        news = [
            str(entry)
            for entry in (
                *(entry["reason"] for entry in present["criteria"] if entry["outcome"] == "ERROR"),
                *present["warnings"],
            )
            if str(entry) not in before
        ]
        why = f" ({'; '.join(news[:3])})" if news else ""
        raise BadInputError([f"{path / 'verdict.json'}: {summary}{why}; write it again: storqual publish {path}"])


def _decided(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("id", "bench", "adapter", "point", "outcome", "required", "loss_percent")
    return tuple(entry.get(name) for name in names)


def _nothing(verdict: Mapping[str, Any], *, waived: int) -> str:
    if waived:
        return f"every required failure ({waived}) is waived already"
    outcome = str(verdict.get("outcome"))
    if outcome in ("ERROR", "INCONCLUSIVE"):
        return f"nothing to waive: the outcome is {outcome}, and only a failure that was judged can be waived"
    return f"nothing to waive: the outcome is {outcome}, and no required criterion failed"


def _waiver(run: Run, entry: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one waiver, whose names mean no range of drops, no set and no number of letters."""
    scope: list[tuple[str, str | None]] = [
        ("criterion", str(entry["id"])),
        ("bench", entry.get("bench")),
        ("adapter", entry.get("adapter")),
        ("point", entry.get("point")),
        ("drop", run.arms["candidate"].drop),
        ("suite", run.suite.name),
    ]
    # a reason may quote a device: it stays one line
    yield terminal_text(f"  # {entry['id']}: {entry.get('reason') or 'no reason was recorded'}")
    exact = {key: glob.escape(value).replace("..", "[.].") for key, value in scope if value}
    exact |= {key: value.replace("*", "?") for key, value in scope if value and key in ("criterion", "point")}
    written = [f"{key}: {json.dumps(value)}" for key, value in exact.items()]
    loss = _largest_loss(entry.get("loss_percent"))
    if loss is not None:
        written.append(f"max_loss: {loss}  # what was measured, rounded up; a larger loss still fails")
    written += [f"{key}:  # {meaning}" for key, meaning in _OPEN.items()]
    for number, line in enumerate(written):
        yield f"{'    ' if number else '  - '}{line}"


def _largest_loss(loss: object) -> str | None:
    """The measured loss in tenths of a percent, rounded up; None where no loss was measured."""
    if not isinstance(loss, (int, float)) or not math.isfinite(loss) or loss <= 0:
        return None
    return f"{math.ceil(loss * 10 - 1e-9) / 10:.1f}".removesuffix(".0") + "%"
