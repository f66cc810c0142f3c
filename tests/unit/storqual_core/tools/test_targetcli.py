# SPDX-License-Identifier: Apache-2.0
"""targetcli: the tree of what a bench serves, with every count of it compared with what is listed."""

import re
from pathlib import Path

import pytest
from hypothesis import given

from storqual_core.facts.bench_facts import read_facts
from storqual_core.kit.errors import ToolError
from storqual_core.tools.targetcli import parse_tree
from tests.support.bench_tree import STATE, BenchTree
from tests.support.mangle import mangled
from tests.support.replay import Tools
from tests.support.tool_fixtures import fixture_text, fixture_texts

TWO = fixture_text("targetcli", "iscsi_two_targets.txt")
TARGET = "/iscsi/iqn.2003-01.org.linux-iscsi.bench.x8664:sn.4ab1b4c0ffee"


def test_every_kind_of_node_is_read_at_its_place() -> None:
    found = {node.path: node.summary for node in parse_tree(TWO)[0]}
    assert found["/backstores/block/vol/alua/default_tg_pt_gp"] == "ALUA state: Active/optimized"
    assert found[f"{TARGET}/tpg1/acls/iqn.1994-05.com.redhat:e284d5815301/mapped_lun1"] == "lun1 fileio/f (rw)"
    assert found[f"{TARGET}/tpg2/portals/[2001:db8::1]:3260"] == "iser"
    assert found[f"{TARGET}/tpg1/portals/0.0.0.0:3260"] == "OK"
    assert (found["/"], found["/loopback"], len(found)) == ("...", "Targets: 0", TWO.count("o- "))
    fc = {node.path: node.summary for node in parse_tree(fixture_text("targetcli", "fc.txt"))[0]}
    assert fc["/tcm_fc/naa.2000020000000002/luns/lun1"] == "fileio/disk1 (/var/tmp/lun1) (second)"
    former = {node.path: node.summary for node in parse_tree(fixture_text("targetcli", "former_release.txt"))[0]}
    assert former["/iscsi/iqn.2003-01.org.example:t1/tpgt1/luns/lun0"] == "fileio/f (/srv/f.img)"


@pytest.mark.parametrize("file", ["iscsi_coloured.txt", "iscsi_two_targets_narrow.txt", "iscsi_with_warning.txt"])
def test_colours_width_and_a_warning_change_nothing(file: str) -> None:
    nodes, notes = parse_tree(fixture_text("targetcli", file))
    assert nodes == parse_tree(TWO)[0]
    assert len(notes) == file.count("warning")


@pytest.mark.parametrize("text", [each for each in fixture_texts("targetcli") if "o- " in each])
def test_a_count_that_is_not_that_of_the_list_is_refused(text: str) -> None:
    """Each count of each text is raised by one; where a line is lost its count is not that of the list either."""
    counts = list(re.finditer(r"(?<=[sA-Z]: )\d+(?=.{0,4}\])|(?<=\[)\d+(?= [A-Z])", text))
    assert counts
    for count in counts:
        with pytest.raises(ToolError, match="and lists"):
            parse_tree(text[: count.start()] + str(int(count[0]) + 1) + text[count.end() :])


@pytest.mark.parametrize("text", ["", TWO + TWO, "o- / . [...]" + 2 * "\n  o- a . [...]", TWO[TWO.index("\n") :]])
def test_what_comes_twice_or_hangs_on_nothing_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        parse_tree(text)


@given(mangled(fixture_texts("targetcli")))
def test_every_line_of_a_tree_is_a_node_or_a_note(text: str) -> None:
    try:
        nodes, notes = parse_tree(text)
    except ToolError:
        return
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert len(nodes) + len(notes) == sum(bool(line.strip()) for line in plain.splitlines())


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("iscsi_broken_links.txt", ["BROKEN LUN LINK", "BROKEN STORAGE LINK"]),
        ("iscsi_invalid_wwn.txt", ["INVALID WWN", "disabled"]),
        ("loopback_vhost.txt", []),
    ],
)
def test_deep_facts_say_what_the_bench_serves_and_what_nobody_can_use(
    file: str, told: list[str], tmp_path: Path
) -> None:
    tree = BenchTree(tmp_path)
    runner = Tools({"targetcli ls": fixture_text("targetcli", file)})
    facts = read_facts(tree.machine, state_dir=STATE, runner=runner, deep=True)
    assert facts["served"] == {}
    tree.write("/sys/kernel/config/target/core/fileio_0/hba_info", "\n")
    facts = read_facts(tree.machine, state_dir=STATE, runner=runner, deep=True)
    conditions = [sentence for sentence in facts["conditions"] if sentence.startswith("target /")]
    assert [sentence.rpartition(": ")[2] for sentence in conditions] == told
    assert facts["served"]["/backstores"] == "..."
