# SPDX-License-Identifier: Apache-2.0
"""A campaign's part of a console is a raw file of its run, and is held to its digest as every other one."""

import gzip
import os
import signal
from pathlib import Path

import pytest

from storqual.base import child
from storqual.console.console import Console
from storqual.console.kept import begin, keep
from storqual.run import iter_events, read_run
from storqual.run.evidence import evidence_findings
from tests.support.make_run import make_run
from tests.support.played_console import LIMIT_S, PANIC, ConsoleServer, until


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "runs", finished=False)


def kinds(run: Path) -> list[str]:
    return [event.kind for event in iter_events(run) if event.kind.startswith("console_")]


def test_what_was_said_during_a_campaign_is_in_its_run_and_nothing_else(
    run: Path, console: Console, server: ConsoleServer
) -> None:
    console.start(server.way)
    server.say(b"before the campaign\n")
    until(lambda: "before the campaign" in console.text_since(0))
    console.stop()
    until(lambda: not server.listens.is_set())
    assert begin(run, console, server.way)
    server.say(PANIC.encode())
    until(lambda: "end Kernel panic" in console.text_since(0))
    fields = keep(run, console)
    assert console.running() is None
    text = gzip.decompress((run / fields["recording"]["path"]).read_bytes())
    assert b"megasas_queue_command" in text
    assert b"before the campaign" not in text
    assert kinds(run) == ["console_started", "console_kept"]
    assert keep(run, console) == {}


def test_a_campaign_that_was_killed_goes_on_with_the_same_recording(
    run: Path, console: Console, server: ConsoleServer
) -> None:
    begin(run, console, server.way)
    server.say(b"first part\n")
    until(lambda: "first part" in console.text_since(0))
    # the campaign is gone here; its recorder is not
    assert not begin(run, console, server.way)
    server.say(b"second part\n")
    until(lambda: "second part" in console.text_since(0))
    fields = keep(run, console)
    text = gzip.decompress((run / fields["recording"]["path"]).read_bytes())
    assert b"first part" in text
    assert b"second part" in text
    assert kinds(run) == ["console_started", "console_kept"]


def test_a_recorder_that_was_killed_in_a_campaign_is_a_gap_of_it(
    run: Path, console: Console, server: ConsoleServer
) -> None:
    begin(run, console, server.way)
    server.say(b"first part\n")
    until(lambda: "first part" in console.text_since(0))
    order = console.running()
    assert order is not None
    os.kill(order["pid"], signal.SIGKILL)
    child.await_end(order["pid"], order["start_ticks"], LIMIT_S)
    assert keep(run, console)["gaps"] == 1


def test_a_recorder_that_somebody_else_began_goes_on(run: Path, console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    begin(run, console, server.way)
    keep(run, console)
    assert console.running() is not None


def test_a_recording_that_is_another_one_than_was_kept_is_found(
    run: Path, console: Console, server: ConsoleServer
) -> None:
    begin(run, console, server.way)
    fields = keep(run, console)
    file = run / fields["recording"]["path"]
    assert not [line for line in evidence_findings(read_run(run)) if "console" in line]
    file.write_bytes(gzip.compress(b"nothing happened\n"))
    assert [line for line in evidence_findings(read_run(run)) if "the console of vbench" in line]
