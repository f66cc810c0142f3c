# SPDX-License-Identifier: Apache-2.0
"""Do junit.xml and ocp.jsonl of a run say what its verdict says? By content, each criterion and the whole.

Digests say that a file is the one that was published; whoever can write to a run can write those, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from storqual.base.text import visible_text
from storqual.report.criterion import is_accepted, named_cases, read_criteria, worst_of
from storqual.report.export import end_of, told_of
from storqual.run import Run
from storqual.run.files import DAMAGE, limit_of, parse_line, read_object, read_text
from storqual_core.kit.errors import StorqualError

JUNIT = "junit.xml"
OCP = "ocp.jsonl"
_ENDS = {"FAIL": "failure", "ERROR": "error", "INCONCLUSIVE": "error", "SKIPPED": "skipped"}
"""The element of a case that ended so; a case that passed has none."""


def export_findings(run: Run) -> Iterator[str]:
    """What junit.xml and ocp.jsonl say otherwise than verdict.json, a sentence a file.

    A file that is not there says nothing. Raises nothing for what is in them, or in the verdict.
    """
    for name, compare in ((JUNIT, _junit_difference), (OCP, _ocp_difference)):
        if not (run.path / name).is_file():
            continue
        try:
            verdict = read_object(run.path, "verdict.json")
            found = compare(run, verdict, read_text(run.path, name))
        except StorqualError as problem:
            found = f"cannot be compared with the verdict ({problem})"
        except (*DAMAGE, SyntaxError) as problem:
            found = f"cannot be compared with the verdict ({problem!r})"
        if found:
            yield f"{name}: {found}"


def _junit_difference(_run: Run, verdict: Mapping[str, Any], data: str) -> str:
    """The first case that is not as its criteria ended."""
    if "<!DOCTYPE" in data:
        # entities are text that grows when it is read; pytest writes none
        return "has a document type, which no log of a run has"
    if data.count("<") > limit_of(JUNIT).values:
        return "has more elements than any log of a run"
    expected = [(_plain(name), *_end(members)) for name, members in named_cases(verdict["criteria"])]
    document = ElementTree.fromstring(data)  # noqa: S314 - without a document type it has no entities
    found = [_case(one) for one in document.iter("testcase")]
    if len(found) != len(expected):
        return f"has {len(found)} test cases, the verdict gives {len(expected)}"
    for said, wanted in zip(found, expected, strict=True):
        if said != wanted:
            return f"found {_shown(said)}, the verdict says {_shown(wanted)}"
    return _counts_difference(document, Counter(end for _, _, end in expected), len(expected))


def _plain(name: str) -> str:
    """The name of a case as pytest's log has it: what stands before `::` goes into its class."""
    address, bracket, level = name.partition("[")
    return f"{address.rpartition('::')[2]}{bracket}{level}"


def _end(members: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Outcome of a case, and the element that says how it ended."""
    outcome = str(worst_of(members)["outcome"])
    return outcome, "skipped" if is_accepted(members) else _ENDS.get(outcome, "")


def _case(element: ElementTree.Element) -> tuple[str, str, str]:
    said = [one.get("value") or "" for one in element.iter("property") if one.get("name") == "outcome"]
    ends = [one.tag for one in element if one.tag in _ENDS.values()]
    return element.get("name") or "", ",".join(said), ",".join(ends)


def _shown(case: tuple[str, str, str]) -> str:
    name, outcome, end = case
    return f"{name[:100]!r} with outcome {outcome[:40]!r} as {end[:40] or 'passed'}"


def _counts_difference(document: ElementTree.Element, ends: Counter[str], cases: int) -> str:
    """A dashboard reads the sums alone."""
    for suite in document.iter("testsuite"):
        wanted = {"tests": cases, "errors": ends["error"], "failures": ends["failure"], "skipped": ends["skipped"]}
        for name, number in wanted.items():
            if suite.get(name) != str(number):
                return f"counts {name} as {(suite.get(name) or 'nothing')[:40]}, the verdict gives {number}"
    return ""


def _ocp_difference(run: Run, verdict: Mapping[str, Any], data: str) -> str:
    """The first diagnosis, or the end, that is not the verdict's."""
    steps: dict[str, str] = {}
    found: Counter[tuple[str, str, str]] = Counter()
    ends = []
    for line in (parse_line(one, OCP) for one in data.encode().splitlines()):
        step, whole = line.get("testStepArtifact") or {}, line.get("testRunArtifact") or {}
        if "testStepStart" in step:
            steps[step["testStepId"]] = step["testStepStart"]["name"]
        if "diagnosis" in step:
            diagnosis = step["diagnosis"]
            found[steps[step["testStepId"]], diagnosis["verdict"], diagnosis["type"]] += 1
        if "testRunEnd" in whole:
            ends.append(whole["testRunEnd"])
    if ends != [end_of(verdict)]:
        return f"ends with {json.dumps(ends)[:100]}, the verdict is {verdict.get('outcome')}"
    expected = Counter(
        (visible_text("/".join(row.key)) if row.key in run.points else "checks", *told_of(row))
        for row in read_criteria(verdict)
    )
    for one in (found - expected) + (expected - found):
        return f"says {' '.join(one)[:200]!r} {found[one]} times, the verdict {expected[one]} times"
    return ""
