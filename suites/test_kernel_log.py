# SPDX-License-Identifier: Apache-2.0
"""The kernel log of every batch is clean: a perfect number with an adapter reset in the middle is not a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storqual.run import recovered
from storqual.run.turns import turns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from storqual.run import Event, Run


@pytest.fixture
def batches(run: Run, bench: Mapping[str, Any]) -> list[Event]:
    """The finished batches of launches of a bench; one with trouble in its log cannot be judged: an ERROR.

    What the kernel says while a trial or a program runs is part of its record.
    """
    ended = [event for event in run.events if event.kind == "block_finished" and event.bench == bench["name"]]
    if not ended:
        pytest.fail("no batch was finished on this bench, so no kernel log was read", pytrace=False)
    turns = turns_of(run)
    finished = [event for event in ended if not turns.of_batch(event.text("block"))]
    if not finished:
        pytest.skip("no batch of launches was run; the kernel's log of other turns is in their records")
    unread = {str((event.fields.get("end") or {}).get("kernel_log_reason") or "") for event in finished} - {""}
    if unread and bench.get("kind") == "local":
        pytest.skip(f"files of this machine were planned, not a bench; {min(unread)}")
    if unread:
        pytest.fail(f"the kernel's log of a batch was not read: {min(unread)}", pytrace=False)
    trouble = [
        f"batch {event.fields['block']}: {finding['lines'][0]}"
        for event in finished
        for finding in event.fields.get("findings") or ()
        if finding.get("severity") != "warning"
    ]
    # what was measured before a bench lost its power has its log, and the rest was measured in another batch
    trouble += [
        f"batch {event.fields['block']} was {event.fields['outcome']}: {event.fields.get('message') or 'no reason'}"
        for event in finished
        if event.fields["outcome"] != "done" and not recovered(run, event)
    ]
    if trouble:
        pytest.fail("; ".join(trouble[:3]), pytrace=False)
    return finished


def test_the_kernel_log_is_clean(batches: list[Event], record_property: Callable[[str, object], None]) -> None:
    """No adapter reset, timeout, sense error, bus error or oops between the markers of any batch."""
    assert batches
    record_property("looked_at", f"kernel log of {len(batches)} batch{'' if len(batches) == 1 else 'es'}")
