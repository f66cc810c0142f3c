# SPDX-License-Identifier: Apache-2.0
"""Until when a guest is waited for that boots."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from storqual.virtual_bench import boot


@pytest.mark.parametrize(("speaks_s", "given_up_s"), [(0, 300), (100, 300), (500, 600), (5000, 900)])
def test_a_guest_is_given_up_when_its_console_is_silent(
    speaks_s: float, given_up_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, now = tmp_path / "console.log", [0.0]

    def sleep(_seconds: float) -> None:
        now[0] += 10
        if now[0] <= speaks_s:
            log.write_text("x" * int(now[0]))

    monkeypatch.setattr(boot, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(boot, "ssh_answers", lambda *_: False)
    places = {"ssh_config": tmp_path / "ssh", "log": log, "since": 0}
    with pytest.raises(boot.BootFailedError, match=rf" in {given_up_s} s"):
        boot.wait_for_boot("b", **places, port=1, began=0.0, drives=1, limit_s=300.0, running=lambda: True)  # type: ignore[arg-type]
