# SPDX-License-Identifier: Apache-2.0
"""What must hold of the bench itself before and after a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storqual.store import Run


def test_the_bench_was_restored(run: Run, bench: Mapping[str, Any]) -> None:
    """The bench was left as it was found."""
    ends = [event for event in run.events if event.bench == bench["name"] and event.kind.startswith("restore")]
    if not ends:
        pytest.skip("the bench was not restored yet")
    assert ends[-1].kind == "restored", f"restoring failed: {ends[-1].fields.get('reason')}"


def test_every_session_ran_on_its_own_boot_when_the_drop_needs_one(run: Run, bench: Mapping[str, Any]) -> None:
    """Sessions of a drop that costs a reboot do not share a boot: else one session is counted as two."""
    sessions = {session.id: session for session in run.plan.sessions if session.bench == bench["name"]}
    if not any(session.change == "reboot" for session in sessions.values()):
        pytest.skip("no session of this campaign costs a reboot")
    boots = [
        event.fields["boot_id"]
        for event in run.events
        if event.kind == "session_started" and event.bench == bench["name"]
    ]
    shared = len(boots) - len(set(boots))
    assert shared == 0, f"{shared} of {len(boots)} sessions ran on a boot that another session had used"
