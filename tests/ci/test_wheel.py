# SPDX-License-Identifier: Apache-2.0
"""The wheel: built, installed into an environment of its own, and used in an empty folder, far from the checkout."""

import json
import shlex
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support.site_blocks import blocks, commands, pages, shows
from tests.support.wheel import REPOSITORY, build_wheel, campaign_on_files, ended_with, run

pytestmark = pytest.mark.plays


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


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


@pytest.fixture
def inventory(programs: Path) -> Path:
    """The inventory of files that the wheel brings; Ansible's programs are in its environment."""
    for name in ("playbook", "inventory"):
        program = programs / f"ansible-{name}"
        program.write_text(ANSIBLE_PROGRAM.format(python=programs / "python", name=name), encoding="utf-8")
        program.chmod(0o755)
    (data,) = (programs.parent / "lib").glob("python*/site-packages/storqual/_data")
    return data / "inventories" / "local"


def test_a_campaign_on_files_is_measured_judged_and_published_from_an_empty_folder(
    storqual: str, inventory: Path, tmp_path: Path
) -> None:
    """With a check of one's own in `suites/`, which is found by itself."""
    campaign_on_files(Path(storqual), inventory, tmp_path)


def test_playbooks_come_with_the_wheel_and_run_in_an_empty_folder(
    storqual: str, inventory: Path, tmp_path: Path
) -> None:
    """Plan, preflight of the planned run by its relative path, and the drift of the bench; runs are made here."""
    lab = tmp_path / "inventories" / "local"
    shutil.copytree(inventory, lab)
    shutil.copy(REPOSITORY / "tests" / "plays" / "tiny.suite.yml", tmp_path)
    drops = ["-e", "baseline=baseline", "-e", "candidate=candidate", "-e", "suite=./tiny.suite.yml"]
    run(storqual, "playbook", "plan", "-i", "inventories/local", *drops, cwd=tmp_path)
    (made,) = (tmp_path / "runs").glob("*/run.json")
    planned = f"run={made.parent.relative_to(tmp_path)}"
    run(storqual, "playbook", "preflight", "-i", "inventories/local", "-e", planned, cwd=tmp_path)
    assert '"environment"' in (made.parent / "events.jsonl").read_text(encoding="utf-8")
    told = run(
        storqual, "playbook", "setup", "-i", "inventories/local", "-e", "drop=candidate", "--check", cwd=tmp_path
    )
    assert "drift: 0 of 1 benches differ" in told
    unknown = ["playbook", "setup", "-i", "inventories/local", "-e", "drop=nothing"]
    assert ended_with(storqual, *unknown, cwd=tmp_path).returncode == 3


@pytest.mark.usefixtures("inventory")
def test_the_tutorial_is_planned_with_the_wheel_in_an_empty_folder(
    wheel: Path, programs: Path, tmp_path: Path
) -> None:
    """Its files as shown and its commands up to the plan, with no program of the checkout but Python's."""
    (page,) = (page for page in pages() if page.name == "local-files.md")
    planned = 0
    for block in blocks(page):
        if block.title:
            (tmp_path / block.title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if "pipx install ./" in block.text:
            assert f"pipx install ./{wheel.name}" in block.text
        if block.where != "run" or planned:
            continue
        for command in commands(block):
            printed = run("bash", "-ec", command.line, cwd=tmp_path, path=programs)
            assert not shows(printed, command.shown), printed
        planned = block.text.count("storqual plan")
    assert planned
    answer = json.loads(run(programs / "storqual", "new", "lab", "room7", "--json", cwd=tmp_path))
    assert "inventories/room7/hosts.yml" in answer["files"]
    assert run(programs / "storqual", "schema", "hosts", cwd=tmp_path)


def test_readme_and_tutorial_name_the_wheel_that_is_built(wheel: Path) -> None:
    for name in ("README.md", "docs/tutorial/local-files.md"):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        assert "pip wheel --no-deps --wheel-dir dist .\n" in text
        assert f"pipx install dist/{wheel.name}\n" in text
        assert f"{wheel.name}[pdf]'" in text


NO_INDEX = ("NewConnectionError", "Could not find a version", "No matching distribution", "Failed to establish")


def test_pipx_makes_a_command_that_qualifies_on_files(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Into an empty home of pipx, with what the wheel depends on from the package index; skipped without one."""
    home, folder = tmp_path_factory.mktemp("pipx"), tmp_path_factory.mktemp("work")
    places = [f"PIPX_HOME={home}", f"PIPX_BIN_DIR={home / 'bin'}", f"PIPX_MAN_DIR={home / 'man'}"]
    pipx = [sys.executable, "-m", "pipx", "install", "--python", sys.executable, wheel]
    installed = ended_with("env", *places, *pipx, cwd=folder)
    said = installed.stdout + installed.stderr
    if installed.returncode and any(sign in said for sign in NO_INDEX):
        pytest.skip("no package index answers here")
    assert installed.returncode == 0, said
    assert [path.name for path in (home / "bin").iterdir()] == ["storqual"]
    (data,) = (home / "venvs" / "storqual" / "lib").glob("python*/site-packages/storqual/_data")
    campaign_on_files(home / "bin" / "storqual", data / "inventories" / "local", folder)
