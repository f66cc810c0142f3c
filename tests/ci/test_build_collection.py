# SPDX-License-Identifier: Apache-2.0
"""The Ansible collection: staged, packed, installed elsewhere, and used by its full names alone."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "ci" / "build_collection"
TOOLS = Path(sys.executable).parent

PLAY = Path(__file__).with_name("test_build_collection.play")


def run(*words: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the collections of `cwd` and no configuration of the checkout."""
    (cwd / "ansible.cfg").touch()
    own = {
        "ANSIBLE_CONFIG": str(cwd / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(cwd),
        "ANSIBLE_HOME": str(cwd / "home"),
    }
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **own, "ANSIBLE_LOCALHOST_WARNING": "false", **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collections")
    built = run(BUILD, folder / "built", cwd=folder)
    assert built.returncode == 0, built.stderr
    archive = Path(built.stdout.splitlines()[-1])
    taken = run(TOOLS / "ansible-galaxy", "collection", "install", "--offline", archive, "-p", folder, cwd=folder)
    assert taken.returncode == 0, taken.stderr
    return folder


def test_it_has_the_version_of_the_project(installed: Path) -> None:
    manifest = json.loads((installed / "ansible_collections/storqual/bench/MANIFEST.json").read_text())
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    assert manifest["collection_info"]["version"] == version


def test_every_module_is_documented_under_its_full_name(installed: Path) -> None:
    modules = sorted(path.stem for path in (REPOSITORY / "library/modules").glob("*.py"))
    asked = run(TOOLS / "ansible-doc", "--json", *(f"storqual.bench.{name}" for name in modules), cwd=installed)
    assert asked.returncode == 0, asked.stderr
    told = json.loads(asked.stdout)
    assert sorted(told) == [f"storqual.bench.{name}" for name in modules]
    assert "state_dir" in told["storqual.bench.scsi_mode_page"]["doc"]["options"]


def test_a_module_and_a_role_work_by_their_full_names(installed: Path) -> None:
    shutil.copy(PLAY, installed / "play.yml")
    played = run(TOOLS / "ansible-playbook", "-v", "play.yml", cwd=installed, STATE=str(installed / "state"))
    assert '"cmdline"' in played.stdout, played.stdout + played.stderr
    assert "restore_fiel is not a variable of role restore; did you mean restore_file?" in played.stdout


def test_every_playbook_is_found_by_its_full_name(installed: Path) -> None:
    """But for the one that is of benches with Redfish: its modules are another collection's, which is not here."""
    playbooks = sorted((REPOSITORY / "playbooks").glob("*.yml"))
    names = [f"storqual.bench.{path.stem}" for path in playbooks if path.stem != "redfish_power"]
    checked = run(TOOLS / "ansible-playbook", "--syntax-check", "-i", "localhost,", *names, cwd=installed)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("playbook: ") == len(names)


def test_a_qualification_on_files_is_measured_judged_and_published_by_full_names(
    installed: Path, tmp_path: Path
) -> None:
    """In an empty folder, with the configuration that the collection's README names and no file of the checkout."""
    shutil.copytree(REPOSITORY / "inventories/local", tmp_path / "inventories/local")
    suite = shutil.copy(REPOSITORY / "tests/plays/tiny.suite.yml", tmp_path)
    named = {"baseline": "baseline", "candidate": "candidate", "suite": str(suite), "runs": str(tmp_path / "runs")}
    words = [TOOLS / "ansible-playbook", "-i", "inventories/local", "storqual.bench.qualify", "-e", json.dumps(named)]
    played = run(
        *words,
        cwd=tmp_path,
        ANSIBLE_COLLECTIONS_PATH=str(installed),
        ANSIBLE_CALLBACKS_ENABLED="storqual.bench.storqual_events",
    )
    (verdict,) = (tmp_path / "runs").glob("*/verdict.json")
    told = json.loads(verdict.read_text(encoding="utf-8"))
    # how quiet this machine is decides between a pass and an undecided campaign
    assert told["outcome"] in ("PASS", "MARGINAL", "INCONCLUSIVE"), played.stdout
    assert played.returncode == told["exit_code"], played.stdout + played.stderr
    assert (verdict.parent / "report.html").is_file()
    assert "TASK [storqual.bench.publish : " in played.stdout


def test_what_is_in_the_folder_already_is_not_overwritten(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Exit code 3, one line, nothing touched."""
    (tmp_path / "kept").write_text("mine")
    built = run(BUILD, tmp_path, cwd=tmp_path_factory.mktemp("elsewhere"))
    assert (built.returncode, built.stderr.count("\n")) == (3, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_the_readme_s_example_is_a_playbook() -> None:
    readme = (REPOSITORY / "ci/collection/README.md").read_text()
    play = YAML(typ="safe").load(readme.split("```yaml\n")[1].split("```")[0])
    (task,) = play[0]["tasks"]
    name = next(word for word in task if word.startswith("storqual.bench."))
    assert (REPOSITORY / f"library/modules/{name.removeprefix('storqual.bench.')}.py").is_file()
