# SPDX-License-Identifier: Apache-2.0
"""What the next release of a vendor's tool may print is read right, or refused, and never read wrong."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import TOOLS
from storqual_core.tools.capabilities import VolumeFacts
from tests.support.next_release import Variant, variants, wrongly_read
from tests.unit.storqual_core.tools.test_recordings import MET

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent / "fixtures"
RECORDED = Path(os.environ.get("STORQUAL_TRANSCRIPTS") or Path(__file__).parents[5] / "shared" / "transcripts")
# the parsers whose answers are facts, by the folder of their outputs
FACTS = json.loads(Path(__file__).with_name("fact_parsers.json").read_text(encoding="utf-8"))


def texts() -> list[tuple[str, str, Path]]:
    """Every in-tree output and every recording that is here, with the parser that meets it."""
    found = [
        (tool, parser, path)
        for tool, parsers in FACTS.items()
        for path in sorted((FIXTURES / tool).iterdir())
        for parser in parsers
        # never met: each is of another option
        if (parser, path.name) not in (("parse_devices", "t.txt"), ("parse_transports", "g.txt"))
    ]
    recorded = [(tool, parser, RECORDED / name) for name, (tool, parser, refused) in MET.items() if not refused]
    return found + [
        (tool, name, path) for tool, name, path in recorded if name in FACTS.get(tool, ()) and path.is_file()
    ]


def read(parse: Callable[[str], Any], text: str) -> Any:
    """What a parser makes of a text, without the lines that it hands back; nothing when it refuses it."""
    try:
        found = parse(text)
    except ToolError:
        return None
    with_lines = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], tuple)
    return found[0] if with_lines else found


@pytest.mark.parametrize(("tool", "parser", "path"), texts(), ids=lambda value: getattr(value, "name", value))
def test_a_next_release_is_read_right_or_refused(tool: str, parser: str, path: Path) -> None:
    parse = getattr(TOOLS[tool](), parser)
    text = path.read_bytes().decode("utf-8", "replace")
    right = read(parse, text)
    if right is None:
        # refused as it is: what is printed around it makes it no answer
        assert all(read(parse, f"{text}\n{more}") is None for more in ("", "a line of a newer build"))
        return
    wrong = [
        problem
        for variant in variants(text)
        for found in [read(parse, variant.text)]
        if found is not None
        for problem in wrongly_read(right, found, variant)
    ]
    assert wrong == []


# what the tools call a volume that is well, and what a release may call it that nobody knows yet
GOOD = (
    *(("Optl", "Nvlt"), ("Optimal", "Novelty"), ("Status: OK", "Status: Novelty"), (", OK)", ", Novelty)")),
    *(("functional", "novelty"), ("State : clean", "State : novelty"), ("State : active", "State : novelty")),
    *(("[UU", "[NU"), ("Okay (OKY)", "Novelty (NVL)"), (": Okay", ": Novelty")),
)


def volumes_of(found: Any) -> list[Any]:
    """The volumes in what a parser made of a text."""
    if isinstance(found, VolumeFacts):
        return [found]
    if isinstance(found, (list, tuple)):
        return [volume for each in found for volume in volumes_of(each)]
    inner = [getattr(found, name, ()) for name in ("adapters", "volumes")]
    return [volume for each in inner if isinstance(each, tuple) for volume in volumes_of(each)]


@pytest.mark.parametrize(("tool", "parser", "path"), texts(), ids=lambda value: getattr(value, "name", value))
def test_a_state_of_tomorrow_is_never_called_healthy(tool: str, parser: str, path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    parse = getattr(TOOLS[tool](), parser)
    well = {volume.id for volume in volumes_of(read(parse, text)) if volume.healthy}
    odd = text
    for good, novel in GOOD:
        odd = odd.replace(good, novel)
    # what no word of a state stands beside is called well for another reason (a stripe set that runs)
    told = {volume.id: volume for volume in volumes_of(read(parse, odd))}
    changed = {
        name
        for name in well
        if name in told and (told[name].state, told[name].settings) != _before(parse, text, name)
    }
    assert not {name for name in changed if told[name].healthy}


def _before(parse: Callable[[str], Any], text: str, name: str) -> Any:
    """State and settings of a volume in the text as it is."""
    return next((each.state, each.settings) for each in volumes_of(read(parse, text)) if each.id == name)


@pytest.mark.parametrize(
    ("changed", "is_wrong"),
    [
        ({"text": "a drive was removed [Module Of Tomorrow]"}, False),
        ({"text": "a drive was removed the volume is degraded"}, True),
        ({"text": "[Module Of Tomorrow] a drive was removed"}, True),
        ({"time": "later"}, True),
        ({"severity": "fatal"}, True),
        ({"sequence": 3}, True),
    ],
)
def test_only_what_stands_behind_the_text_of_an_event_is_no_wrong_value(
    changed: dict[str, Any], is_wrong: bool
) -> None:
    event = TOOLS["storcli"]().AdapterEvent
    right = (
        event(1, "noon", "warning", "a drive was removed"),
        event(2, "noon", "critical", "the volume is degraded"),
    )
    told = wrongly_read(right, (replace(right[0], **changed), right[1]), Variant("any", ""))
    assert bool(told) is is_wrong


def test_a_wrong_value_is_seen() -> None:
    right = TOOLS["sg3"]().Capacity(512, 512)
    other = TOOLS["sg3"]().Capacity(1024, 512)
    assert wrongly_read(right, other, Variant("any", "")) == ["any: .size is '1024', right is '512'"]
    assert wrongly_read(right, right, Variant("any", "")) == []


@pytest.mark.parametrize("text", ["Label one : 1\nLabel two : 2000 MB\n\n", '{"a": {"b": 1, "c": [{"d": 2}]}}'])
def test_every_kind_of_variant_is_made(text: str) -> None:
    made = [each.name for each in variants(text)]
    assert len(made) >= 5
    assert all(each.text != text for each in variants(text) if "wider" in each.name or "renamed" in each.name)
