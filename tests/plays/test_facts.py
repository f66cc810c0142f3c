# SPDX-License-Identifier: Apache-2.0
"""`storqual facts` and `storqual sheet` over Ansible, on this machine: an inventory and a page of what is here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storqual.inputs import load_inventory

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
LOCAL = str(REPOSITORY / "inventories" / "local")


def storqual(*words: str, folder: Path) -> str:
    """What a command prints."""
    ended = subprocess.run(
        [sys.executable, "-m", "storqual", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_deep_facts_of_this_machine(tmp_path: Path) -> None:
    (facts,) = json.loads(storqual("facts", "-i", LOCAL, "--deep", "--json", folder=tmp_path)).values()
    assert facts["schema"] == "storqual.facts/1"
    assert isinstance(facts["unread"], list)
    assert facts["kernel"]["release"] == os.uname().release
    assert all("health" in drive for drive in facts["drives"])


def test_the_sheet_of_this_machine_says_what_may_be_destroyed(tmp_path: Path) -> None:
    """Its files, and nothing else."""
    said = storqual("sheet", "-i", LOCAL, "-o", "out", "--json", folder=tmp_path)
    ((bench, path),) = json.loads(said)["sheets"].items()
    (declared,) = load_inventory([Path(LOCAL)]).benches.values()
    page = (tmp_path / path).read_text(encoding="utf-8")
    assert bench == declared.name
    assert page.count("DESTROY</span>") == 1 + sum(len(adapter.claimed) for adapter in declared.adapters.values())
