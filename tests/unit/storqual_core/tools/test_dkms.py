# SPDX-License-Identifier: Apache-2.0
"""What DKMS says it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.errors import ToolError
from storqual_core.tools import dkms
from tests.replay import Call, Replay

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
Deprecated feature: REMAKE_INITRD (/etc/dkms/framework.conf)
hba/1.2.3, 6.1.0-1-amd64, x86_64: installed (original_module exists)
hba/1.2.4: added
old, 2.0-k, 6.1.0-2-amd64, x86_64: built
"""


def test_both_grammars_are_read() -> None:
    """Of release 3 and of release 2."""
    states = dkms.status(Replay([Call("dkms status", TEXT)]))
    assert [(each.module, each.version, each.kernel, each.state) for each in states] == [
        ("hba", "1.2.3", "6.1.0-1-amd64", "installed"),
        ("hba", "1.2.4", "", "added"),
        ("old", "2.0-k", "6.1.0-2-amd64", "built"),
    ]
    assert states[0].remark == "(original_module exists)"
    assert dkms.built_for(states, "1.2.3", "6.1.0-1-amd64") == [states[0]]
    assert dkms.built_for(states, "1.2.4", "6.1.0-1-amd64") == []


def test_the_end_of_the_newest_build_log_is_told(tmp_path: Path) -> None:
    """Why a build failed."""
    assert dkms.last_build_words(str(tmp_path)) == ""
    log = tmp_path / "hba" / "1.2.3" / "build" / "make.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number}\n" for number in range(9)) + "hba.c:3: error: no such member\n")
    assert dkms.last_build_words(str(tmp_path)).endswith("line 8; hba.c:3: error: no such member")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """A line that is not understood may be about the driver that is meant."""
    try:
        states = dkms.parse_status(text)
    except ToolError:
        return
    assert all(each.module and each.state for each in states)


def test_a_line_in_another_language_is_refused() -> None:
    """Never passed over."""
    with pytest.raises(ToolError, match="not understood"):
        dkms.parse_status("hba ist eingerichtet\n")
