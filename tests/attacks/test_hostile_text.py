# SPDX-License-Identifier: Apache-2.0
"""What devices, drops and gates of strangers hold takes no longer to read than its length calls for."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

import pytest

from storqual.bench.labgrid import missing_resources
from storqual.inputs.policy import read_gate, read_waivers
from storqual_core import tools
from storqual_core.kit.errors import ToolError
from tests.support.tool_fixtures import fixture_texts

BLANKS = " " * 6_000
WAIVER = "- {{criterion: iops, owner: Pat, reason: known, expiry: 2026-12-30, reference: {}}}\n"


@contextmanager
def soon() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("sg_ses", "\n", f"\n{BLANKS}x\n"),
        ("sg_ses", "\n", f"\nElement type:{BLANKS}x\n"),
        ("sg_ses", "enclosure vendor:", f"enclosure vendor:{BLANKS}x\n"),
        ("qaucli", "(SN", f"(SN{BLANKS}x\n"),
        ("lsiutil", "\n", f"\n/proc/mpt/ioc0{BLANKS}x\n"),
        ("hbacmd", "\n", "\n" * 6_000),
    ],
)
def test_blanks_are_passed_over(name: str, old: str, new: str) -> None:
    """An enclosure names its elements in up to 64 KiB, and the firmware in it is what is qualified."""
    tool = tools.TOOLS[name]()
    for text in [text for text in fixture_texts(name) if old in text][:3]:
        for parse in [member for part, member in vars(tool).items() if part.startswith("parse_")]:
            # some want more than the text: they take it from those that do not
            with soon(), suppress(ToolError, TypeError):
                parse(text.replace(old, new, 1))


@pytest.mark.parametrize("pattern", ["(a+)+b", "(?:a|aa)+b", "(?:aa?){30}b", "a*a*a*a*b", "(x)?(?(1)b|(?:a+)+b)"])
def test_a_gate_says_of_references_nothing_that_never_ends(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "gate.yml").write_text(f"waivers: {{reference: '{pattern}'}}\n", encoding="utf-8")
    gate, problems = read_gate(tmp_path / "gate.yml")
    assert gate is None
    assert "a repetition within another one" in problems[0] or "can take too long" in problems[0]


def test_a_reference_is_compared_up_to_a_length(tmp_path: Path) -> None:
    (tmp_path / "gate.yml").write_text("waivers: {reference: 'a*a*a*'}\n", encoding="utf-8")
    gate, _ = read_gate(tmp_path / "gate.yml")
    assert gate is not None
    path, today = tmp_path / "waivers.yml", date(2026, 12, 1)
    for reference, refused in (("a" * 100, False), ("a" * 99 + "b", True), ("a" * 200_000, True)):
        path.write_text(WAIVER.format(reference), encoding="utf-8")
        with soon():
            assert bool(read_waivers(path, gate, today)[1]) is refused


def test_names_that_other_users_of_labgrid_gave_are_passed_over() -> None:
    with soon():
        assert "'" not in missing_resources("Acquired resource '" + "' (" * 20_000)
