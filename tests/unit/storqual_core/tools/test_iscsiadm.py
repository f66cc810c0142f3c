# SPDX-License-Identifier: Apache-2.0
"""iscsiadm: the counters of every session, each under its own; what is cut is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storqual_core.facts.bench_facts import read_facts
from storqual_core.kit.errors import ToolError
from storqual_core.tools.iscsiadm import parse_statistics, read_statistics
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import FabricTree
from tests.support.replay import Call, Replay, Tools
from tests.support.tool_fixtures import fixture_text

if TYPE_CHECKING:
    from pathlib import Path

TWO = fixture_text("iscsiadm", "statistics_two.txt")


def test_counters_belong_to_their_session() -> None:
    found = parse_statistics(TWO)
    assert list(found) == ["session1", "session12"]
    assert (found["session1"]["digest_err"], found["session12"]["timeout_err"]) == (17, 48)
    assert found["session1"]["eh_abort_cnt"] == 3
    former = parse_statistics(fixture_text("iscsiadm", "statistics_former_release.txt"))
    assert former["session3"]["digest_err"] == 17


@pytest.mark.parametrize("text", [TWO.rpartition("\tdigest_err")[0], TWO + TWO, "iscsiadm: can not connect"])
def test_what_is_cut_or_told_twice_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        parse_statistics(text)


def test_no_session_is_no_failure() -> None:
    assert read_statistics(Replay([Call("iscsiadm -m session -s", stderr="No active sessions.", rc=21)])) == {}


def test_deep_facts_have_the_counters_beside_the_session(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.session().session(2, host=4, address="192.0.2.2")
    runner = Tools({"iscsiadm -m session -s": TWO})
    facts = read_facts(tree.machine, state_dir=STATE, runner=runner, deep=True)
    assert [session["statistics"].get("digest_err") for session in facts["iscsi_sessions"]] == [17, None]
    assert "iSCSI sessions: iscsiadm does not know session2, which the kernel has" in facts["unread"]
