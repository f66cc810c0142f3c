# SPDX-License-Identifier: Apache-2.0
"""A release names one version everywhere, and the formats that it promises to read are those that the code writes."""

import re
import tomllib
from pathlib import Path

import pytest

from storqual import __version__
from tests.support.planted_driver import MODULE, SOURCE, Kind, all_kinds, drawn_kinds

REPOSITORY = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
NAMES_WHEEL = ("README.md", "docs/tutorial/local-files.md", "docs/how-to/technician/ansible.md")


def test_one_version_is_named_everywhere() -> None:
    assert __version__ == VERSION
    for page in NAMES_WHEEL:
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        assert set(re.findall(r"storqual-(?:bench-)?(\d+\.\d+\.\d+)", text)) == {VERSION}, page


def test_the_changelog_begins_with_a_dated_section_of_this_version() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    (first, *_) = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", text, re.MULTILINE)
    assert first[0] == "Unreleased" or (first[0] == VERSION and first[1]), first
    assert re.search(rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d{{2}}-\d{{2}}$", text, re.MULTILINE)


def test_every_format_has_its_number_in_the_list_that_is_kept() -> None:
    form = re.compile(r"\bstorqual\.[a-z_]+/[0-9]+\b")
    library = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "library").rglob("*.py"))
    written = {found for text in library for found in re.findall(r'"(storqual\.[a-z_]+/[0-9]+)"', text)}
    listed = set(form.findall((REPOSITORY / "docs/reference/run-files.md").read_text(encoding="utf-8")))
    assert written == listed


LAYER = (SOURCE / f"{MODULE}.c").read_text(encoding="utf-8")
OWN = frozenset(re.findall(r"^CONDITION\((\w+),", LAYER, re.MULTILINE)) | {"every"}


def listed(array: str) -> list[str]:
    text = LAYER.partition(f"const {array}[] = {{")[2].partition("}")[0]
    return re.findall(r'"(\w+)"', text)


@pytest.mark.parametrize("kind", all_kinds().values(), ids=lambda kind: kind.name)
def test_a_kind_is_what_the_layer_can_do(kind: Kind) -> None:
    assert kind.on in listed("commands")
    assert kind.act in listed("acts")
    assert kind.profile in ("quick", "full")
    for seed in range(20):
        drawn = kind.parameters(seed)
        assert drawn.keys() <= OWN
        assert drawn == kind.parameters(seed)
        assert all(drawn[name] >= 0 for name in drawn)
    # what a load could know beforehand is no drawing
    ranges = [tuple(limits) for limits in kind.draw.values()]
    assert len({kind.words(seed) for seed in range(60)}) > 1 or all(low == high for low, high in ranges)


def test_the_names_of_the_layer_are_in_the_order_of_its_numbers() -> None:
    """`match_string` gives a number, and the enumeration says what it means."""
    acts = LAYER.partition("\nenum act {")[2].partition("}")[0]
    assert re.findall(r"\w+", acts.lower()) == listed("acts")
    commands = LAYER.partition("\nenum command {")[2].partition("}")[0]
    plurals = {"write": "writes", "read": "reads", "flush": "flushes", "discard": "discards", "zero": "zeroes"}
    assert re.findall(r"\w+", commands.lower()) == [plurals.get(name, name) for name in listed("commands")]


def test_there_are_enough_kinds_and_another_seed_draws_others() -> None:
    assert len(all_kinds()) >= 25
    assert {kind.name for kind in drawn_kinds(1, 6)} != {kind.name for kind in drawn_kinds(2, 6)}
    every = drawn_kinds(1, 200)
    assert {kind.name for kind in every} == {
        kind.name for kind in all_kinds().values() if kind.profile == "quick" and not kind.lacks
    }
