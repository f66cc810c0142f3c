# SPDX-License-Identifier: Apache-2.0
"""`storqual new`: what it writes is followed, by the lines that it prints for that."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from storqual.cli import main
from storqual.inputs import load_drop, load_gate, load_trust
from storqual.inputs.json_schema import SCHEMAS
from storqual.inputs.yaml_file import read_yaml
from storqual.run import write_json
from storqual_core.facts.bench_facts import read_facts
from tests.support.bench_tree import STATE, BenchTree
from tests.support.signing import make_person

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
TEMPLATES = REPOSITORY / "templates" / "new"

Storqual = Callable[..., tuple[int, str, str]]


@pytest.fixture
def storqual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Storqual:
    """Exit code, standard output and standard error of a command, called in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        return int(str(ended.value.code)), out, err

    return call


def made(storqual: Storqual, *words: str) -> dict[str, Any]:
    """What `storqual new` says it made."""
    code, out, err = storqual("new", *words, "--json")
    assert code == 0, err
    answer: dict[str, Any] = json.loads(out)
    assert all(Path(path).is_file() for path in answer["files"])
    return answer


def followed(storqual: Storqual, line: str, *more: str) -> str:
    program, *words = shlex.split(line)
    assert program == "storqual"
    code, out, err = storqual(*words, *more)
    assert code == 0, err
    return out


@pytest.mark.parametrize("here", [False, True])
def test_a_suite_plans_on_files_of_this_machine(here: bool, storqual: Storqual, tmp_path: Path) -> None:
    if here:
        (tmp_path / "suites").mkdir()
    answer = made(storqual, "suite", "streaming-reads")
    assert answer["files"] == ["suites/streaming-reads.suite.yml" if here else "streaming-reads.suite.yml"]
    planned = json.loads(followed(storqual, answer["next"][0], "--json"))
    assert planned["points"] == 4
    assert "-streaming-reads-" in planned["run"]


def test_every_profile_of_a_new_suite_plans(storqual: Storqual) -> None:
    answer = made(storqual, "suite", "streaming")
    planned = json.loads(followed(storqual, answer["next"][0], "--json", "--profile", "full"))
    assert planned["until"] == "decided"


def test_a_drop_for_files_of_this_machine_resolves_and_plans(storqual: Storqual, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "inventories/local", tmp_path / "inventories/local")
    answer = made(storqual, "drop", "newer", "-i", "inventories/local")
    assert answer["files"] == ["inventories/local/drops/newer.yml"]
    assert json.loads(followed(storqual, answer["next"][0], "--json"))["declared"]["drive"]["settings"] == {}
    words = (
        "storqual plan -i inventories/local --baseline baseline --candidate newer --suite adapter --dry-run --json"
    )
    assert json.loads(followed(storqual, words))["points"] > 0


def test_a_drop_for_hardware_resolves_to_settings_of_its_drives(storqual: Storqual, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "inventories/example_lab", tmp_path / "lab")
    answer = made(storqual, "drop", "newer", "-i", "lab/hosts.yml")
    assert answer["files"] == ["lab/drops/newer.yml"]
    drives = json.loads(followed(storqual, answer["next"][0], "--json"))["declared"]["drive"]["settings"]
    assert drives
    assert all(settings == {"queue_depth": 16} for settings in drives.values())


def test_every_section_that_a_new_drop_shows_is_good(tmp_path: Path) -> None:
    """Sections that stand there as comments are taken by whoever takes the comment sign away."""
    text = (TEMPLATES / "drop" / "newname.yml").read_text(encoding="utf-8")
    shown = re.sub(r"^# ((?:driver|nvram|os|  \w+):)", r"\1", text, flags=re.MULTILINE)
    (tmp_path / "newname.yml").write_text(shown, encoding="utf-8")
    drop = load_drop(tmp_path / "newname.yml")
    assert {section for section, *_ in drop.settings()} == {"drive", "driver", "nvram", "os"}


@pytest.mark.parametrize("here", [False, True])
def test_a_lab_is_written_below_inventories_and_its_drop_resolves(
    here: bool, storqual: Storqual, tmp_path: Path
) -> None:
    if here:
        (tmp_path / "inventories").mkdir()
    answer = made(storqual, "lab", "room7")
    lab = Path("inventories/room7")
    assert sorted(answer["files"]) == [
        str(lab / name) for name in ("drops/in_field.yml", "gate.yml", "hosts.yml", "keys.yml")
    ]
    read, _, resolve = answer["next"]
    (bench,) = json.loads(followed(storqual, read, "--json")).values()
    assert not any(drive["claim"] for adapter in bench["adapters"].values() for drive in adapter["drives"])
    assert json.loads(followed(storqual, resolve, "--json"))["declared"]["drive"]["settings"] == {}
    assert load_gate(lab / "gate.yml").name == "room7"


def test_a_new_lab_trusts_nobody_until_somebody_stands_in_its_keys(storqual: Storqual, tmp_path: Path) -> None:
    made(storqual, "lab", "room7")
    keys = tmp_path / "inventories" / "room7" / "keys.yml"
    code, _, err = storqual("verify", ".", "--keys", str(keys))
    assert (code, "found an empty list in keys, expected at least one entry" in err) == (3, True), err
    public = make_person(tmp_path, "Pat", "technician").key.with_suffix(".pub").read_text(encoding="utf-8")
    text = (
        keys.read_text(encoding="utf-8").replace("keys: []\n# keys:", "keys:").replace("ssh-ed25519 AAAA...", public)
    )
    keys.write_text(
        re.sub(r"^#(  .*)$", r"\1", text.replace("\n#   ", "\n   "), flags=re.MULTILINE), encoding="utf-8"
    )
    assert [key.role for key in load_trust(keys).keys] == [("technician",)]


def test_facts_fill_a_lab(storqual: Storqual, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that it prints, with a name in it, for a bench that answers."""
    tree = BenchTree(tmp_path / "tree").adapter().scsi("sda")

    def play(_: str, **more: Any) -> int:
        Path(more["output"]).write_text("", encoding="utf-8")
        write_json(
            Path(more["variables"]["answers_folder"]) / "bench7.json", read_facts(tree.machine, state_dir=STATE)
        )
        return 0

    answer = made(storqual, "lab", "room7")
    monkeypatch.setattr("storqual.bench.ansible_run.run_playbook", play)
    followed(storqual, answer["next"][1].replace("<name>", "bench7"))
    (bench,) = json.loads(followed(storqual, answer["next"][0], "--json"))
    assert bench == "bench7"


def test_a_check_goes_where_the_project_looks_for_checks(storqual: Storqual, tmp_path: Path) -> None:
    assert sorted(made(storqual, "check", "cabling")["files"]) == ["cabling.robot", "test_cabling.py"]
    (tmp_path / "suites" / "robot").mkdir(parents=True)
    files = ["suites/robot/cabling.robot", "suites/test_cabling.py"]
    assert sorted(made(storqual, "check", "cabling")["files"]) == files


def test_what_an_installer_compiled_beside_the_templates_is_no_template(
    storqual: Storqual, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = tmp_path / "templates"
    shutil.copytree(TEMPLATES, templates / "new")
    (templates / "new" / "check" / "__pycache__").mkdir(exist_ok=True)
    monkeypatch.setattr("storqual.cli.new.templates_folder", lambda: templates)
    assert len(made(storqual, "check", "cabling")["files"]) == 2


@pytest.mark.parametrize(
    ("kind", "name"), json.loads(Path(__file__).with_name("wrong_names.json").read_text(encoding="utf-8"))
)
def test_a_name_outside_of_the_alphabet_is_refused_in_one_line(
    kind: str, name: str, storqual: Storqual, tmp_path: Path
) -> None:
    more = ["-i", str(REPOSITORY / "inventories/local")] if kind == "drop" else []
    code, out, err = storqual("new", kind, name, *more)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert re.match(rf"storqual: {kind} .*: this (name cannot be used; a name has|is a reserved word)", err)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["drop", "x"], "-i/--inventory is needed for a drop"),
        (["lab", "x", "-i", "y"], "-i/--inventory is for a drop only, not for a lab"),
        (["drop", "x", "-i", "nowhere"], "nowhere: no such inventory; expected a folder or a file"),
        (["tool", "x"], "a tool is written in a checkout of storqual: make that the current folder"),
        (["metric", "x"], "a metric is written in a checkout of storqual: make that the current folder"),
    ],
)
def test_what_cannot_be_made_is_told_in_one_line(
    words: list[str], message: str, storqual: Storqual, tmp_path: Path
) -> None:
    code, out, err = storqual("new", *words)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert message in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "there"),
    [
        ("suite", "mine.suite.yml"),
        ("lab", "inventories/mine/gate.yml"),
        ("check", "mine.robot"),
        ("check", "test_mine.py"),
    ],
)
def test_nothing_is_overwritten_and_nothing_is_left_half_made(
    kind: str, there: str, storqual: Storqual, tmp_path: Path
) -> None:
    (tmp_path / there).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / there).write_text("kept", encoding="utf-8")
    code, _, err = storqual("new", kind, "mine")
    assert (code, err) == (3, f"storqual: {there}: this file exists already; choose another name\n")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == [there]
    assert (tmp_path / there).read_text(encoding="utf-8") == "kept"


def test_what_was_written_before_a_folder_refused_is_taken_back(storqual: Storqual, tmp_path: Path) -> None:
    lab = tmp_path / "inventories" / "mine"
    lab.mkdir(parents=True)
    (lab / "drops").write_text("a file", encoding="utf-8")
    code, _, err = storqual("new", "lab", "mine")
    assert (code, err.count("\n")) == (3, 1)
    assert [path.name for path in lab.iterdir()] == ["drops"]


def test_files_for_editors_name_a_schema_that_is_there_and_are_valid_by_it(
    storqual: Storqual, tmp_path: Path
) -> None:
    lab = made(storqual, "lab", "room7")
    drop = made(storqual, "drop", "newer", "-i", "inventories/room7")
    suite = made(storqual, "suite", "streaming")
    assert (len(lab["schemas"]), drop["schemas"], suite["schemas"]) == (4, [], ["schemas/suite.schema.json"])
    for path in map(Path, (*lab["files"], *drop["files"], *suite["files"])):
        first, *_ = path.read_text(encoding="utf-8").splitlines()
        named = path.parent / first.removeprefix("# yaml-language-server: $schema=")
        validator = Draft202012Validator(json.loads(named.read_text(encoding="utf-8")))
        problems = [error.message for error in validator.iter_errors(read_yaml(path).data)]
        # a new lab trusts nobody yet, and its readers refuse that too
        assert problems == (["[] should be non-empty"] if path.name == "keys.yml" else [])


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed(name: str, storqual: Storqual) -> None:
    code, out, _ = storqual("schema", name)
    assert (code, json.loads(out)["title"]) == (0, f"storqual {name}")
