# SPDX-License-Identifier: Apache-2.0
"""The module virtual_bench: who powers a bench off again must know whether it was on."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@pytest.mark.parametrize(("state", "before"), [(None, "off"), ("hung", "on")])
def test_a_bench_that_hung_was_on(
    load_module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: Any, before: str
) -> None:
    module, ended = load_module("virtual_bench"), dict[str, Any]()
    given = {"name": "b", "state": "up", "state_dir": str(tmp_path), "adapters": {}, "virtual": {}}
    stand = SimpleNamespace(params=given, check_mode=False, exit_json=lambda **result: ended.update(result))
    monkeypatch.setattr(module, "AnsibleModule", lambda **_: stand)
    monkeypatch.setattr(module, "describe", lambda *_: None)
    monkeypatch.setattr(module, "_facts", lambda _, now: {"power": "off" if now is None else "on"})
    states = iter((state, "answers"))
    monkeypatch.setattr(module.power, "power_state", lambda _: next(states))
    monkeypatch.setattr(module.power, "power_on", lambda *_, **__: ("answers", True))
    module.main()
    assert (ended["changed"], ended["power_before"]) == (True, before)
