# SPDX-License-Identifier: Apache-2.0
"""Tests of annotations: GitHub's commands parsed back, GitLab's report by the fields that it needs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from storqual.report.export import github_annotations, gitlab_code_quality
from storqual.report.material import read_material
from tests.support.hostile_payloads import chunks, infect
from tests.support.judged_reports import QUICK, judged

HERE = Path("/checkout")
COMMAND = re.compile(r"::(error|warning|notice) file=([^,:]+),line=1,title=([^,:]+)::([^\r\n]*)")


def commands(run: Path) -> list[tuple[str, ...]]:
    """Every line as level, file, title and message; a line that is no command fails."""
    found = []
    for line in github_annotations(read_material(run), HERE).split("\n")[:-1]:
        match = COMMAND.fullmatch(line)
        assert match, line
        found.append(match.groups())
    return found


@pytest.mark.parametrize(
    ("name", "level", "word"),
    [
        ("pass", "notice", "PASS"),
        ("fail", "error", "FAIL"),
        ("error", "error", "ERROR"),
        ("waived", "notice", "PASS"),
    ],
)
def test_the_outcome_comes_first(name: str, level: str, word: str, runs: dict[str, Path]) -> None:
    (first, *_) = commands(runs[name])
    assert first[0] == level
    assert first[3].startswith(f"{word}: ")


def test_a_waived_failure_is_a_warning_with_its_owner(runs: dict[str, Path]) -> None:
    (_, waived) = commands(runs["waived"])
    assert waived[0] == "warning"
    assert "(waived by J. Ortega until 2027-03-31, BUG-4711)" in waived[3]


def test_at_most_ten_of_a_kind_and_the_last_tells_how_many_more(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK, noise=0.002, effect=-0.1)
    errors = [one for one in commands(run) if one[0] == "error"]
    assert len(errors) == 10
    failed = sum(
        row["required"] and row["outcome"] == "FAIL"
        for row in json.loads((run / "verdict.json").read_text())["criteria"]
    )
    assert errors[-1][3] == f"{failed - 8} more, see the report"


def test_gitlab_gets_what_its_report_needs(runs: dict[str, Path]) -> None:
    listed = json.loads(gitlab_code_quality(read_material(runs["fail"]), HERE))
    assert len(listed) > 2
    assert len({one["fingerprint"] for one in listed}) == len(listed)
    for one in listed:
        assert one["description"]
        assert one["check_name"]
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert one["location"]["lines"] == {"begin": 1}
        assert not Path(one["location"]["path"]).is_absolute()
    assert json.loads(gitlab_code_quality(read_material(runs["pass"]), HERE)) == []


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("/checkout/inventories/lab/drops/new.yml", "inventories/lab/drops/new.yml"),
        ("inventories/lab/drops/new.yml", "inventories/lab/drops/new.yml"),
        ("/elsewhere/new.yml", "inputs/candidate.drop.yml"),
        ("../new.yml", "inputs/candidate.drop.yml"),
        ("", "inputs/candidate.drop.yml"),
    ],
)
def test_they_stand_at_the_drop_of_the_checkout(source: str, file: str, tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1], noise=0.002)
    document = json.loads((run / "run.json").read_text())
    document["inputs"]["candidate"]["source"] = source
    (run / "run.json").write_text(json.dumps(document))
    assert {one[1] for one in commands(run)} == {file}


@pytest.mark.parametrize("payloads", chunks(2))
def test_hostile_strings_begin_no_command(payloads: tuple[str, ...], tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:2], noise=0.002, effect=-0.1, waived=[f"iops@sym/{QUICK[0]}"])
    infect(run, payloads)
    assert len(commands(run)) > 2
    text = github_annotations(read_material(run), HERE) + gitlab_code_quality(read_material(run), HERE)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    json.loads(gitlab_code_quality(read_material(run), HERE))
