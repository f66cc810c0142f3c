# SPDX-License-Identifier: Apache-2.0
"""multipath: both layouts, states by who says them, and no path that belongs to another map."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import multipath
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

TREE = fixture_text("multipath", "tree.txt")


def maps(name: str) -> tuple[multipath.MultipathMap, ...]:
    return multipath.parse_maps(fixture_text("multipath", name))


def test_maps_have_alias_wwid_and_device_and_paths_their_states() -> None:
    data, plain = multipath.read_maps(Replay([Call("multipath -ll", TREE)]))
    assert (data.name, data.wwid, data.node) == ("data", "3600d0230000000000e13955cc3757800", "dm-1")
    assert (data.product, data.policy, data.features) == (
        "EXAMPLE ARRAY 1000",
        "service-time 0",
        "1 queue_if_no_path",
    )
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


def test_the_former_layout_is_read() -> None:
    (found,) = maps("brackets.txt")
    assert (found.name, found.node, found.policy, found.handler) == ("mpath2", "dm-1", "round-robin 0", "0")
    assert found.features == "1 queue_if_no_path"
    assert [(path.device, path.kernel, path.checker, path.usable) for path in found.paths] == [
        ("sdc", "active", "ready", True),
        ("sdd", "failed", "faulty", False),
    ]


def test_a_group_in_brackets_within_the_tree_is_read() -> None:
    text = TREE.replace(
        "policy='service-time 0' prio=50 status=active", "selector='queue-length 0' [prio=3][status=active]"
    )
    data = multipath.parse_maps(text)[0]
    assert (data.policy, data.paths[0].priority, data.paths[0].group) == ("queue-length 0", 3, "active")


def test_what_is_not_known_yet_is_not_told() -> None:
    (found,) = maps("just_made.txt")
    assert (found.name, found.node) == ("mpatha", "")
    assert [(path.number, path.kernel, path.priority, path.usable) for path in found.paths] == [
        ("", "failed", None, False),
        ("8:16", "undef", None, True),
    ]


def test_namespaces_and_a_map_without_paths_are_maps() -> None:
    (found,) = maps("nvme.txt")
    assert [path.device for path in found.paths] == ["nvme0n2", "nvme1n2"]
    assert [found.paths for found in maps("no_paths.txt")] == [()]


def test_nothing_printed_is_no_map_and_log_lines_are_none() -> None:
    assert multipath.parse_maps("") == ()
    assert multipath.parse_maps("Mar 09 13:03:26 | sdx: using deprecated getuid callout\n\n") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("| `- 6:0:0:0 sdb 8:16 active ready running\n", "printed no map first"),
        ("NAME MAJ:MIN RM SIZE RO TYPE\nsda 8:0 0 20G 0 disk\n", "printed no map first"),
        ("DM multipath kernel driver not loaded\n", "printed no map first"),
        (TREE + TREE[TREE.index("data (") :], "lists the map 3600d0230000000000e13955cc3757800 twice"),
    ],
)
def test_another_text_is_refused(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        multipath.parse_maps(text)


def test_a_line_that_is_not_understood_is_kept_with_its_map_and_hides_no_other() -> None:
    odd = TREE.replace("| `- 7:0:0:0", "| `- seven")
    data, plain = multipath.parse_maps(odd)
    assert data.notes == ("| `- seven sdaf 65:240 failed faulty offline",)
    assert ([path.device for path in data.paths], len(plain.paths)) == (["sdb", "sdc"], 2)


def test_a_tool_that_fails_is_a_sentence() -> None:
    with pytest.raises(ToolError, match="maps cannot be listed: need to be root"):
        multipath.read_maps(Replay([Call("multipath -ll", rc=1, stderr="need to be root")]))


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
