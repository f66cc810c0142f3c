# SPDX-License-Identifier: Apache-2.0
"""The acceptance suite over Ansible's own connection: this machine is asked, nothing on it is changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_bench_of_files_is_asked_for_what_it_has(tmp_path: Path) -> None:
    """Its kernel log is read where that is allowed; what needs adapters is left out; logs lie where asked."""
    words = ["robot", "bench_acceptance", "-i", str(REPOSITORY / "inventories" / "local"), "--output", str(tmp_path)]
    program = str(Path(sys.executable).parent / "storqual")
    ended = subprocess.run(
        [program, *words, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    checks = {line["id"].partition("::")[2]: line for line in json.loads(ended.stdout)["checks"]["this_machine"]}
    assert set(checks) == {
        "The Kernel Log Is Clean Since The Bench Booted",
        "The Management Controller Sees A Healthy Bench",
    }
    log = checks["The Kernel Log Is Clean Since The Bench Booted"]
    assert log["outcome"] in ("PASS", "FAIL") or "dmesg was refused" in log["reason"]
    assert checks["The Management Controller Sees A Healthy Bench"]["outcome"] == "SKIPPED"
    assert (tmp_path / "this_machine" / "xunit.xml").is_file()
