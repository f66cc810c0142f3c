# SPDX-License-Identifier: Apache-2.0
"""What `ansible-doc` shows of each module is what the module takes, shared fragments included."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
MODULES = sorted(path.stem for path in (REPOSITORY / "library" / "modules").glob("*.py"))
ACTIONS = ("bench_turns",)
"""Modules whose work is an action plugin's: they are their documentation."""


class Started(Exception):  # noqa: N818 - ends a module where it would start
    """A module called AnsibleModule with these words."""

    def __init__(self, **words: Any) -> None:
        super().__init__()
        self.words = words


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """All modules, as Ansible finds them from the project's own configuration."""
    ended = subprocess.run(
        [Path(sys.executable).with_name("ansible-doc"), "--json", "-t", "module", *MODULES],
        env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ACTIONS])
def test_documentation_is_the_argument_spec(
    name: str, shown: dict[str, Any], load_module: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load_module(name)

    def start(**words: Any) -> None:
        raise Started(**words)

    monkeypatch.setattr(module, "AnsibleModule", start)
    with pytest.raises(Started) as caught:
        module.main()
    spec, documented = caught.value.words["argument_spec"], shown[name]["doc"]["options"]
    assert set(documented) == set(spec)
    assert caught.value.words["supports_check_mode"]
    for option, words in spec.items():
        text = documented[option]
        for key in ("type", "choices", "elements", "default"):
            assert text.get(key) == words.get(key), (option, key)
        assert text.get("required", False) == words.get("required", False), option
        assert text["description"], option


@pytest.mark.parametrize("name", MODULES)
def test_return_values_and_examples_are_documented(name: str, shown: dict[str, Any]) -> None:
    for value, text in shown[name]["return"].items():
        assert {"description", "returned", "type", "sample"} <= set(text), value
    assert f"{name}:" in shown[name]["examples"]
    assert {"check_mode", "diff_mode"} <= set(shown[name]["doc"]["attributes"])
    assert shown[name]["doc"]["author"]
