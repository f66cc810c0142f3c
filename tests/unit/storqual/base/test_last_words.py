# SPDX-License-Identifier: Apache-2.0
"""Tests of the line that is quoted from a kernel's last words."""

from __future__ import annotations

import pytest

from storqual.base.text import telling_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("storqual: bench start\n[ 2.3] Kernel panic - not syncing: VFS\n[ 2.4] Call Trace:\n", "Kernel panic"),
        ("[ 1.0] BUG: unable to handle page fault\n[ 1.2] Kernel panic - not syncing: Fatal", "Kernel panic"),
        ("[ 1.2] Kernel panic - not syncing: A\n[ 1.9] ---[ end Kernel panic - not syncing: A ]---", "syncing: A"),
        ("one\n[ 1.0] BUG: soft lockup\ntwo", "BUG: soft lockup"),
        ("\n\n  kernel 6.12 did not boot\nsecond line", "kernel 6.12 did not boot"),
    ],
)
def test_the_panic_is_told_before_what_led_to_it(text: str, line: str) -> None:
    assert telling_line(text).endswith(line) or line in telling_line(text)
    assert "end Kernel panic" not in telling_line(text)


def test_a_text_without_words_is_told_as_nothing() -> None:
    assert telling_line(" \n\n") == ""
