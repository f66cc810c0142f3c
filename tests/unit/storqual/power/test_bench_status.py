# SPDX-License-Identifier: Apache-2.0
"""The table of all benches: what each says, and what one that hangs costs the others."""

import json
import time
from pathlib import Path

from storqual.base.table import csv_text
from storqual.bench.follow import Connection
from storqual.bench.lease import folder_book, new_owner, put_out
from storqual.bench.reached import ReachedBench
from storqual.history.past_runs import LastResult
from storqual.power.bench_status import LIMIT_S, read_status, status_table
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LeaseBook
from storqual_core.kit.lock import hold_lock


def bench(name: str, state: Path, command: str = "", **variables: object) -> ReachedBench:
    connection = Connection(name, lambda asked: ["sh", "-c", command or asked], ["true"], remote=False)
    return ReachedBench(name, connection, str(state), "python3", variables)


def test_a_row_says_who_has_the_bench_who_waits_and_what_runs(tmp_path: Path) -> None:
    state = tmp_path / "a state"
    book = LeaseBook(state)
    book.reserve(new_owner("other cables", 3600))
    owner = {"who": "bob", "where": "lab2", "why": "drop 7", "until": "2099-01-01T00:00:00+00:00"}
    ask = folder_book(state)
    ask({"act": "reserve", "owner": {**owner, "run": "r2", "since": ""}, "ticket": ask({"act": "ticket"})["ticket"]})
    (state / "saved.json").write_text(json.dumps({"run": "r0", "since": "2026-11-26"}))
    last = LastResult("r0", "2026-11-26", "adapter", "old", "new", "FAIL", ())
    (row,) = read_status({"bench01": bench("bench01", state)}, {"bench01": last}, {"bench01": "2 differences"})
    assert row.ssh == "answers"
    assert "other cables" in row.reserved
    assert "bob on lab2" in row.waiting
    assert "drop 7" in row.waiting
    assert row.running == ""
    assert "r0" in row.left_over
    assert row.drift == "2 differences"
    assert row.last == "FAIL 2026-11-26 (r0)"
    LeaseBook(state).release(LeaseBook(state).read().number)
    with hold_lock(state, "r3", "measure", block="s01-b01"):
        (row,) = read_status({"bench01": bench("bench01", state)}, {})
    assert row.reserved == ""
    assert row.running.startswith("s01-b01 of r3 since 20")
    (state / "saved.json").write_text("[" * 5000)
    assert read_status({"bench01": bench("bench01", state)}, {})[0].ssh == "answers"


def test_a_bench_that_is_out_of_service_and_silent_says_why(tmp_path: Path) -> None:
    put_out("bench01", "nothing brought it back")
    (row,) = read_status({"bench01": bench("bench01", tmp_path, "echo 'No route to host' >&2; exit 255")}, {})
    assert "No route to host" in row.ssh
    assert "nothing brought it back" in row.out


def test_of_twenty_benches_three_that_hang_are_waited_for_at_once(tmp_path: Path) -> None:
    hangs = ["on", "off", "state"]
    power = [{"command": {act: ["sleep", "600"] for act in hangs}}]
    benches: dict[str, ReachedBench | StorqualError] = {}
    for number in range(20):
        name = f"bench{number:02}"
        benches[name] = bench(name, tmp_path, storqual_power=[{"command": {act: ["echo", "on"] for act in hangs}}])
    benches["bench03"] = bench("bench03", tmp_path, "sleep 600")
    benches["bench07"] = bench("bench07", tmp_path, storqual_power=power)
    benches["bench11"] = bench("bench11", tmp_path, "sleep 600", storqual_power=power)
    benches["bench15"] = StorqualError("it asks for a password")
    began = time.monotonic()
    rows = {row.bench: row for row in read_status(benches, {})}
    # one after the other the hanging ones would take four limits
    assert time.monotonic() - began < 3 * LIMIT_S
    assert list(rows) == list(benches)
    assert rows["bench03"].ssh.startswith("no answer")
    assert rows["bench07"].ssh == "answers"
    assert rows["bench07"].power == "no answer"
    assert rows["bench15"].ssh == "it asks for a password"
    for name, row in rows.items():
        if name not in ("bench03", "bench07", "bench11", "bench15"):
            assert (row.ssh, row.power) == ("answers", "command says on"), name
    assert csv_text(status_table(list(rows.values()))).count("\n") == 21
