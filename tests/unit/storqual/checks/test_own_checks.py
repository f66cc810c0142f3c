# SPDX-License-Identifier: Apache-2.0
"""A user's own checks: found, planned with, run from where they are written, and bound to suites and workloads."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.base.files import project_root, suites_folder
from storqual.campaign import publication
from storqual.checks.own import allow_checks, broken_checks, correct_checks, find_checks
from storqual.cli import storqual
from storqual.judge.verdict import judge_run
from storqual.plan.make import plan_run
from storqual.pytest_plugin import run_checks
from storqual.robot_library import publish_suites
from storqual.run import read_run, sha256_of
from storqual.run.closing import close_run
from storqual.run.evidence import evidence_findings, missing_checks
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import make_lab
from tests.support.make_run import make_run
from tests.support.robot_benches import fingerprint
from tests.support.sealed_run import chained, lines_of, sealed

pytestmark = pytest.mark.slow

PYTHON = Path(__file__).with_name("test_own_checks.pytest.txt").read_text(encoding="utf-8")
ROBOT = Path(__file__).with_name("test_own_checks.robot.txt").read_text(encoding="utf-8")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "suites" / "robot").mkdir(parents=True)
    (folder / "suites" / "test_mine.py").write_text(PYTHON, encoding="utf-8")
    (folder / "suites" / "robot" / "mine.robot").write_text(ROBOT, encoding="utf-8")
    return folder


def with_checks(run: Path, files: tuple[Path, ...]) -> Path:
    """The run as if it had been planned with these checks."""
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for file in files:
        data = file.read_bytes()
        (run / "inputs" / file.name).write_bytes(data)
        entry = {"file": f"inputs/{file.name}", "source": str(file), "sha256": sha256_of(data)}
        document["inputs"][f"check:{file.name}"] = entry
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    allow_checks(read_run(run), files)
    return run


def test_checks_of_the_current_folder_and_those_that_are_named_are_found(own: Path, tmp_path: Path) -> None:
    more = tmp_path / "more" / "test_more.py"
    more.parent.mkdir()
    more.write_text("", encoding="utf-8")
    assert [path.name for path in find_checks(folder=own)] == ["test_mine.py", "mine.robot"]
    assert [path.name for path in find_checks([more], own)] == ["test_mine.py", "mine.robot", "test_more.py"]
    assert [path.name for path in find_checks([more.parent], tmp_path)] == ["test_more.py"]


def test_the_projects_own_checks_are_none_of_the_users() -> None:
    assert find_checks(folder=suites_folder().parent) == ()


def test_what_is_no_check_or_has_the_name_of_another_is_refused(own: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    twin = tmp_path / "test_kernel_log.py"
    twin.write_text("", encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        find_checks([tmp_path / "nosuch", tmp_path / "notes.txt", twin], own)
    first, second, third = refused.value.problems
    assert "nosuch: no such file" in first
    assert "notes.txt: a check is a file test_*.py (pytest) or *.robot" in second
    assert "has the same file name, by which a check is known" in third


def test_a_plan_keeps_a_copy_of_each_check(own: Path, tmp_path: Path) -> None:
    planned = plan_run(make_lab(tmp_path, checks=find_checks(folder=own)), tmp_path / "runs")
    assert planned.path is not None
    run = read_run(planned.path)
    assert run.input_file("check:test_mine.py").read_text(encoding="utf-8") == PYTHON
    assert run.input_file("check:mine.robot").read_text(encoding="utf-8") == ROBOT
    assert run.verify_inputs() == []


def test_own_checks_run_with_a_campaign_and_those_of_other_suites_do_not(own: Path, tmp_path: Path) -> None:
    run = with_checks(
        make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002), find_checks(folder=own)
    )
    run_checks(run)
    publish_suites(run)
    checks = [check for check in read_run(run).checks if "mine." in check.id]
    assert {check.id for check in checks} == {
        "test_mine.py::test_mine",
        "test_mine.py::test_of_a_workload_that_was_not_planned",
        "mine.robot::Nothing Is Untested",
    }
    assert {check.outcome for check in checks if check.id.endswith(("test_mine", "Untested"))} == {"PASS"}
    (skipped,) = [check for check in checks if check.outcome == "SKIPPED"]
    assert skipped.reason == "no point of this run fits points(workload='no_such_*')"


@pytest.mark.parametrize("kept", ["none", "all but one", "all but one, and no plan"])
def test_planned_robot_checks_without_an_outcome_are_an_error(own: Path, tmp_path: Path, kept: str) -> None:
    files = [file for file in find_checks(folder=own) if file.suffix == ".robot"]
    run = with_checks(make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002), files)
    if kept != "none":
        publish_suites(run)
        lines = (run / "checks.jsonl").read_bytes().splitlines(keepends=True)
        (run / "checks.jsonl").write_bytes(b"".join(line for line in lines if b'"id":"mine.' not in line))
    if kept.endswith("no plan"):
        events = lines_of(run / "events.jsonl")
        chained(run / "events.jsonl", [event for event in events if event["kind"] != "checks_planned"])
    opened = read_run(run)
    missing = [check.id for check in missing_checks(opened)]
    sentences = [
        sentence
        for sentence in evidence_findings(opened)
        if sentence.startswith("checks.jsonl: has no outcome of mine.robot")
    ]
    assert (missing, len(sentences)) == (
        (["mine.robot::Nothing Is Untested"], 0) if kept == "all but one" else ([], 1)
    )


def test_a_check_that_was_changed_or_is_gone_is_an_error_and_a_copy_in_the_run_never_runs(
    own: Path, tmp_path: Path
) -> None:
    files = find_checks(folder=own)
    run = with_checks(make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002), files)
    files[0].write_text("def test_mine(): pass\n", encoding="utf-8")
    files[1].unlink()
    run_checks(run)
    publish_suites(run)
    checks = {check.id: check for check in read_run(run).checks if "mine." in check.id}
    assert set(checks) == {"test_mine.py", "mine.robot"}
    assert {check.outcome for check in checks.values()} == {"ERROR"}
    assert "was changed after the plan" in checks["test_mine.py"].reason
    assert "cannot be read" in checks["mine.robot"].reason


BROKEN = {
    "test_syntax.py": ("import pytest\n\n\ndef test_x(candidate: assert\n", 4, "SyntaxError"),
    "test_import.py": ("import os\n\nimport nosuch\n", 3, "No module named 'nosuch'"),
    "test_fixture.py": ("\n\ndef test_a(candidates):\n    assert 1\n", 3, "did you mean 'candidate'"),
    "test_marker.py": ("import pytest\n\n\n@pytest.mark.sutes('x')\ndef test_a():\n    pass\n", 4, "'sutes'"),
    "test_parameter.py": (
        "import pytest\n\n@pytest.mark.parametrize('nix', [1])\ndef test_a():\n    pass\n",
        4,
        "no argument 'nix'",
    ),
    "test_none.py": ("x = 1\n", 1, "has no test"),
    "keyword.robot": (ROBOT.replace("Every Planned Point Should", "Every Planned Pont Should"), 11, "Did you mean"),
    "library.robot": (ROBOT.replace("storqual.robot_library", "storqual.robot_libary"), 2, "Importing library"),
    "none.robot": ("*** Settings ***\nDocumentation    Nothing.\n", 1, "has no test"),
}


def written(folder: Path, files: dict[str, str]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def test_every_mistake_of_every_check_is_told_at_once_with_file_and_line(tmp_path: Path, own: Path) -> None:
    files = written(tmp_path / "broken", {name: text for name, (text, _, _) in BROKEN.items()})
    sentences = broken_checks([*files, *find_checks(folder=own)])
    for name, (_, line, why) in BROKEN.items():
        assert any(
            sentence.startswith(f"{tmp_path}/broken/{name}:{line}: ") and why in sentence for sentence in sentences
        ), (name, sentences)
    assert not [sentence for sentence in sentences if "mine." in sentence], "what is right is not told"


def test_a_check_that_does_not_end_or_ends_its_reader_is_named_and_hides_no_other(tmp_path: Path) -> None:
    texts = {
        "test_loop.py": "while True:\n    pass\n",
        "test_exit.py": "import os\nos._exit(0)\n",
        "test_syntax.py": BROKEN["test_syntax.py"][0],
        "test_good.py": "def test_it(run):\n    assert run\n",
    }
    sentences = broken_checks(written(tmp_path, texts), limit_s=20.0)
    assert [Path(sentence.partition(":")[0]).name for sentence in sentences] == [
        "test_loop.py",
        "test_exit.py",
        "test_syntax.py",
    ]
    assert all("loops, waits, or ends the program" in sentence for sentence in sentences[:2])


def test_a_plan_is_refused_with_the_mistakes_of_checks_and_of_other_files_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "checks", {"test_syntax.py": BROKEN["test_syntax.py"][0], "test_none.py": "x = 1\n"})
    lab = project_root() / "inventories/local"
    words = ["-i", str(lab), "--baseline", "baseline", "--candidate", "nosuch", "--suite", "adapter"]
    for command in (["plan", "--dry-run"], ["qualify"]):
        ended = CliRunner().invoke(storqual, [*command, *words, "--checks", "checks"], standalone_mode=False)
        assert isinstance(ended.exception, BadInputError)
        sentences = "\n".join(ended.exception.problems)
        assert "checks/test_syntax.py:4: SyntaxError" in sentences
        assert "checks/test_none.py:1: has no test" in sentences
        assert "nosuch" in sentences
    assert not (tmp_path / "runs").exists()


def test_a_file_that_is_called_otherwise_is_no_check(tmp_path: Path) -> None:
    (path,) = written(tmp_path, {"steady.py": "def test_it():\n    pass\n"})
    with pytest.raises(BadInputError, match=r"a check is a file test_\*\.py"):
        find_checks([path], None)


def test_a_broken_file_takes_no_other_check_with_it(tmp_path: Path) -> None:
    texts = {
        "test_bad.py": BROKEN["test_syntax.py"][0],
        "test_exit.py": "import os\nos._exit(0)\n",
        "test_none.py": "x = 1\n",
        "test_other.py": "import pytest\n\n@pytest.mark.suites('another')\ndef test_it():\n    pass\n",
        "test_whole.py": "import pytest\n\npytest.importorskip('nosuch')\n\ndef test_it():\n    pass\n",
        "test_good.py": "def test_it(run):\n    assert run\n",
    }
    run = with_checks(make_run(tmp_path, finished=False), tuple(written(tmp_path / "own", texts)))
    run_checks(run)
    checks = {check.id: check for check in read_run(run).checks}
    assert {name: check.outcome for name, check in checks.items()} == {
        "test_kernel_log.py::test_the_kernel_log_is_clean": "PASS",
        "test_bad.py": "ERROR",
        "test_exit.py": "ERROR",
        "test_none.py": "ERROR",
        "test_whole.py": "SKIPPED",
        "test_good.py::test_it": "PASS",
    }
    assert checks["test_bad.py"].fields["reason"].startswith("test_bad.py:4: SyntaxError")
    assert "storqual publish RUN --checks FILE" in checks["test_bad.py"].fields["reason"]


POINTS = "def test_it(candidates):\n    assert candidates\n"
RIGHT = "def test_it(candidate):\n    assert candidate\n"


def closed_with(tmp_path: Path, text: str) -> tuple[Path, Path]:
    (path,) = written(tmp_path / "own", {"test_mine.py": text})
    run = with_checks(make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002), (path,))
    allow_checks(read_run(sealed(run, close=False)), [path])
    run_checks(run)
    close_run(run)
    return run, path


def outcome_of(run: Path) -> tuple[str, list[str], dict[str, str]]:
    verdict = judge_run(run)
    checks = [row for row in verdict["criteria"] if row["against"] == "check" and row["id"].startswith("test_mine")]
    return verdict["outcome"], verdict["warnings"], {row["id"]: row["outcome"] for row in checks}


@pytest.mark.parametrize("text", [BROKEN["test_syntax.py"][0], POINTS], ids=["syntax", "fixture"])
def test_a_corrected_check_runs_over_the_same_measurements_and_the_verdict_says_so(tmp_path: Path, text: str) -> None:
    run, path = closed_with(tmp_path, text)
    before, _, failed = outcome_of(run)
    assert (before, set(failed.values())) == ("ERROR", {"ERROR"})
    path.write_text(RIGHT, encoding="utf-8")
    correct_checks(read_run(run), [path])
    publication.close(run, measured=None)  # type: ignore[arg-type] # only a first closing needs them
    opened = read_run(run)
    after, warnings, checks = outcome_of(run)
    assert (after, checks) == ("PASS", {"test_mine.py::test_it": "PASS"})
    (event,) = [event for event in opened.events if event.kind == "checks_corrected"]
    kept = run / event.fields["checks"]["test_mine.py"]["file"]
    assert kept.read_text(encoding="utf-8") == RIGHT
    assert opened.input_file("check:test_mine.py").read_text(encoding="utf-8") == text
    assert [sentence for sentence in warnings if "test_mine.py was corrected" in sentence and kept.name in sentence]
    assert evidence_findings(opened) == []
    kept.write_text("def test_it():\n    pass\n", encoding="utf-8")
    assert any("is not the corrected check that was run" in sentence for sentence in evidence_findings(read_run(run)))


def test_what_has_decided_was_not_planned_or_is_broken_again_is_no_correction(tmp_path: Path) -> None:
    run, path = closed_with(tmp_path, "def test_it(candidate):\n    assert not candidate\n")
    events = (run / "events.jsonl").read_bytes()
    path.write_text(RIGHT, encoding="utf-8")
    with pytest.raises(BadInputError, match="has decided is not exchanged"):
        correct_checks(read_run(run), [path])
    (other,) = written(tmp_path / "more", {"test_other.py": RIGHT})
    with pytest.raises(BadInputError, match="not planned with a check of this name"):
        correct_checks(read_run(run), [other])
    assert (run / "events.jsonl").read_bytes() == events
    broken, mine = closed_with(tmp_path / "broken", BROKEN["test_syntax.py"][0])
    mine.write_text(POINTS, encoding="utf-8")
    with pytest.raises(BadInputError, match="there is no fixture 'candidates'"):
        correct_checks(read_run(broken), [mine])


def test_a_correction_drops_no_failure_and_hides_no_error(tmp_path: Path) -> None:
    text = "def test_it(candidate):\n    assert not candidate\n\n\ndef test_bug(candidate):\n    candidate.nosuch\n"
    run, path = closed_with(tmp_path, text)
    right = "import pytest\n\n\ndef test_it(candidate):\n    pass\n\n\n@pytest.mark.informative\n"
    right += "def test_bug(candidate):\n    pass\n"
    path.write_text(right, encoding="utf-8")
    correct_checks(read_run(run), [path])
    publication.close(run, measured=None)  # type: ignore[arg-type] # as above
    _, _, checks = outcome_of(run)
    assert checks == {"test_mine.py::test_it": "FAIL", "test_mine.py::test_bug": "ERROR"}
