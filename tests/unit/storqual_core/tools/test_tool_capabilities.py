# SPDX-License-Identifier: Apache-2.0
"""Every tool keeps to the capabilities: the names, whole, and called as the protocols say."""

from __future__ import annotations

import inspect
from types import ModuleType, SimpleNamespace

import pytest

from storqual_core.kit.settings import section_of
from storqual_core.tools import TOOLS
from storqual_core.tools.capabilities import ACTIVATIONS, CAPABILITIES, Spelling, offers

MEMBERS = {name: capability for capability in CAPABILITIES.values() for name in capability.names}


def parameters(function: object) -> list[str]:
    """The names that a call gives by position, `self` of a protocol left out."""
    assert callable(function)
    listed = inspect.signature(function).parameters.values()
    return [each.name for each in listed if each.name != "self" and each.default is inspect.Parameter.empty]


@pytest.fixture(params=sorted(TOOLS))
def tool(request: pytest.FixtureRequest) -> ModuleType:
    """Each tool."""
    return TOOLS[request.param]()


def test_a_tool_is_called_as_the_protocols_say(tool: ModuleType) -> None:
    for name in MEMBERS.keys() & vars(tool).keys():
        if name.isupper():
            continue
        expected = parameters(getattr(MEMBERS[name].protocol, name))
        assert parameters(getattr(tool, name)) == expected, f"{tool.__name__}.{name}"


def test_a_tool_has_a_capability_whole(tool: ModuleType) -> None:
    """Half of one would be found only on the bench that needs it."""
    for name, capability in CAPABILITIES.items():
        had = [each for each in capability.names if hasattr(tool, each)]
        assert not had or name in offers(tool), f"{tool.__name__} has only {', '.join(had)} of {name}"


def test_a_capability_is_the_tools_own_and_not_imported_from_another(tool: ModuleType) -> None:
    for name in MEMBERS.keys() & vars(tool).keys():
        if not name.isupper():
            assert getattr(tool, name).__module__ == tool.__name__, f"{tool.__name__}.{name}"


def test_settings_have_canonical_names_and_say_how_they_are_known(tool: ModuleType) -> None:
    known = section_of("nvram").keys() | section_of("raid").keys()
    for name, spelling in getattr(tool, "SETTINGS", {}).items():
        assert name in known, f"{tool.__name__}: {name}"
        assert isinstance(spelling, Spelling)
        assert spelling.verified in ("live", "recorded", "documented only", "probed"), f"{tool.__name__}: {name}"


def test_half_a_capability_is_none() -> None:
    assert offers(SimpleNamespace(read_settings=len)) == ()
    assert offers(SimpleNamespace(read_volumes=len, delete=len)) == ("raid", "raid.delete")


def test_every_word_of_a_drop_for_activation_is_known() -> None:
    from typing import get_args  # noqa: PLC0415

    from storqual.inputs.drop import Firmware  # noqa: PLC0415

    assert get_args(Firmware.model_fields["activation"].annotation) == ACTIVATIONS
