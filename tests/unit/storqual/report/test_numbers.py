# SPDX-License-Identifier: Apache-2.0
"""Tests that every number of a report comes from verdict.json, run.json or the samples, rounded and nothing else.

Two directions: each figure of the view leads back to its place in a file and says the number that stands there; and
each number in the text of the page is a figure, or part of a text that a file holds, or of the page's own wording.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from storqual.base.figures import DASH, ShownNumber
from storqual.base.text import MINUS
from storqual.report.build import Page as View
from storqual.report.build import pages_of, render
from storqual.report.criterion import JudgedCriterion
from storqual.report.material import read_material
from storqual.report.svg import element
from tests.support.judged_reports import value_of
from tests.support.report_pages import Page

pytestmark = pytest.mark.slow

NAMES = ["pass", "fail", "waived", "inconclusive", "error", "local"]
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?")
# what the page's own sentences say: "95 % interval", quantiles, units with a digit, a part of a split
OWN_WORDS = {"95", "50", "90", "99", "99.9", "256"}


@pytest.fixture(params=NAMES)
def report(request: pytest.FixtureRequest, runs: dict[str, Path]) -> tuple[Path, View]:
    pages = dict(pages_of(read_material(runs[request.param])))
    return runs[request.param], pages["report.html"]


def figures(value: object) -> Iterator[ShownNumber]:
    if isinstance(value, ShownNumber):
        yield value
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from figures(inner)
    elif isinstance(value, JudgedCriterion):
        yield from (value.candidate, value.reference, value.shift, *value.ends)
        yield from (value.percent("margin", signed=False), value.percent("detectable", signed=False))
        yield from (*value.counts("samples"), *value.counts("sessions"))
        yield from (value.change, *value.bounds, value.detectable, *figures(value.confirmation))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from figures(getattr(value, field.name))


def pointed(document: Any, pointer: str) -> Any:
    for part in pointer.strip("/").split("/"):
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def says(text: str, value: float) -> bool:
    """Whether the first number of `text` is `value` rounded to the digits shown."""
    match = NUMBER.search(text)
    if match is None:
        return False
    shown = match.group(0).replace(",", "")
    digits = len(shown.partition(".")[2].partition("e")[0])
    power = int(shown.partition("e")[2] or 0)
    sign = -1 if MINUS in text[: match.start() + 1] else 1
    if re.search(r"%\s?(?:more|less|fewer|higher|lower)\b", text):
        # the word tells the direction; test_change.py holds it to the metric
        value = abs(value)
    # whole numbers of five digits and more are rounded to the whole, others to the last digit shown
    return abs(sign * float(shown) - value) <= 0.5000001 * 10.0 ** (power - digits) or (
        power == 0 and abs(abs(float(shown)) - abs(value)) <= 0.5000001 * 10.0**-digits and float(shown) == 0
    )


def test_figures_of_files_say_what_stands_there(report: tuple[Path, View]) -> None:
    run, view = report
    documents = {name: json.loads((run / f"{name}.json").read_text()) for name in ("verdict", "run")}
    seen = 0
    for figure in figures(view):
        file, _, pointer = figure.source.partition(":")
        if file in documents:
            stands = pointed(documents[file], pointer)
            fraction = pointer in ("/plan/margin", "/plan/indifference", "/plan/alpha")
            assert figure.value == pytest.approx(100 * stands if fraction else stands), figure
            if "min" not in figure.text and " h " not in figure.text:
                assert says(figure.text, (figure.value or 0) / figure.divisor), figure
            seen += 1
    assert seen > 100


def test_every_figure_names_its_source(report: tuple[Path, View]) -> None:
    for figure in figures(report[1]):
        assert figure.text == DASH or figure.source.partition(":")[0] in ("verdict", "run", "samples", "count"), (
            figure
        )


def test_figures_of_samples_are_recomputed(report: tuple[Path, View]) -> None:
    run, view = report
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    by_id = {sample["id"]: sample for sample in samples}
    scale = {"iops": 1.0, "cpu_us_per_io": 1.0}
    seen = 0
    for figure in figures(view):
        kind, *rest = figure.source.removeprefix("samples:").split(":")
        if not figure.source.startswith("samples:") or len(rest) < 2 or rest[0] not in scale:
            continue
        metric = rest[0]
        if kind == "launch":
            expected = value_of(metric, by_id[rest[1]])
        elif kind == "mean":
            bench, adapter, point = rest[1].split("/", 2)
            expected = mean(
                value_of(metric, sample)
                for sample in samples
                if (sample["bench"], sample["adapter"], sample["point"], sample["arm"])
                == (bench, adapter, point, rest[2])
                and sample["status"] == "ok"
            )
        else:
            continue
        assert figure.value == pytest.approx(expected, rel=1e-6), figure
        assert says(figure.text, expected / figure.divisor), figure
        seen += 1
    assert seen > 10


def test_counts_are_counted_again(report: tuple[Path, View]) -> None:
    run, view = report
    verdict = json.loads((run / "verdict.json").read_text())
    required = [row for row in verdict["criteria"] if row["required"]]
    waived = [row for row in required if row["waiver"]]
    skipped = verdict["coverage"]["skipped"]
    counts: dict[str, int] = {
        "criteria:required": len(required),
        "criteria:WAIVED": len(waived),
        "criteria:held": len(required) - len(waived),
        "criteria:compared": sum(row["against"] == "baseline" for row in required),
        "criteria:others": sum(row["against"] != "baseline" for row in required),
        "skipped": sum(bool(hole["reason"]) for hole in skipped),
        "holes": sum(not hole["reason"] for hole in skipped),
        "informative": len(verdict["criteria"]) - len(required),
    }
    for word in ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE", "ERROR", "SKIPPED"):
        counts[f"criteria:{word}"] = sum(row["outcome"] == word for row in required if not row["waiver"])
    for figure in figures(view):
        if figure.source.startswith("count:"):
            what = figure.source.removeprefix("count:")
            assert figure.value == counts.get(what, figure.value), figure
            assert says(figure.text, figure.value or 0), figure


def strings(value: object) -> Iterator[str]:
    """All texts of a document, and its numbers as they stand there; keys too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from strings(inner)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
    elif value is not None:
        yield str(value)


def allowed(run: Path, view: View) -> set[str]:
    """Numbers that a page of this run may show."""
    texts = [figure.text for figure in figures(view)]
    for name in ("verdict.json", "run.json"):
        texts += strings(json.loads((run / name).read_text()))
    for name in ("samples.jsonl", "events.jsonl"):
        for line in (run / name).read_text().splitlines():
            record = json.loads(line)
            texts += strings({key: value for key, value in record.items() if key not in ("primitives", "series")})
    texts += [run.name, *(text for text in [str(view.appendix.digests.rows[0][1])] if view.appendix)]  # type: ignore[union-attr]
    texts += [hashlib.sha256(file.read_bytes()).hexdigest() for file in (run / "blocks").glob("*.json")]
    # test_repeat.py holds jobs to the command that the bench ran
    texts += [text for point in view.points if point.repeat for text in (point.repeat.job, point.repeat.command)]
    # a time of day is shown without its fraction
    texts += [text[11:19] for text in texts if re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.", text)]
    return OWN_WORDS | {number for text in texts for number in NUMBER.findall(text)}


def shown(source: str) -> list[tuple[str, str]]:
    """The numbers in the text of a page, each with the words around it; charts and their axes left out."""
    page = Page(source)
    for picture in page.root.all("svg"):
        assert picture.parent is not None
        picture.parent.children.remove(picture)
    numbers: list[tuple[str, str]] = []
    for node in page.root.all("body")[0].walk():
        for text in node.texts:
            numbers += [(number, text.strip()[:80]) for number in NUMBER.findall(text)]
    return numbers


def test_a_number_on_the_page_comes_from_the_files(report: tuple[Path, View]) -> None:
    run, view = report
    numbers = shown(render(view))
    assert len(numbers) > 200
    allowed_numbers = allowed(run, view)
    assert [(number, where) for number, where in numbers if number not in allowed_numbers] == []


def test_a_number_from_nowhere_is_found(runs: dict[str, Path]) -> None:
    view = dict(pages_of(read_material(runs["pass"])))["report.html"]
    planted = render(view).replace('<h2 id="criteria">Criteria', '<h2 id="criteria">Criteria 37.31')
    numbers = allowed(runs["pass"], view)
    assert [number for number, _ in shown(planted) if number not in numbers] == ["37.31"]
    assert says("\u22121.24 %", -1.2365)
    assert not says("\u22121.25 %", -1.2365)
    assert not says("1.24 %", -1.2365)


def test_templates_do_no_arithmetic_and_mark_nothing_safe() -> None:
    folder = Path(__file__).parents[4] / "templates"
    sources = [path.read_text() for path in [folder / "report.html.j2", *(folder / "report").glob("*.j2")]]
    assert len(sources) > 8
    for source in sources:
        for expression in re.findall(r"\{[{%](.*?)[%}]\}", source, re.DOTALL):
            code = re.sub(r'"[^"]*"', '""', expression)
            assert "safe" not in code
            assert not re.search(r"[*/]|\s[+]\s|\s-\s|\|\s*(?:round|int|float|sum|min|max|format|abs)\b", code), (
                expression
            )
    assert not hasattr(element("g", {}), "unescaped")
