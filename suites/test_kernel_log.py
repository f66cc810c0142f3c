# SPDX-License-Identifier: Apache-2.0
"""The kernel log of every block is clean: a perfect number with an adapter reset in the middle is not a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storqual.store import Run


def test_the_kernel_log_is_clean(run: Run, bench: Mapping[str, Any]) -> None:
    """No adapter reset, timeout, sense error, bus error or oops between the markers of any block."""
    findings = [
        f"block {event.fields['block']}: {finding['lines'][0]}"
        for event in run.events
        if event.kind == "block_finished" and event.bench == bench["name"]
        for finding in event.fields.get("findings") or ()
    ]
    assert not findings, "; ".join(findings[:3])
