# SPDX-License-Identifier: Apache-2.0
"""Every role declares its variables, uses only declared ones, refuses unknown ones, and documents them."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from storqual_core.provision.apply import SUBSYSTEMS

ROLES = sorted((Path(__file__).resolve().parents[2] / "roles").glob("*/tasks"))
CHECK = runpy.run_path(str(ROLES[0].parents[2] / "library/plugins/action/known_variables.py"))["ActionModule"]


@pytest.fixture(params=[path.parent for path in ROLES], ids=[path.parent.name for path in ROLES])
def role(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_every_subsystem_that_can_be_chosen_is_told() -> None:
    repository = ROLES[0].parents[2]
    role = repository / "roles" / "provision"
    assert read(role / "vars" / "main.yml")["__provision_subsystems"] == list(SUBSYSTEMS)
    assert options(role)["provision_only"]["choices"] == list(SUBSYSTEMS)
    for name in ("docs/how-to/technician/many-benches.md", "playbooks/setup.yml", "roles/provision/README.md"):
        words = set(re.findall(r"\w+", (repository / name).read_text(encoding="utf-8")))
        assert set(SUBSYSTEMS) <= words, name


def read(path: Path) -> Any:
    """A YAML file; nothing when it is not there."""
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None


def options(role: Path) -> dict[str, Any]:
    specs = read(role / "meta" / "argument_specs.yml")["argument_specs"]
    return {name: option for entry in specs.values() for name, option in entry.get("options", {}).items()}


def flat(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tasks of a file, those of a block in its place."""
    return [inner for task in tasks for inner in (flat(task["block"]) if "block" in task else [task])]


def known(role: Path) -> set[str]:
    """What the role's own check lets pass beside its inputs: what its tasks leave behind, and what it names."""
    text = "".join(path.read_text(encoding="utf-8") for path in (role / "tasks").glob("*.yml"))
    named = re.findall(r"known_variables:\n +also: \[([^]]*)\]", text)
    return {*CHECK._known(role, f"{role.name}_"), *re.findall(r"\w+", " ".join(named))}


_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "path": str,
    "list": list,
    "dict": dict,
    "bool": bool,
    "int": int,
    "float": (int, float),
}


def test_every_variable_has_a_description_and_a_default_of_its_type(role: Path) -> None:
    """A variable without a type is a string, as in Ansible."""
    defaults = read(role / "defaults" / "main.yml")
    for name, option in options(role).items():
        assert option.get("description"), name
        default = defaults.get(name)
        assert default is None or "{{" in str(default) or isinstance(default, _TYPES[option.get("type", "str")]), name


def test_defaults_are_declared(role: Path) -> None:
    assert set(read(role / "defaults" / "main.yml") or {}) <= set(options(role))


def test_only_declared_variables_are_used(role: Path) -> None:
    """A misspelt name in a task would be an undefined variable on some bench, some day."""
    prefix = role.name + "_"
    allowed = set(options(role)) | known(role)
    for path in sorted([*(role / "tasks").glob("*.yml"), *(role / "vars").glob("*.yml")]):
        text = re.sub(r"^\s*#.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        used = set(re.findall(rf"(?<![\w.]){prefix}[a-z_]+", text))
        modules = {module.stem for module in (role.parents[1] / "library").rglob("*.py")}
        assert used - modules <= allowed, path.name


def test_the_first_task_refuses_unknown_variables(role: Path) -> None:
    entry = flat(read(role / "tasks" / "main.yml"))[0]
    if "ansible.builtin.import_tasks" in entry:
        entry = read(role / "tasks" / entry["ansible.builtin.import_tasks"])[0]
    assert "known_variables" in entry


def test_no_key_that_a_task_takes_over_is_there_twice(role: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Ansible warns of it in every run, and takes the last one."""
    for file in role.rglob("*.yml"):
        DataLoader().load_from_file(str(file))
    assert "duplicate" not in capfd.readouterr().err


def test_the_readme_tells_the_variables(role: Path) -> None:
    text = (role / "README.md").read_text(encoding="utf-8")
    main = read(role / "meta" / "argument_specs.yml")["argument_specs"]["main"].get("options", {})
    assert "meta/argument_specs.yml" in text or [name for name in main if name not in text] == []


@pytest.mark.parametrize(
    ("file", "look", "when"), [("main", "bench_guard", "before"), ("after", "bench_facts", "after")]
)
def test_smart_and_the_logs_of_drives_are_recorded_before_and_after_a_run(file: str, look: str, when: str) -> None:
    tasks = read(ROLES[0].parents[1] / "preflight" / "tasks" / f"{file}.yml")
    (looked,) = (task for task in tasks if look in task)
    assert looked[look]["logs"] == "{{ preflight_run | length > 0 }}"
    (sent,) = (task["storqual_command"]["send"] for task in tasks if "send" in task.get("storqual_command", {}))
    assert sent == {"when": when, "look": f"{{{{ {looked['register']} }}}}"}


def test_what_a_restore_read_back_is_recorded_with_it() -> None:
    (block,) = read(ROLES[0].parents[1] / "campaign" / "tasks" / "restore.yml")
    (sent,) = (task["storqual_command"]["send"] for task in block["block"] if "storqual_command" in task)
    assert sent == {"settings": "{{ restore_report.settings | default([]) }}"}
