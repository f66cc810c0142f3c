# SPDX-License-Identifier: Apache-2.0
"""Each format of the field that the guard's live test puts on a drive is an objection, looked at in a file."""

import os
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from storqual_core.guard.signatures import objection, read_content

pytestmark = pytest.mark.slow

GUEST = Path(__file__).resolve().parents[3] / "virtual" / "guest"
SIZE = 512 << 20


def test_every_format_of_the_field_forbids_to_overwrite_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them have a name depends on the release of libblkid; without one it is unknown data."""
    for folder in (GUEST, GUEST.parents[1] / "support"):
        monkeypatch.syspath_prepend(str(folder))
    tools, labels = import_module("guard_tools"), import_module("guard_formats").LABELS
    disk = tmp_path / "disk"
    bench = tools.Bench({"a": SimpleNamespace(size=SIZE)}, {"a": SimpleNamespace(node=str(disk))})
    found = {}
    for state in labels:
        disk.write_bytes(b"")
        os.truncate(disk, SIZE)
        assert objection(read_content(str(disk), "claimed", SIZE)) == ""
        state.arrange(bench)
        found[state.name] = objection(read_content(str(disk), "claimed", SIZE))
    assert len(found) >= 25
    assert {name for name, reason in found.items() if not reason} == set()
