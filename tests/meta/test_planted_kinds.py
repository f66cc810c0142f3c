# SPDX-License-Identifier: Apache-2.0
"""The table of planted defects and the layer know each other: what is drawn can be loaded, and is drawn anew."""

from __future__ import annotations

import re

import pytest

from tests.support.planted_driver import MODULE, SOURCE
from tests.support.planted_kinds import Kind, all_kinds, drawn_kinds

LAYER = (SOURCE / f"{MODULE}.c").read_text(encoding="utf-8")
OWN = frozenset(re.findall(r"^CONDITION\((\w+),", LAYER, re.MULTILINE)) | {"every"}


def listed(array: str) -> list[str]:
    """The names in an array of the layer."""
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
