# SPDX-License-Identifier: Apache-2.0
"""iscsiadm: counters of every session and what the daemon does with it; what is cut is refused, no secret is kept."""

from pathlib import Path

import pytest

from storqual_core.facts.bench_facts import read_facts
from storqual_core.kit.errors import ToolError
from storqual_core.tools.iscsiadm import parse_sessions, parse_statistics, read_sessions, read_statistics
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import FabricTree
from tests.support.replay import Call, Replay, Tools
from tests.support.tool_fixtures import fixture_text

TWO = fixture_text("iscsiadm", "statistics_two.txt")
SESSIONS = fixture_text("iscsiadm", "sessions.txt")
ASKED = "iscsiadm -m session -P 3"


def test_counters_belong_to_their_session() -> None:
    found = parse_statistics(TWO)
    assert list(found) == ["session1", "session12"]
    assert (found["session1"]["digest_err"], found["session12"]["timeout_err"]) == (17, 48)
    assert found["session1"]["eh_abort_cnt"] == 3


@pytest.mark.parametrize("text", [TWO.rpartition("\tdigest_err")[0], TWO + TWO, "iscsiadm: can not connect"])
def test_what_is_cut_or_told_twice_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        parse_statistics(text)


def test_sessions_of_one_target_are_told_apart_with_their_disks() -> None:
    found = read_sessions(Replay([Call(ASKED, SESSIONS)]))
    assert [(name, each["connection"], each["daemon"], each["disks"]) for name, each in found.items()] == [
        ("session1", "LOGGED IN", "NO CHANGE", {"sdb": "running", "sdc": "running"}),
        ("session2", "TRANSPORT WAIT", "REOPEN", {"sdd": "blocked"}),
        ("session12", "LOGGED IN", "NO CHANGE", {}),
    ]
    assert [each["target"][-2:] for each in found.values()] == ["t1", "t1", "t2"]
    assert "hidden" not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iscsiadm: can not connect",
        SESSIONS.partition("\t\tInternal iscsid")[0],
        SESSIONS.replace("SID: 12", "SID: 2"),
        SESSIONS.partition("Target: ")[2].partition("\n")[2],
        SESSIONS.replace("\t\tiSCSI Connection State: TRANSPORT WAIT\n", ""),
    ],
)
def test_sessions_that_are_cut_or_told_twice_are_refused(text: str) -> None:
    with pytest.raises(ToolError):
        parse_sessions(text)


def test_what_the_daemon_has_under_way_is_a_condition(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.session().session(2, host=4, address="192.0.2.2")
    runner = Tools({"iscsiadm -m session -s": TWO, ASKED: SESSIONS})
    facts = read_facts(tree.machine, state_dir=STATE, runner=runner, deep=True)
    assert [session["daemon"]["daemon"] for session in facts["iscsi_sessions"]] == ["NO CHANGE", "REOPEN"]
    told = [sentence for sentence in facts["conditions"] if sentence.startswith("iSCSI session2")]
    assert ["REOPEN" in told[0], "sdd is blocked" in told[1], len(told)] == [True, True, 2]
    assert not [sentence for sentence in facts["conditions"] if sentence.startswith("iSCSI session1")]


def test_no_session_is_no_failure() -> None:
    assert read_sessions(Replay([Call(ASKED, stderr="No active sessions.", rc=21)])) == {}
    assert read_statistics(Replay([Call("iscsiadm -m session -s", stderr="No active sessions.", rc=21)])) == {}


def test_deep_facts_have_the_counters_beside_the_session(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.session().session(2, host=4, address="192.0.2.2")
    runner = Tools({"iscsiadm -m session -s": TWO})
    facts = read_facts(tree.machine, state_dir=STATE, runner=runner, deep=True)
    assert [session["statistics"].get("digest_err") for session in facts["iscsi_sessions"]] == [17, None]
    assert "iSCSI sessions: iscsiadm does not know session2, which the kernel has" in facts["unread"]
