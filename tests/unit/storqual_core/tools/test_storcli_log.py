# SPDX-License-Identifier: Apache-2.0
"""storcli: the controller's own events, and what it does beside the commands of the host."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import storcli
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

EVENTS = fixture_text("storcli", "events.txt")
STOPPED, ACTIVE = fixture_text("storcli", "patrol_stopped.txt"), fixture_text("storcli", "patrol_active.json")


def test_events_are_read_with_continued_lines() -> None:
    replay = Replay([Call("storcli64 /c0 show events type=latest=300 nolog", EVENTS)])
    optimal, sense, removed = storcli.read_events(replay, "0")
    assert (optimal.sequence, optimal.time, optimal.severity) == (0x1284, "Sat Jan  4 18:22:56 2025", "information")
    assert optimal.text == "VD 00/0 is now OPTIMAL"
    assert sense.time == "46 s after a reboot"
    assert sense.text.endswith("CDB: 41 00 00 00 00 00 00 10 00 00, Sense: 6/29/00")
    assert (removed.severity, removed.text) == ("critical", "Removed: PD 05(e0xfb/s4)")


def test_the_latest_first_is_given_oldest_first() -> None:
    head, *blocks = re.split(r"(?=^seqNum)", EVENTS, flags=re.MULTILINE)
    found = storcli.parse_events(head + "".join(reversed(blocks)))
    assert [event.sequence for event in found] == [0x1284, 0x1285, 0x1286]


def test_another_number_of_events_than_told_is_refused() -> None:
    with pytest.raises(ToolError, match="reports 4 events and lists 3"):
        storcli.parse_events(f"Total events = 4\n{EVENTS}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (EVENTS.replace("seqNum: 0x00001285", "Number: 4741"), "event 4740 is told with 'Code' twice"),
        (EVENTS.replace("seqNum: 0x00001284", "Number: 4740"), "an event without its number before event 0x00001285"),
    ],
)
def test_two_events_are_never_made_one(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        storcli.parse_events(text)


def test_an_event_without_a_description_keeps_its_text() -> None:
    odd = EVENTS.replace("Event Description: VD 00/0 is now OPTIMAL\n", "")
    first, *others = storcli.parse_events(odd)
    assert "Target Id: 0" in first.text
    assert len(others) == 2


def answer(description: str, status: str = "Success", data: object = None, controller: int = 0) -> str:
    entry = {"Command Status": {"Controller": controller, "Status": status, "Description": description}}
    return json.dumps({"Controllers": [{**entry, **({} if data is None else {"Response Data": data})}]})


OWN = (Path(__file__).with_name("single_case") / "storcli_log_own.txt").read_text(encoding="utf-8")


def test_what_the_tool_says_of_its_command_is_no_part_of_an_event() -> None:
    bare = EVENTS.replace("Event Data:\n===========\nNone\n", "")
    assert storcli.parse_events(bare + OWN)[-1].text == "Removed: PD 05(e0xfb/s4)"
    head = EVENTS[: EVENTS.index("Events = ")]
    assert storcli.parse_events(head + OWN) == ()


def test_no_event_is_none_and_a_failure_is_a_sentence() -> None:
    assert storcli.parse_events(answer("No events found")) == ()
    with pytest.raises(ToolError, match=r"printed no event: Un-supported command"):
        storcli.parse_events(answer("Un-supported command", "Failure"))
    for of_another_command in (answer("None"), fixture_text("storcli", "volumes.json")):
        with pytest.raises(ToolError, match="printed no event"):
            storcli.parse_events(of_another_command)
    with pytest.raises(ToolError, match="no JSON object"):
        storcli.parse_events("Adapter 0: event log\n")


@settings(max_examples=60, deadline=None)
@given(st.integers(12, 120))
def test_a_description_is_the_same_at_every_width(width: int) -> None:
    def wrap(match: re.Match[str]) -> str:
        lines, line = [], match.group(0)
        while len(line) > width and " " in line[len("Event Description: x") :]:
            cut = line.find(" ", max(width, len("Event Description: x")))
            if cut < 0:
                break
            lines.append(line[:cut])
            line = "  " + line[cut + 1 :]
        return "\n".join([*lines, line])

    changed = re.sub(r"^Event Description: .*$", wrap, EVENTS, flags=re.MULTILINE)
    assert [event.text for event in storcli.parse_events(changed)] == [
        event.text for event in storcli.parse_events(EVENTS)
    ]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("Active 3", "a patrol read is under way (3 drives done)"),
        ("Active", "a patrol read is under way"),
        ("Stopped", ""),
        ("Paused", "a patrol read is under way (Paused)"),
        ("Strolling", "a patrol read is under way (Strolling)"),
    ],
)
def test_a_patrol_read_under_way_is_told_and_so_is_a_state_that_nobody_knows(state: str, said: str) -> None:
    assert storcli.parse_patrol_read(STOPPED.replace("Stopped", state)) == {"0": said}


def test_a_controller_without_patrol_read_does_not_hide_the_other() -> None:
    assert storcli.parse_patrol_read(ACTIVE) == {"0": "a patrol read is under way (3 drives done)"}
    assert storcli.parse_properties(ACTIVE)["0"]["PR MaxConcurrentPd"] == "255"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (fixture_text("storcli", "volumes.json"), "tells no property of controller"),
        (ACTIVE.replace("PR Current State", "PR Novelty"), "does not tell whether a patrol read runs"),
        (ACTIVE.replace("PR Excluded VDs", "PR Mode"), "tells a property of controller 0 twice"),
        ("Adapter 0: Patrol Read Information:\n", "no JSON object"),
    ],
)
def test_another_answer_is_refused(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        storcli.parse_patrol_read(text)


def test_patrol_read_and_rebuild_are_the_controllers_work() -> None:
    rebuilding = fixture_text("storcli", "volumes.json").replace('"Onln"', '"Rbld"', 1)
    shown = fixture_text("storcli", "show_all.json")
    (adapter,) = storcli.parse_adapters(shown)
    calls = [
        Call("storcli64 /call show J nolog", shown),
        Call(f"storcli64 /c{adapter.index}/vall show all J nolog", rebuilding),
        Call(f"storcli64 /c{adapter.index} show patrolread J nolog", ACTIVE),
    ]
    (found,) = storcli.read_background(Replay(calls))
    assert (found.index, found.pci) == (adapter.index, adapter.pci)
    assert any("rebuild is under way" in line for line in found.work)
    assert found.work[-1] == "a patrol read is under way (3 drives done)"


def test_without_a_controller_nothing_more_is_asked() -> None:
    calls = [Call("storcli64 /call show J nolog", fixture_text("storcli", "none.json"))]
    assert storcli.read_background(Replay(calls)) == ()


def test_a_part_that_is_not_told_does_not_hide_the_others() -> None:
    """A rebuild counts although nothing is told of the patrol read, and the other way round."""
    shown = fixture_text("storcli", "show_all.json")
    rebuilding = fixture_text("storcli", "volumes.json").replace('"Onln"', '"Rbld"', 1)
    for volumes, patrol, known, missing in (
        (rebuilding, "odd", "rebuild is under way", "patrol read: storcli printed no JSON object: odd"),
        ("odd", ACTIVE, "a patrol read is under way (3 drives done)", "volumes: storcli printed no JSON object: odd"),
    ):
        calls = [
            Call("storcli64 /call show J nolog", shown),
            Call("storcli64 /c0/vall show all J nolog", volumes),
            Call("storcli64 /c0 show patrolread J nolog", patrol),
        ]
        (found,) = storcli.read_background(Replay(calls))
        assert any(known in line for line in found.work)
        assert found.unread == (missing,)
