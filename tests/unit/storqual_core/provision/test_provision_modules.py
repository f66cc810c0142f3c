# SPDX-License-Identifier: Apache-2.0
"""The provisioning modules as Ansible runs them: arguments in, one result out."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

from storqual_core.kit.errors import BadInputError, GuardRefusalError, StorqualError
from storqual_core.kit.results import PartialError, Provisioned, TrialFailedError, finish

CLAIM = {"wwn": "0x5000c50015ea0000", "serial": "S", "vendor": "V", "model": "M", "size": "1GiB"}
ADAPTERS = {"sym": {"drives": [CLAIM]}}


def call(module: ModuleType, capsys: pytest.CaptureFixture[str], *, check: bool = False, **arguments: Any) -> dict:
    """Run main() and give what it printed."""
    with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(SystemExit):
        module.main()
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("part", ["all", "mode_pages", "queue"])
def test_a_misspelt_setting_is_bad_input(
    part: str, load_module: Callable, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit code 3, nothing touched."""
    drives = {CLAIM["wwn"]: {"WCX": 1}}
    module = load_module("scsi_mode_page")
    result = call(module, capsys, drives=drives, adapters=ADAPTERS, part=part, state_dir=str(tmp_path / "s"))
    assert (result["failed"], result["changed"], result["storqual_exit_code"]) == (True, False, 3)
    assert "drive.WCX is not a known setting" in result["msg"]
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("part", ["mode_pages", "queue"])
def test_an_unclaimed_drive_is_bad_input(
    part: str, load_module: Callable, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drives = {CLAIM["wwn"]: {"WCE": 1, "queue_depth": 4}}
    module = load_module("scsi_mode_page")
    result = call(module, capsys, drives=drives, adapters=ADAPTERS, part=part, state_dir=str(tmp_path / "s"))
    assert result["storqual_exit_code"] == 3
    assert "has a claim on it" in result["msg"]


def test_a_bench_without_memory_has_nothing_to_restore(
    load_module: Callable, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    module = load_module("bench_restore")
    for state in ("restored", "accepted"):
        assert not call(module, capsys, state_dir=str(tmp_path), state=state)["changed"]


def test_a_memory_that_is_broken_is_a_sentence(
    load_module: Callable, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "saved.json").write_text("{")
    result = call(load_module("bench_restore"), capsys, state_dir=str(tmp_path))
    assert result["failed"]
    assert "cannot be read" in result["msg"]
    assert (tmp_path / "saved.json").exists()


class Recorder:
    """What a module does at its end."""

    def __init__(self) -> None:
        self.body: dict[str, Any] = {}

    def exit_json(self, **body: Any) -> None:
        self.body = body

    def fail_json(self, **body: Any) -> None:
        self.body = {"failed": True, **body}


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (StorqualError("x"), {"changed": False, "storqual_exit_code": 2}),
        (BadInputError(["x"]), {"changed": False, "storqual_exit_code": 3}),
        (GuardRefusalError(["x"]), {"changed": False, "storqual_exit_code": 4, "refusals": ["x"]}),
        (PartialError("x", steps=["a"], settings=[]), {"changed": True, "steps": ["a"], "storqual_exit_code": 2}),
        (PartialError("x", steps=[], settings=[]), {"changed": False, "steps": []}),
        (
            PartialError("x", steps=[], settings=[Provisioned("drive.WCE", 0, 1, 0, drive="d", changed=True)]),
            {"changed": True},
        ),
        (
            TrialFailedError("x", facts={"running": "6.1"}, evidence=[{"name": "p", "text": "panic"}]),
            {"changed": False, "facts": {"running": "6.1"}, "evidence": [{"name": "p", "text": "panic"}]},
        ),
    ],
)
def test_each_failure_says_what_is_true_of_the_bench(problem: StorqualError, expected: dict) -> None:
    recorder = Recorder()

    def work() -> dict:
        raise problem

    finish(recorder, work)
    assert recorder.body["failed"]
    assert recorder.body["msg"] == "x"
    assert {key: recorder.body[key] for key in expected} == expected


def test_success_is_the_result() -> None:
    recorder = Recorder()
    finish(recorder, lambda: {"changed": True, "settings": []})
    assert recorder.body == {"changed": True, "settings": []}


def test_ansibles_module_class_is_the_real_one() -> None:
    """These tests would prove little about a stand-in."""
    assert basic.AnsibleModule.__module__ == "ansible.module_utils.basic"
