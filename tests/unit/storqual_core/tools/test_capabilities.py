# SPDX-License-Identifier: Apache-2.0
"""What a request for a volume asks of a tool."""

import inspect
from types import ModuleType, SimpleNamespace

import pytest

from storqual_core.kit.errors import ToolError, refuse_for
from storqual_core.kit.settings import section_of
from storqual_core.tools import TOOLS
from storqual_core.tools.capabilities import ACTIVATIONS, CAPABILITIES, Spelling, VolumeRequest, offers

PARTS = ("policies", "strip", "name", "spares", "initialisation")


@pytest.mark.parametrize("initialisation", ["", "none"])
def test_what_is_left_to_the_tool_is_not_asked(initialisation: str) -> None:
    assert VolumeRequest("5", ("0", "1", "2"), initialisation=initialisation).asks(*PARTS) == []


def test_what_is_asked_is_told_in_words_as_far_as_the_tool_minds() -> None:
    request = VolumeRequest("1", ("0", "1"), 65536, "data", {"write_policy": "wt"}, "full", ("2",))
    told = ["write_policy", "a strip", "name", "hot spares", "the initialisation full"]
    assert request.asks(*PARTS) == told
    assert request.asks("spares", "policies") == ["hot spares", "write_policy"]


def test_reasons_are_an_error_and_none_is_not() -> None:
    refuse_for(())
    with pytest.raises(ToolError, match=r"^a; b$"):
        refuse_for(("a", "b"))


MEMBERS = {name: capability for capability in CAPABILITIES.values() for name in capability.names}


def parameters(function: object) -> list[str]:
    """The names that a call gives by position, `self` of a protocol left out."""
    assert callable(function)
    listed = inspect.signature(function).parameters.values()
    return [each.name for each in listed if each.name != "self" and each.default is inspect.Parameter.empty]


@pytest.fixture(params=sorted(TOOLS))
def tool(request: pytest.FixtureRequest) -> ModuleType:
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
