# SPDX-License-Identifier: Apache-2.0
"""The consoles of a report: the lines that matter with the driver they name, and what could not be heard."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from storqual.base.console_log import GAP, LOST, NET, SAID, LineStamper
from storqual.report import build_report
from storqual.run import sha256_of
from tests.support.judged_reports import QUICK, judged
from tests.support.played_console import PANIC

HERE = {"bench": "vbench"}


def recorded(*parts: str | tuple[str, str], at: str = "2026-11-21T10:30:00.000Z", mark: str = SAID) -> bytes:
    """A recording; a pair has a note of the recorder."""
    stamper = LineStamper(mark)
    kept = (
        stamper.note(part[1], at) if isinstance(part, tuple) else stamper.take(part.encode(), at) for part in parts
    )
    return b"".join(kept)


def page(
    folder: Path, recording: bytes | None, *, events: list[dict[str, Any]] | None = None, kind: str = "virtual"
) -> str:
    """The text of the report of a run with that recording of its bench; None: nothing was recorded."""
    data = b"" if recording is None else gzip.compress(recording)
    name = f"raw/{sha256_of(data)}.console.gz"
    raw = {"path": name, "sha256": sha256_of(data)}
    about: list[dict[str, Any]] = [
        {**HERE, "kind": "console_started", "console": "telnet to console1.lab:7001", "from": 0},
        {
            **HERE,
            "kind": "console_kept",
            "console": "telnet to console1.lab:7001",
            "gaps": recording.count(GAP.encode()) if recording else 0,
            "recording": raw,
        },
    ]
    run = judged(folder, points=QUICK[:1], kind=kind, events=[*(events or []), *([] if recording is None else about)])
    if recording is not None:
        (run / name).write_bytes(data)
    build_report(run)
    html = (run / "report.html").read_text(encoding="utf-8")
    return html[html.index("Kernel log findings") :]


def test_a_panic_is_shown_with_the_driver_that_it_names(tmp_path: Path) -> None:
    text = page(tmp_path, recorded("booting\n", PANIC))
    assert "Kernel panic - not syncing: Fatal exception" in text
    assert re.search(r"It names megaraid_sas(,| and)", text)
    assert "megasas_build_and_issue_cmd_fusion" in text
    assert "without a gap" in text


def test_a_panic_that_was_provoked_says_for_what(tmp_path: Path) -> None:
    window = ("", "expected until 2026-11-21T10:31:00.000Z: sysrq_panic of trial t1")
    text = page(tmp_path, recorded(window, PANIC))
    assert "It was provoked: sysrq_panic of trial t1." in text
    assert '<li class="o-error"><p class="head"><strong>Kernel panic' not in text


def test_what_only_netconsole_had_is_shown_and_what_it_lacks_is_said(tmp_path: Path) -> None:
    lost = ("", f"{LOST}12 messages ahead of number 90")
    text = page(tmp_path, recorded("silent\n") + recorded(lost, PANIC, mark=NET))
    assert "Kernel panic, by netconsole" in text
    assert "By netconsole came 14 lines; 12 of the kernel" in text
    assert "megasas_build_and_issue_cmd_fusion" in text


def test_what_console_and_netconsole_had_is_shown_once(tmp_path: Path) -> None:
    late = recorded(PANIC, at="2026-11-21T10:35:00.000Z", mark=NET)
    text = page(tmp_path, recorded(PANIC) + recorded(PANIC, mark=NET) + late)
    assert (text.count("Kernel panic, by netconsole"), text.count("Kernel panic</strong>")) == (1, 1)
    damaged = recorded(PANIC, at="9999-99-99T99:99:99.999Z") + recorded(PANIC, mark=NET)
    assert "Kernel panic, by netconsole" in page(tmp_path / "damaged", damaged)


def test_gaps_are_counted(tmp_path: Path) -> None:
    text = page(tmp_path, recorded("one\n", ("", f"{GAP}the connection was closed by the other end"), "two\n"))
    assert "1 gap" in text


def test_of_a_bench_that_was_lost_without_a_word_the_last_lines_are_shown(tmp_path: Path) -> None:
    lost = {**HERE, "kind": "session_lost", "session": "s01", "reason": "no answer for 300 s"}
    text = page(tmp_path, recorded("the last thing that was said\n", at="2026-11-21T10:40:00.000Z"), events=[lost])
    assert "Last lines before the bench was lost" in text
    assert "the last thing that was said" in text


def test_a_trouble_shortly_before_a_bench_was_lost_is_shown_once(tmp_path: Path) -> None:
    lost = {**HERE, "kind": "session_lost", "session": "s01", "reason": "no answer for 300 s"}
    text = page(tmp_path, recorded(PANIC, at="2026-11-21T10:49:00.000Z"), events=[lost])
    assert "Last lines before" not in text


def test_it_is_said_which_source_had_the_trace(tmp_path: Path) -> None:
    sources = {"console": False, "pstore": True, "kdump": False}
    panic = {**HERE, "kind": "kernel_panic", "text": PANIC, "sources": sources}
    assert "its trace was in pstore, and not in console and kdump" in page(tmp_path, None, events=[panic])


@pytest.mark.parametrize(("kind", "said"), [("hardware", True), ("virtual", False), ("local", False)])
def test_a_hardware_bench_without_a_console_says_what_cannot_be_shown(tmp_path: Path, kind: str, said: bool) -> None:
    assert ("No console is declared for this bench" in page(tmp_path, None, kind=kind)) == said


def test_what_a_hostile_bench_wrote_is_text(tmp_path: Path) -> None:
    hostile = PANIC.replace("Comm: fio", "Comm: <script>alert(1)</script>\x1b[2J\u202e")
    text = page(tmp_path, recorded(hostile))
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;" in text


def test_a_recording_that_was_exchanged_is_not_shown(tmp_path: Path) -> None:
    page(tmp_path, recorded(PANIC))
    (run,) = tmp_path.iterdir()
    (file,) = run.glob("raw/*.console.gz")
    file.write_bytes(gzip.compress(recorded("nothing happened\n")))
    build_report(run)
    html = (run / "report.html").read_text(encoding="utf-8")
    assert "is not the recording that was taken into the run" in html
    assert json.loads((run / "verdict.json").read_text())
