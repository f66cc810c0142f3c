# SPDX-License-Identifier: Apache-2.0
"""The wheel: built, installed into an environment of its own, and used in an empty folder, far from the checkout."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*words: str | Path, cwd: Path, path: Path | None = None) -> str:
    """What a command prints; `path` is asked for programs first, and nothing of the checkout is."""
    before = f"{path}{os.pathsep}" if path is not None else ""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ANSIBLE"))}
    ended = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**kept, "PATH": f"{before}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", folder]
    run(sys.executable, "-m", "pip", *words, REPOSITORY, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of an environment with the wheel; what the wheel depends on is this environment's, fetched already."""
    folder = tmp_path_factory.mktemp("elsewhere") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel, cwd=folder.parent)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder / "bin"


@pytest.fixture
def storqual(programs: Path, tmp_path: Path) -> str:
    return str(programs / "storqual")


def test_both_packages_come_from_the_wheel(programs: Path, tmp_path: Path) -> None:
    told = "import storqual, storqual_core.kit.errors as e; print(storqual.__file__); print(e.__file__)"
    files = run(programs / "python", "-c", told, cwd=tmp_path).splitlines()
    assert len(files) == 2
    assert all(Path(file).is_relative_to(programs.parent) for file in files)


def test_every_module_and_every_template_is_in_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for root, place in (
        ("library/storqual", "storqual"),
        ("library/module_utils/storqual_core", "storqual_core"),
        ("library/modules", "storqual/_data/library/modules"),
        ("templates", "storqual/_data/templates"),
    ):
        files = [path for path in (REPOSITORY / root).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        missing = {f"{place}/{path.relative_to(REPOSITORY / root)}" for path in files} - names
        assert not missing
    assert not [name for name in names if name.startswith(("module_utils", "library"))]


def test_commands_have_their_help(storqual: str, tmp_path: Path) -> None:
    assert "Exit codes: 0 pass, 1 fail" in run(storqual, "--help", cwd=tmp_path)


def test_a_new_suite_is_planned_with_what_the_wheel_brings(storqual: str, programs: Path, tmp_path: Path) -> None:
    """By the line that `storqual new` prints, in a folder that holds nothing else."""
    answer = json.loads(run(storqual, "new", "suite", "mine", "--json", cwd=tmp_path))
    assert answer["files"] == ["mine.suite.yml"]
    (line,) = answer["next"]
    inventory = Path(shlex.split(line)[3])
    assert inventory.is_relative_to(programs.parent)
    planned = json.loads(run(*shlex.split(line), "--json", cwd=tmp_path, path=programs))
    assert (planned["points"], planned["skipped"]) == (4, 0)
    assert list(planned["benches"]) == ["this_machine"]


ANSIBLE_PROGRAM = """#!{python}
from ansible.cli.{name} import main
main()
"""
"""What pip writes for a dependency that it installs into the same environment."""

OWN_CHECK = """
def test_mine(run, record_property):
    record_property("looked_at", f"{len(run.measured)} launches")
    assert run.measured
"""


def test_a_campaign_on_files_is_measured_judged_and_published_from_an_empty_folder(
    storqual: str, programs: Path, tmp_path: Path
) -> None:
    """With a check of one's own in `suites/`, which is found by itself."""
    for name in ("playbook", "inventory"):
        program = programs / f"ansible-{name}"
        program.write_text(ANSIBLE_PROGRAM.format(python=programs / "python", name=name), encoding="utf-8")
        program.chmod(0o755)
    (data,) = (programs.parent / "lib").glob("python*/site-packages/storqual/_data")
    shutil.copytree(data / "inventories" / "local", tmp_path / "inventories" / "local")
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_mine.py").write_text(OWN_CHECK, encoding="utf-8")
    shutil.copy(REPOSITORY / "tests" / "plays" / "tiny.suite.yml", tmp_path / "suites")
    words = [storqual, "qualify", "-i", "inventories/local", "--baseline", "baseline", "--candidate", "candidate"]
    words += ["--suite", "tiny", "--json"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ANSIBLE"))}
    ended = subprocess.run(
        words,
        cwd=tmp_path,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    # how quiet this machine is decides between a pass and an undecided campaign
    assert ended.returncode in (0, 2), ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["outcome"] in ("PASS", "MARGINAL", "INCONCLUSIVE"), ended.stderr
    made = Path(answer["run"])
    assert made.is_relative_to(tmp_path)
    for name in ("report.html", "verdict.json", "junit.xml", "ocp.jsonl"):
        assert (made / name).is_file(), name
    checks = [json.loads(line) for line in (made / "checks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["outcome"] for one in checks if one["id"] == "test_mine.py::test_mine"} == {"PASS"}
    assert run(storqual, "report", made, "--json", cwd=tmp_path)
