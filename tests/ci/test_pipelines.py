# SPDX-License-Identifier: Apache-2.0
"""The ready pipelines: each is read as its system reads it, and what it runs is run, on a change that adds a drop."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[2]
CI = REPOSITORY / "ci"

STUB = Path(__file__).with_suffix(".stub").read_text(encoding="utf-8")


def git(folder: Path, *words: str) -> None:
    """Run git in `folder`, by nobody's own settings."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    names = {f"GIT_{who}_{what}": "t@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=folder, env={**os.environ, **own, **names}, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "inventories" / "lab" / "drops").mkdir(parents=True)
    shutil.copytree(CI, folder / "ci")
    (folder / "inventories" / "lab" / "drops" / "stable.yml").write_text("name: stable\n")
    stub = tmp_path / "storqual"
    stub.write_text(STUB)
    stub.chmod(0o755)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "lab")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return folder


def change(folder: Path, *drops: str) -> None:
    for drop in drops:
        (folder / "inventories" / "lab" / "drops" / f"{drop}.yml").write_text(f"name: {drop}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "drops")


def run_step(folder: Path, command: str, **variables: str) -> tuple[int, list[str], str]:
    """Run a pipeline's command line in the checkout: exit code, what the stand-in was asked, what was printed."""
    calls = folder.parent / "calls"
    calls.unlink(missing_ok=True)
    environment = {**os.environ, "STORQUAL": str(folder.parent / "storqual"), "CALLS": str(calls), **variables}
    environment.pop("GITHUB_ACTIONS", None)
    environment |= {name: value for name, value in variables.items() if name == "GITHUB_ACTIONS"}
    ended = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return ended.returncode, calls.read_text().splitlines() if calls.exists() else [], ended.stdout + ended.stderr


def github() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    workflow = YAML(typ="safe", pure=True).load((CI / "github.yml").read_text())
    (job,) = workflow["jobs"].values()
    assert workflow["on"]["pull_request"]["paths"] == ["inventories/*/drops/*.yml"]
    return job, [step["run"] for step in job["steps"] if "run" in step], {**job["env"], "GITHUB_BASE_REF": "main"}


def gitlab() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    pipeline = YAML(typ="safe", pure=True).load((CI / "gitlab-ci.yml").read_text())
    job = pipeline["qualify"]
    assert job["stage"] in pipeline["stages"]
    return job, job["script"], {**job["variables"], "CI_MERGE_REQUEST_DIFF_BASE_SHA": "origin/main"}


def jenkins() -> tuple[str, list[str], dict[str, str]]:
    """The same of the Jenkins pipeline: steps and variables as they stand in the text."""
    text = (CI / "Jenkinsfile").read_text()
    code = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    assert code.count("{") == code.count("}")
    return (
        code,
        re.findall(r"^\s*sh '(.*)'$", code, re.MULTILINE),
        dict(re.findall(r"^\s*([A-Z_]+) = '(.*)'$", code, re.MULTILINE)),
    )


PIPELINES = {"github": github, "gitlab": gitlab, "jenkins": jenkins}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_sets_up_and_qualifies_and_nothing_swallows_the_code(name: str) -> None:
    """Two commands; no `|| true`, no `continue-on-error`, no `allow_failure`."""
    _, commands, _ = PIPELINES[name]()
    assert [command.split()[0] for command in commands] == ["ci/setup", "ci/qualify-drops"]
    assert all((CI / command.split()[0].removeprefix("ci/")).stat().st_mode & 0o111 for command in commands)
    text = (CI / {"github": "github.yml", "gitlab": "gitlab-ci.yml", "jenkins": "Jenkinsfile"}[name]).read_text()
    assert not re.search(r"\|\|\s*true|continue-on-error|allow_failure|catchError|returnStatus", text)


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize(
    ("drops", "code"), [((), 0), (("good",), 0), (("good", "worse"), 1), (("unclear", "good"), 2)]
)
def test_what_a_pipeline_runs_ends_with_the_worst_code(
    name: str, drops: tuple[str, ...], code: int, checkout: Path
) -> None:
    if drops:
        change(checkout, *drops)
    _, commands, variables = PIPELINES[name]()
    ended, calls, output = run_step(checkout, commands[-1], **variables)
    assert ended == code, output
    asked = [call.split() for call in calls if call.startswith("qualify")]
    assert [call[call.index("--candidate") + 1] for call in asked] == sorted(drops)
    assert all(call[call.index("--baseline") + 1] == "stable" for call in asked)
    assert sum(call.startswith("export") for call in calls) == len(drops)


@pytest.mark.parametrize("name", PIPELINES)
def test_the_commands_of_a_pipeline_are_clean_shell(name: str) -> None:
    _, commands, _ = PIPELINES[name]()
    script = "".join(f"{command}\n" for command in commands)
    checked = subprocess.run(
        ["shellcheck", "--shell=bash", "-"], input=script, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("schema", "file", "wrong"),
    [
        ("vendor.github-workflows", "github.yml", ("runs-on:", "run-on:")),
        ("vendor.gitlab-ci", "gitlab-ci.yml", ("when: always", "when: whenever")),
    ],
)
def test_a_pipeline_is_what_its_system_publishes_as_valid(
    schema: str, file: str, wrong: tuple[str, str], tmp_path: Path
) -> None:
    text = (CI / file).read_text(encoding="utf-8")
    assert text.count(wrong[0]) == 1
    (tmp_path / file).write_text(text.replace(*wrong), encoding="utf-8")
    argv = [sys.executable, "-m", "check_jsonschema", "--quiet", "--builtin-schema", schema]
    codes = [subprocess.run([*argv, str(folder / file)], check=False).returncode for folder in (CI, tmp_path)]
    assert codes == [0, 1]


@pytest.mark.plays
def test_a_drop_of_files_is_qualified_by_the_command_itself(checkout: Path) -> None:
    local = checkout / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", local)
    (checkout / ".gitignore").write_text(".cache/\nruns/\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "files")
    git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    (local / "drops" / "next.yml").write_text("name: next\ndescription: This machine once more.\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "a drop")
    _, commands, variables = gitlab()
    wanted = {"STORQUAL": str(Path(sys.executable).parent / "storqual"), "STORQUAL_BASELINE": "baseline"}
    wanted |= {"STORQUAL_SUITE": str(REPOSITORY / "tests/plays/tiny.suite.yml"), "STORQUAL_PROFILE": "quick"}
    code, _, output = run_step(checkout, commands[-1], **(variables | wanted))
    (run,) = (checkout / "runs").iterdir()
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert code == verdict["exit_code"], output
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["arms"]["candidate"]["drop"] == "next"
    assert f"next on local: exit code {code}" in output
    notes = json.loads((checkout / "code-quality-local-next.json").read_text(encoding="utf-8"))
    assert bool(notes) == (verdict["outcome"] != "PASS")
    assert {note["location"]["path"] for note in notes} <= {"inventories/local/drops/next.yml"}


def test_the_drop_in_the_field_is_not_qualified_against_itself(checkout: Path) -> None:
    """Only what else the change brings."""
    (checkout / "inventories" / "lab" / "drops" / "stable.yml").write_text(
        "name: stable\ndescription: now with words\n"
    )
    change(checkout, "good")
    _, calls, _ = run_step(checkout, "ci/qualify-drops origin/main", STORQUAL_BASELINE="stable")
    assert sum(call.startswith("qualify") for call in calls) == 1


def test_a_gate_without_a_baseline_or_with_an_unknown_base_is_wrong_use(checkout: Path) -> None:
    change(checkout, "good")
    assert run_step(checkout, "ci/qualify-drops origin/main", STORQUAL_BASELINE="")[0] == 3
    assert run_step(checkout, "ci/qualify-drops origin/nothing", STORQUAL_BASELINE="stable")[:2] == (3, [])


def test_annotations_go_where_the_system_looks_for_them(checkout: Path) -> None:
    """Printed on GitHub; a file that GitLab's artifacts match elsewhere."""
    change(checkout, "good")
    _, calls, _ = run_step(
        checkout, "ci/qualify-drops origin/main", STORQUAL_BASELINE="stable", GITHUB_ACTIONS="true"
    )
    assert calls[-1] == "export runs/good --format github"
    _, calls, _ = run_step(checkout, "ci/qualify-drops origin/main", STORQUAL_BASELINE="stable")
    assert calls[-1] == "export runs/good --format gitlab -o code-quality-lab-good.json"
    job, _, _ = gitlab()
    assert Path("code-quality-lab-good.json").match(job["artifacts"]["reports"]["codequality"])
    assert json.loads((checkout / "runs" / "good" / "verdict.json").read_text()) == {}
