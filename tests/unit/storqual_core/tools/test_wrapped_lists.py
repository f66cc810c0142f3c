# SPDX-License-Identifier: Apache-2.0
"""A list belongs to its object however it is wrapped: members of a volume, devices of an array, facts of a drive."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import TOOLS, arcconf, mdadm, mvcli, sas3ircu
from tests.support.wrapped_lists import WrappedList, lists_of, wrappings
from tests.unit.storqual_core.tools.test_recordings import MET

FIXTURES = Path(__file__).parent / "fixtures"
SINGLE = Path(__file__).with_name("single_case")
RECORDED = Path(os.environ.get("STORQUAL_TRANSCRIPTS") or Path(__file__).parents[5] / "shared" / "transcripts")
PARSERS = json.loads(Path(__file__).with_name("wrapped_parsers.json").read_text(encoding="utf-8"))
"""The parsers of texts for people, by tool: what stands in JSON, or in one line a row, is not wrapped."""


def objects_of(found: Any) -> Any:
    """What was read, without the lines that were handed back."""
    if is_dataclass(found) and hasattr(found, "notes"):
        return replace(found, notes=())  # type: ignore[type-var]
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], tuple) and isinstance(found[0], tuple):
        found = found[0]
    if isinstance(found, tuple):
        return tuple(replace(each, lines=()) if hasattr(each, "lines") else each for each in found)
    return found


def texts() -> Iterator[tuple[str, str, Path]]:
    """Every text in the tree, and every recording that is here, with the parser that reads it."""
    named = [(tool, path) for tool in PARSERS for path in sorted((FIXTURES / tool).iterdir())]
    named += [(tool, RECORDED / name) for name, (tool, _, refused) in MET.items() if tool in PARSERS and not refused]
    for tool, path in named:
        for parser in PARSERS[tool] if path.is_file() and path.suffix == ".txt" else ():
            try:
                getattr(TOOLS[tool](), parser)(text_of(path))
            except ToolError:
                continue
            yield tool, parser, path


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def misread(parse: Callable[[str], Any], wrapped: WrappedList) -> str:
    """How a wrapped list was read otherwise than one that is not; empty when it was read the same."""
    try:
        same = objects_of(parse(wrapped.wrapped)) == objects_of(parse(wrapped.plain))
    except ToolError as problem:
        return f"{wrapped.how}: {problem}"
    return "" if same else f"{wrapped.how}: other objects"


@pytest.mark.parametrize(("tool", "parser", "path"), list(texts()), ids=lambda value: getattr(value, "name", value))
def test_a_list_is_read_to_its_end_however_it_is_wrapped(tool: str, parser: str, path: Path) -> None:
    parse, text = getattr(TOOLS[tool](), parser), text_of(path)
    every = [(place, match) for place, match in lists_of(text) if not match["front"].startswith("SAS")]
    if not every:
        # a text of single values
        return

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        ways = list(wrappings(text, *data.draw(st.sampled_from(every))))
        assert not ways or misread(parse, data.draw(st.sampled_from(ways))) == ""

    check()


ARCCONF = (SINGLE / "arcconf_wrapped.txt").read_text(encoding="utf-8")
MVCLI = (SINGLE / "mvcli_wrapped.txt").read_text(encoding="utf-8")
MDSTAT = (SINGLE / "mdstat_wrapped.txt").read_text(encoding="utf-8")
EIGHT: dict[str, tuple[Callable[[str], Any], str, list[str], Callable[[Any], Any]]] = {
    "arcconf": (
        arcconf.parse_config,
        ARCCONF,
        [f"0,{number}" for number in range(8)],
        lambda it: it.adapters[0].volumes,
    ),
    "mvcli": (mvcli.parse_volumes, MVCLI, [str(number) for number in range(8)], lambda it: it),
    "mdadm": (
        mdadm.parse_arrays,
        MDSTAT,
        [f"sd{'abcdefgh'[number]}[{number}]" for number in range(8)],
        lambda it: it,
    ),
}
"""Two volumes of each tool, one of eight members: parser, text, the members as printed, volumes of what was read."""


def lines_of(items: list[str], per_line: int, before: str) -> str:
    """Items with so many in a line."""
    return f"\n{before}".join(" ".join(items[at : at + per_line]) for at in range(0, len(items), per_line))


@pytest.mark.parametrize("before", ["\t", " " * 24, "      : "], ids=["a tab", "blanks", "a colon"])
@pytest.mark.parametrize("tool", EIGHT)
def test_all_eight_members_of_a_volume_are_read(tool: str, before: str) -> None:
    parse, text, items, volumes = EIGHT[tool]
    if tool == "mdadm" and ":" in before:
        return
    for per_line in range(1, 9):
        big, small = volumes(parse(text.format(list=lines_of(items, per_line, before))))
        assert (len(big.members), big.unread, big.healthy) == (8, "", True)
        assert (len(small.members), small.healthy) == (2, True)


@pytest.mark.parametrize("tool", EIGHT)
def test_a_volume_with_fewer_members_than_it_says_does_not_hide_its_neighbour(tool: str) -> None:
    parse, text, items, volumes = EIGHT[tool]
    for count in range(8):
        big, small = volumes(parse(text.format(list=" ".join(items[:count]))))
        assert (bool(big.unread), big.healthy) == (True, None), count
        assert (len(small.members), small.unread, small.healthy) == (2, "", True)
    big, _ = volumes(parse(text.format(list=" ".join([*items[:7], items[0]]))))
    assert (bool(big.unread), big.healthy) == (True, None)


IR = (FIXTURES / "sas3ircu" / "display.txt").read_text(encoding="utf-8")


def test_a_member_that_is_missing_between_two_is_missed() -> None:
    """Segments and phys are numbered: a list that leaves one out is not whole."""
    (adapter,) = sas3ircu.parse_display(IR.replace("PHY[1]", "PHY[2]")).adapters
    assert "lists the members [0, 2]" in adapter.volumes[0].unread
    assert (adapter.volumes[0].members, len(adapter.drives), adapter.drives[0].unread) == ((), 1, "")
    text = (FIXTURES / "arcconf" / "getconfig.txt").read_text(encoding="utf-8")
    (adapter,) = arcconf.parse_config(text.replace("Group 0, Segment 1", "Group 0, Segment 2")).adapters
    assert "segments of group 0 are missing" in adapter.volumes[0].unread
    assert (adapter.volumes[0].members, adapter.volumes[0].healthy, len(adapter.drives)) == ((), None, 2)
