# SPDX-License-Identifier: Apache-2.0
"""What storqual made on drives is on disk before it is made, and forgotten when the drive is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual_core.guard.signatures import Ledger
from storqual_core.kit.errors import StorqualError


def test_what_is_announced_is_on_disk_at_once(tmp_path: Path) -> None:
    ledger, first = Ledger.read(str(tmp_path)).announce("a")
    ledger, second = ledger.announce("a")
    assert first != second
    assert Ledger.read(str(tmp_path)).made == {"a": frozenset({first, second})}


def test_a_cleared_drive_is_forgotten_and_others_are_not(tmp_path: Path) -> None:
    ledger, _ = Ledger.read(str(tmp_path)).announce("a")
    ledger, kept = ledger.announce("b")
    ledger = ledger.clearing("a")
    assert Ledger.read(str(tmp_path)).restamping == {"a"}
    ledger.cleared("a")
    found = Ledger.read(str(tmp_path))
    assert (found.made, found.restamping) == ({"b": frozenset({kept})}, frozenset())


def test_a_drive_that_was_lent_is_on_disk_at_once_until_it_is_cleared(tmp_path: Path) -> None:
    Ledger.read(str(tmp_path)).lending("a")
    ledger = Ledger.read(str(tmp_path)).clearing("b")
    assert Ledger.read(str(tmp_path)).lent == {"a"}
    ledger.cleared("a")
    found = Ledger.read(str(tmp_path))
    assert (found.lent, found.restamping) == (frozenset(), {"b"})


def test_a_list_from_before_drives_were_lent_is_read(tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text('{"storqual.made/1": {"made": {}, "restamping": ["a"]}}')
    found = Ledger.read(str(tmp_path))
    assert (found.lent, found.restamping) == (frozenset(), {"a"})


def test_a_bench_on_which_nothing_was_made_has_an_empty_list(tmp_path: Path) -> None:
    assert Ledger.read(str(tmp_path / "nothing")).made == {}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"storqual.made/1": {"made": 3, "restamping": []}}', "\x00"])
def test_a_damaged_list_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "made.json").write_text(text)
    with pytest.raises(StorqualError, match="cannot be read"):
        Ledger.read(str(tmp_path))
