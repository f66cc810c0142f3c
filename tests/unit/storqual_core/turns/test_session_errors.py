# SPDX-License-Identifier: Apache-2.0
"""Error counters of iSCSI sessions: of each disk behind one, of a launch once, and none where nobody can be asked."""

from pathlib import Path

import pytest

from storqual_core.guard.writes import end_line
from storqual_core.host.counters import CounterSnapshot, differences
from storqual_core.turns.session_errors import errors_together, read_counted_disks, with_errors
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import LUN, FabricTree
from tests.support.replay import Tools
from tests.support.tool_fixtures import fixture_text

TEXT = fixture_text("iscsiadm", "statistics_two.txt")
LATER = TEXT.replace("digest_err: 17", "digest_err: 20").replace("eh_abort_cnt: 3", "eh_abort_cnt: 4")


def tools(text: str) -> Tools:
    return Tools({"iscsiadm -m session -s": text})


@pytest.fixture
def tree(tmp_path: Path) -> FabricTree:
    """Two LUNs behind one session, one behind another, a LUN of FC."""
    tree = FabricTree(tmp_path).session().session(12, host=4, address="192.0.2.2").fc_port().remote_port()
    tree.lun("sdb", through="session1", hctl="3:0:0:0")
    tree.lun("sdc", through="session1", hctl="3:0:0:1", wwn=LUN[:-1] + "d", serial="APM2")
    tree.lun("sdd", through="session12", hctl="4:0:0:0", wwn=LUN[:-1] + "e", serial="APM3")
    return tree.lun("sda", wwn=LUN[:-1] + "f", serial="APM4")


def test_a_batch_has_what_the_session_of_each_disk_counted_meanwhile(tree: FabricTree) -> None:
    before, after = (read_counted_disks(tree.machine, state_dir=STATE, runner=tools(text)) for text in (TEXT, LATER))
    grown = {name: line["errors"] for name, line in end_line(before, after, {LUN}).items()}
    moved = {"iscsi_digest_err": 3, "iscsi_timeout_err": 0, "iscsi_eh_abort_cnt": 1}
    assert {name: grown[name] for name in ("sdb", "sdc")} == {"sdb": moved, "sdc": moved}
    assert grown["sdd"]["iscsi_digest_err"] == 0
    assert not [name for name in grown["sda"] if name.startswith("iscsi")]


def test_a_session_counts_once_for_a_launch_however_many_disks_it_leads_to(tree: FabricTree) -> None:
    assert errors_together(tree.machine, tools(TEXT), ["sdb", "sdc"])["iscsi_digest_err"] == 17
    assert errors_together(tree.machine, tools(TEXT), ["sdb", "sdc", "sdd"])["iscsi_digest_err"] == 17 + 47
    tree.stacked("dm-0", ["sdb", "sdd"], title="mpatha", uuid="mpath-1")
    assert errors_together(tree.machine, tools(TEXT), ["dm-0"])["iscsi_digest_err"] == 17 + 47


def test_nothing_is_counted_where_nobody_can_be_asked(tree: FabricTree) -> None:
    assert errors_together(tree.machine, tools(TEXT), ["sda"]) == {}
    assert errors_together(tree.machine, Tools({}), ["sdb"]) == {}
    assert errors_together(tree.machine, tools(TEXT.partition("Stats for session [sid: 12")[2]), ["sdb"]) == {}
    # the second session does not print it
    assert "iscsi_eh_abort_cnt" not in errors_together(
        tree.machine, tools(TEXT.rpartition("iSCSI Extended")[0]), ["sdb", "sdd"]
    )


def test_a_launch_has_them_among_the_counters_of_its_window(tree: FabricTree) -> None:
    quiet = CounterSnapshot(0, 1, {}, None, None, None, None, errors={"ioerr_cnt": 2})
    counts = [errors_together(tree.machine, tools(text), ["sdb"]) for text in (TEXT, LATER)]
    before, after = (with_errors(quiet, counted) for counted in counts)
    assert before is not None
    assert after is not None
    delta = differences(before, after)
    assert (delta["error_iscsi_digest_err"], delta["error_iscsi_timeout_err"], delta["error_ioerr_cnt"]) == (3, 0, 0)
    assert with_errors(None, counts[0]) is None
