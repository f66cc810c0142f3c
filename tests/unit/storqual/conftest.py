# SPDX-License-Identifier: Apache-2.0
"""What several rooms share: records of trials that a test wrote, without the streams that they would follow from."""

import pytest


@pytest.fixture
def records_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are not derived again; that they are, tests/attacks shows on those that follow from what was told."""
    monkeypatch.setattr("storqual.run.turns._against", lambda *_: [])
