# SPDX-License-Identifier: Apache-2.0
"""Every playbook by itself, on files of this machine: it does its part, or it does not end with 0."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
SUITE = Path(__file__).parent / "tiny.suite.yml"
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"


@dataclass(frozen=True)
class Ended:
    """How a play ended, and what it wrote to the terminal."""

    code: int
    output: str


@dataclass(frozen=True)
class Lab:
    """The local inventory, its state in a folder of its own, and a run that was planned there."""

    folder: Path
    run: Path

    @property
    def state(self) -> Path:
        return self.folder / ".cache" / "local"


def play(folder: Path, name: str, **variables: object) -> Ended:
    argv = [str(PLAYBOOK), "-i", str(folder / "inventories" / "local"), str(REPOSITORY / "playbooks" / name)]
    argv += ["-e", json.dumps({key: str(value) for key, value in variables.items()})]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
    log = folder / "log"
    with log.open("wb") as stream:
        code = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False
        ).returncode
    return Ended(code, log.read_text(encoding="utf-8")[-4000:])


def planned(folder: Path) -> Lab:
    shutil.copytree(REPOSITORY / "inventories" / "local", folder / "inventories" / "local")
    ended = play(folder, "plan.yml", baseline="baseline", candidate="candidate", suite=SUITE, runs=folder / "runs")
    assert ended.code == 0, ended.output
    (document,) = (folder / "runs").glob("*/run.json")
    return Lab(folder, document.parent)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return planned(tmp_path_factory.mktemp("phases"))


@pytest.fixture(scope="module")
def measured(lab: Lab) -> Lab:
    for name in ("preflight.yml", "measure.yml"):
        ended = play(lab.folder, name, run=lab.run)
        assert ended.code == 0, ended.output
    return lab


def events(run: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]


ALONE: dict[str, dict[str, Any]] = {
    "bench_up.yml": {},
    "bench_down.yml": {},
    "provision.yml": {"drop": "baseline"},
    "setup.yml": {"drop": "baseline"},
    "restore.yml": {},
    "facts.yml": {"answers_folder": "{folder}", "look_depths": {}},
}
"""Those that need neither a run nor another phase before them."""
OF_A_COMMAND = ("power.yml", "redfish_power.yml")
"""Those of `storqual bench power`; tests/plays/test_power.py and tests/unit/storqual/power run them."""
OF_A_RUN = ("plan.yml", "preflight.yml", "measure.yml", "publish.yml", "qualify.yml")


def test_every_playbook_is_run_alone_here() -> None:
    assert {path.name for path in (REPOSITORY / "playbooks").glob("*.yml")} == {*ALONE, *OF_A_COMMAND, *OF_A_RUN}


@pytest.mark.parametrize("name", ALONE)
def test_a_phase_runs_alone(name: str, lab: Lab) -> None:
    variables = {key: value and value.format(folder=lab.folder) for key, value in ALONE[name].items()}
    ended = play(lab.folder, name, **variables)
    assert ended.code == 0, ended.output


@pytest.mark.parametrize("name", ["provision.yml", "setup.yml"])
def test_a_drop_that_was_not_named_is_bad_input(name: str, lab: Lab) -> None:
    ended = play(lab.folder, name)
    assert ended.code == 3, ended.output
    assert "no drop is named; give --drop NAME, to a playbook -e drop=NAME; there is" in ended.output


def test_measuring_alone_measures_what_was_planned(measured: Lab) -> None:
    kinds = events(measured.run)
    assert "provision_failed" not in kinds
    assert kinds.count("block_finished") >= 1
    assert (measured.run / "samples.jsonl").read_bytes().count(b"\n") == 6


def test_a_preflight_without_a_run_writes_nothing(measured: Lab, tmp_path: Path) -> None:
    assert play(measured.folder, "preflight.yml").code == 0
    other = planned(tmp_path)
    ended = play(tmp_path, "preflight.yml")
    assert ended.code == 4, ended.output
    assert "of a run, which creates it" in ended.output
    assert not (other.state / "targets" / "drive0").exists()


def test_publishing_alone_ends_with_the_verdicts_code(measured: Lab) -> None:
    first = play(measured.folder, "publish.yml", run=measured.run)
    verdict = json.loads((measured.run / "verdict.json").read_text(encoding="utf-8"))
    assert first.code == verdict["exit_code"], first.output
    again = play(measured.folder, "publish.yml", run=measured.run)
    assert again.code == verdict["exit_code"], again.output


def test_publishing_what_was_never_measured_is_no_success(tmp_path: Path) -> None:
    lab = planned(tmp_path)
    ended = play(tmp_path, "publish.yml", run=lab.run)
    verdict = json.loads((lab.run / "verdict.json").read_text(encoding="utf-8"))
    assert ended.code == verdict["exit_code"] == 2, ended.output


def test_measuring_on_a_bench_that_cannot_be_prepared_is_no_success(tmp_path: Path) -> None:
    lab = planned(tmp_path)
    shutil.rmtree(lab.state, ignore_errors=True)
    lab.state.parent.mkdir(exist_ok=True)
    lab.state.write_text("no folder\n", encoding="utf-8")
    ended = play(tmp_path, "measure.yml", run=lab.run)
    assert ended.code != 0, ended.output
    assert "is not done: " in ended.output or "failed=1" in ended.output


@pytest.mark.parametrize("name", ["measure.yml", "publish.yml", "qualify.yml", "plan.yml"])
def test_a_phase_without_its_input_is_no_success(name: str, lab: Lab) -> None:
    ended = play(lab.folder, name)
    assert ended.code != 0, ended.output
