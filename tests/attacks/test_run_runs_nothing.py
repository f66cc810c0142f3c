# SPDX-License-Identifier: Apache-2.0
"""A run is data: none of its files is executed by whoever judges, publishes, signs, verifies or reads it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storqual.base.files import project_root
from storqual.campaign.pipeline import publish
from storqual.checks.own import allow_checks
from storqual.cli import _COMMANDS
from storqual.run import read_run, sha256_of
from tests.support.make_run import make_run
from tests.support.planted_run import plant
from tests.support.signing import make_person, write_keys
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

GATE = "informative:\n  - '*.robot::*'\n  - test_*\n"
LOCAL = project_root() / "inventories" / "local"
DRIVER = Path(__file__).with_suffix(".driver").read_text(encoding="utf-8")
RUN, CLEAN = "RUN", "CLEAN"
OF_RUNS: dict[str, list[list[str]]] = {
    "audit": [[RUN]],
    "compare": [[RUN]],
    "events": [[RUN]],
    "export": [
        # the others are written by the same code
        [RUN, "--format", form]
        for form in ("ocp", "samples-csv")
    ],
    "history": [[RUN]],
    "judge": [[RUN], [RUN, "--suite", f"{RUN}/inputs/suite.yml"]],
    "next": [[RUN, "--bench", "bench01", "--json"]],
    "note": [[RUN, "seen"]],
    "plan": [["--resume", RUN]],
    "playbook": [["publish", "-e", f"run={RUN}"]],
    "publish": [[RUN]],
    "qualify": [["--resume", RUN, "-i", str(LOCAL)]],
    "record": [[RUN, "note", "text=seen"]],
    "report": [[RUN]],
    "resolve": [["--run", RUN, "--bench", "bench01"]],
    "robot": [["sign_off", "--run", RUN, "--output", f"{CLEAN}/logs"]],
    "waive": [[RUN, "-o", f"{CLEAN}/waivers.yml"]],
    # the last ones: a signed run takes no more
    "signoff": [[RUN, "--key", f"{CLEAN}/pat", "--keys", f"{CLEAN}/keys.yml"]],
    "verify": [[RUN, "--keys", f"{CLEAN}/keys.yml"]],
}
OF_LABS: dict[str, list[list[str]]] = {
    "bench": [
        ["console", "this_machine", "status", "-i", str(LOCAL)],
        ["switch", "--folder", f"{CLEAN}/bench", "state"],
    ],
    "facts": [["-i", str(LOCAL)]],
    "inventory": [["-i", str(LOCAL)]],
    "keywords": [[f"{CLEAN}/keywords.html"]],
    "man": [[f"{CLEAN}/man1"]],
    "new": [["check", "mine"]],
    # what it downloads comes from the network
    "packages": [["--help"]],
    "schema": [["drop"]],
    "sheet": [["-i", str(LOCAL), "-o", f"{CLEAN}/sheets"]],
}


def test_every_command_is_tried() -> None:
    assert {*OF_RUNS, *OF_LABS} == set(_COMMANDS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run that was published, and one that is still open."""
    folder = tmp_path_factory.mktemp("runs")
    shape = {"noise": 0.003, "points": POINTS[:2], "adapters": ("sym",), "finished": False, "gate": GATE}
    finished = make_run(folder, run="20261121T100000Z-synthetic-0001", **shape)
    publish(finished)
    return finished, make_run(folder, run="20261121T100000Z-synthetic-0002", **shape)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """A folder that the run's author never saw, with a key, and the command as a script that starts workers."""
    folder = tmp_path / "clean"
    folder.mkdir()
    write_keys(folder, make_person(folder, "Pat", "release-manager"))
    (folder / "storqual").write_text(DRIVER.format(pools=str(folder / "pools")), encoding="utf-8")
    return folder


def environment(clean: Path) -> dict[str, str]:
    """As a careless person has it: the current folder is asked for programs, before and behind all others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ANSIBLE", "PYTEST"))}
    path = f":{Path(sys.executable).parent}:{os.environ['PATH']}:."
    return {
        **kept,
        "PATH": path,
        "XDG_STATE_HOME": str(clean / "state"),
        "ANSIBLE_CONFIG": str(project_root() / "ansible.cfg"),
    }


def executed(argv: list[str], cwd: Path, clean: Path, marks: Path) -> str:
    """What was executed of the run by a command, or how the command was disturbed; empty when nothing was."""
    done = subprocess.run(
        argv, cwd=cwd, env=environment(clean), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    found = sorted(path.name for path in marks.iterdir())
    for path in marks.iterdir():
        path.unlink()
    broken = done.returncode not in (0, 1, 2, 3) or "Traceback" in done.stderr + done.stdout
    said = f" ({done.returncode}: {done.stderr[-300:]})" if broken else ""
    return f"{' '.join(argv[1:])}: {', '.join(found)}{said}" if found or broken else ""


def commands(run: str, clean: Path) -> list[list[str]]:
    listed = [[name, *words] for name, several in OF_RUNS.items() for words in several]
    return [[word.replace(RUN, run).replace(CLEAN, str(clean)) for word in words] for words in listed]


@pytest.mark.parametrize(
    ("packages", "inside"), [(False, True), (True, True), (False, False)], ids=["modules", "packages", "elsewhere"]
)
def test_nothing_of_a_finished_run_is_executed(
    runs: tuple[Path, Path], clean: Path, tmp_path: Path, packages: bool, inside: bool
) -> None:
    run, marks = tmp_path / runs[0].name, tmp_path / "marks"
    shutil.copytree(runs[0], run)
    marks.mkdir()
    plant(run, marks, packages=packages)
    program = [sys.executable, str(clean / "storqual")]
    cwd, named = (run, ".") if inside else (clean, str(run))
    tried = [[*program, *words] for words in commands(named, clean)]
    if inside:
        labs = [[name, *words] for name, several in OF_LABS.items() for words in several]
        tried += [[*program, *(word.replace(CLEAN, str(clean)) for word in words)] for words in labs]
        tried += [[*program, "judge", "."], [sys.executable, "-P", "-m", "storqual", "judge", "."]]
        play = [
            str(Path(sys.executable).parent / "ansible-playbook"),
            str(project_root() / "playbooks" / "publish.yml"),
        ]
        tried.append([*play, "-e", "run=."])
    # a run that is opened again cannot be signed, and one that is signed takes no writer
    tried.sort(key=lambda argv: ("--resume" in argv) * 2 + bool({"signoff", "verify"} & set(argv)))
    assert not list(filter(None, (executed(argv, cwd, clean, marks) for argv in tried)))
    assert (clean / "pools").exists()
    assert list(run.glob("signoff.*.json"))


def with_check(run: Path, source: str, text: str, name: str = "test_planted.py") -> None:
    """Enter a check into the plan, as a stranger would who makes up a run."""
    (run / "inputs" / name).write_text(text, encoding="utf-8")
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    entry = {"file": f"inputs/{name}", "source": source, "sha256": sha256_of(text.encode())}
    document["inputs"][f"check:{name}"] = entry
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")


SOURCES = ("{run}/inputs/test_planted.py", "inputs/test_planted.py", "/proc/self/cwd/inputs/test_planted.py")


@pytest.mark.parametrize("source", [*SOURCES, "{beside}"])
def test_a_check_of_an_open_run_is_executed_for_who_named_it_and_for_nobody_else(
    runs: tuple[Path, Path], clean: Path, tmp_path: Path, source: str
) -> None:
    """Wherever the run says that its check is, with whatever digest: it is an ERROR, and the verdict says why."""
    run, marks, beside = tmp_path / runs[1].name, tmp_path / "marks", tmp_path / "beside" / "test_planted.py"
    shutil.copytree(runs[1], run)
    marks.mkdir()
    beside.parent.mkdir()
    text = f"open({str(marks / 'check')!r}, 'w').close()\ndef test_it(): pass\n"
    beside.write_text(text, encoding="utf-8")
    with_check(run, source.format(run=run, beside=beside), text)
    plant(run, marks, packages=True)
    program = [sys.executable, str(clean / "storqual")]
    assert not executed([*program, "publish", "."], run, clean, marks)
    (check,) = [check for check in read_run(run).checks if check.id == "test_planted.py"]
    assert check.outcome == "ERROR"
    assert "--checks" in check.reason


def test_a_check_that_its_user_names_is_executed_alone(
    runs: tuple[Path, Path], clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what lies beside it, and of the file only what was planned."""
    run, marks, mine = tmp_path / runs[1].name, tmp_path / "marks", tmp_path / "mine" / "test_planted.py"
    shutil.copytree(runs[1], run)
    marks.mkdir()
    mine.parent.mkdir()
    plant(mine.parent, marks, packages=False)
    text = f"import random\nopen({str(marks / 'check')!r}, 'w').close()\ndef test_it(): assert random.random() < 1\n"
    mine.write_text(text, encoding="utf-8")
    with_check(run, "", text)
    monkeypatch.setenv("XDG_STATE_HOME", str(clean / "state"))
    allow_checks(read_run(run), [mine])
    program = [sys.executable, str(clean / "storqual")]
    told = executed([*program, "publish", str(run)], mine.parent, clean, marks)
    assert told.endswith(": check")
    outcomes = {check.id: check.outcome for check in read_run(run).checks}
    assert outcomes["test_planted.py::test_it"] == "PASS"
    # closed: judged again and published again without it
    assert not executed([*program, "publish", str(run)], mine.parent, clean, marks)
