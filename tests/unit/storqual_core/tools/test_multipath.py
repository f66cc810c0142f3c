# SPDX-License-Identifier: Apache-2.0
"""multipath: the daemon's JSON and the tree, states by who says them, and no path that belongs to another map."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import multipath
from tests.support.replay import Call, Replay, Tools
from tests.support.tool_fixtures import fixture_text

TREE = fixture_text("multipath", "tree.txt")
TOPOLOGY = fixture_text("multipath", "topology.json")
CONFIG = fixture_text("multipath", "config.txt")
SHOW = "multipathd show maps json"
NATIVE = "eui.0025 [nvme]:nvme0n1 NVMe,EXAMPLE,1.0\nsize=2097152 features='n/a' hwhandler='ANA' wp=rw\n"


def test_maps_have_alias_wwid_and_device_and_paths_their_states() -> None:
    data, plain = multipath.read_maps(Replay([Call(SHOW, rc=1), Call("multipath -ll", TREE + NATIVE)]))
    assert (data.name, data.wwid, data.node) == ("data", "3600d0230000000000e13955cc3757800", "dm-1")
    assert (data.product, data.policy) == ("EXAMPLE ARRAY 1000", "service-time 0")
    assert data.features == "1 queue_if_no_path"
    assert [(path.device, path.number, path.kernel, path.checker, path.online) for path in data.paths] == [
        ("sdb", "8:16", "active", "ready", "running"),
        ("sdaf", "65:240", "failed", "faulty", "offline"),
        ("sdc", "8:32", "active", "i/o pending", "running"),
    ]
    assert [(path.priority, path.group, path.usable) for path in data.paths] == [
        (50, "active", True),
        (50, "active", False),
        (10, "enabled", False),
    ]
    # a map without an alias is named by its WWID
    assert (plain.name, plain.wwid, plain.product) == ("35000c50015ea0000", "35000c50015ea0000", "EXAMPLE DISK9")
    assert [path.device for path in plain.paths] == ["sdd", "sde"]
    low, high = plain.size_range or (0, 0)
    assert low < 2_000_398_934_016 < high


def test_the_daemon_tells_the_same_and_what_it_counts() -> None:
    asked = Replay([Call(SHOW, TOPOLOGY)])
    data, plain = multipath.read_maps(asked)
    asked.done()
    assert (data.name, data.wwid, data.node) == ("data", "3600d0230000000000e13955cc3757800", "dm-1")
    # the policy is that of the active group, wherever it stands
    assert (data.product, data.policy, data.handler) == ("EXAMPLE ARRAY 1000", "service-time 0", "1 alua")
    assert (data.queueing, data.path_faults, data.queue_timeouts) == ("12 chk", 7, 1)
    assert [(path.device, path.number, path.priority, path.group, path.usable) for path in data.paths] == [
        ("sdc", "8:32", 10, "enabled", False),
        ("sdb", "8:16", 50, "active", True),
        ("sdaf", "65:240", 50, "active", False),
    ]
    assert [(path.kernel, path.checker, path.online, path.checked_by) for path in data.paths][2] == (
        ("failed", "faulty", "offline", "tur")
    )
    assert (plain.queueing, plain.policy) == ("", "queue-length 0")
    (former,) = multipath.parse_topology(fixture_text("multipath", "topology_former_release.json"))
    assert (former.policy, former.path_faults, former.paths[0].usable) == ("round-robin 0", 1, False)
    assert multipath.parse_topology(fixture_text("multipath", "topology_no_maps.json")) == ()


@pytest.mark.parametrize(
    "text",
    [
        TOPOLOGY.replace('"group": 2', '"group": 3'),
        TOPOLOGY.replace('"paths": 2,', '"paths": 4,'),
        TOPOLOGY.replace('"paths": 2,', ""),
        TOPOLOGY.replace('"dev": "sdb"', '"dev": ""'),
        TOPOLOGY.replace('"name": "data"', '"name": null'),
        TOPOLOGY.replace("35000c50015ea0000", "3600d0230000000000e13955cc3757800"),
        TOPOLOGY[: len(TOPOLOGY) // 2],
        '{"major_version": 0}',
        "timeout",
    ],
)
def test_an_answer_of_the_daemon_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        multipath.parse_topology(text)


def test_without_a_daemon_the_maps_are_listed_by_multipath_itself() -> None:
    for answer in (Call(SHOW, "fail\n"), Call(SHOW, stderr="error receiving packet", rc=1)):
        assert len(multipath.read_maps(Replay([answer, Call("multipath -ll", TREE)]))) == 2
    assert len(multipath.read_maps(Tools({"multipath -ll": TREE}))) == 2


def test_overrides_are_those_of_all_devices_and_no_others() -> None:
    assert multipath.read_overrides(Replay([Call("multipathd show config", CONFIG)])) == {
        "path_selector": "queue-length 0",
        "path_checker": "directio",
        "no_path_retry": "12",
        "fast_io_fail_tmo": "off",
        "dev_loss_tmo": "infinity",
    }
    assert multipath.parse_overrides("defaults {\n\tverbosity 2\n}\noverrides {\n}\n") == {}


@pytest.mark.parametrize(
    "text", ["", "ok\n", CONFIG.rpartition("}")[0], CONFIG.replace("defaults", "other"), CONFIG + "timeout\n"]
)
def test_a_configuration_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        multipath.parse_overrides(text)


def test_a_daemon_that_does_not_run_is_a_sentence_with_its_remedy() -> None:
    with pytest.raises(ToolError, match="systemctl start multipathd"):
        multipath.read_overrides(Replay([Call("multipathd show config", rc=1)]))
    with pytest.raises(ToolError, match="did not take its configuration: timeout"):
        multipath.reconfigure(Replay([Call("multipathd reconfigure", "timeout\n")]))


def test_nothing_printed_is_no_map_and_log_lines_are_none() -> None:
    assert multipath.parse_maps("") == ()
    assert multipath.parse_maps("Mar 09 13:03:26 | sdx: using deprecated getuid callout\n\n") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("| `- 6:0:0:0 sdb 8:16 active ready running\n", "printed no map first"),
        ("NAME MAJ:MIN RM SIZE RO TYPE\nsda 8:0 0 20G 0 disk\n", "printed no map first"),
        ("DM multipath kernel driver not loaded\n", "printed no map first"),
        (TREE + "one, two dm-9 EXAMPLE,ARRAY\nsize=1.0G features='0' hwhandler='0' wp=rw\n", "tells two sizes of"),
        (TREE + TREE[TREE.index("data (") :], "lists the map 3600d0230000000000e13955cc3757800 twice"),
    ],
)
def test_another_text_is_refused(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        multipath.parse_maps(text)


def test_a_line_that_is_not_understood_is_kept_with_its_map_and_hides_no_other() -> None:
    odd = TREE.replace("| `- 7:0:0:0", "| `- seven").replace("size=", '[queueing="9"][rw]\nsize=', 1)
    data, plain = multipath.parse_maps(odd)
    assert data.notes == ('[queueing="9"][rw]', "| `- seven sdaf 65:240 failed faulty offline")
    assert ([path.device for path in data.paths], len(plain.paths)) == (["sdb", "sdc"], 2)


def test_a_tool_that_fails_is_a_sentence() -> None:
    with pytest.raises(ToolError, match="maps cannot be listed: need to be root"):
        multipath.read_maps(Replay([Call(SHOW, rc=1), Call("multipath -ll", rc=1, stderr="need to be root")]))


WORDS = st.sampled_from(["active", "failed", "undef"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.tuples(WORDS, st.sampled_from(["ready", "faulty", "ghost"])), max_size=5), max_size=4))
def test_every_path_is_of_the_map_above_it(states: list[list[tuple[str, str]]]) -> None:
    text, number = "", 0
    for place, paths in enumerate(states):
        text += f"mpath{place} (3600{place}) dm-{place} EXAMPLE,ARRAY\nsize=1.0G features='0' hwhandler='0' wp=rw\n"
        text += "`-+- policy='service-time 0' prio=1 status=active\n"
        for kernel, checker in paths:
            number += 1
            text += f"  |- {number}:0:0:0 sd{number} 8:{number} {kernel} {checker} running\n"
    found = multipath.parse_maps(text)
    assert [[(path.kernel, path.checker) for path in each.paths] for each in found] == states
