# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering with a run of trials and programs; whoever tampers makes the chain of events anew each time."""

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from storqual.kinds.program import OUTPUT
from storqual.kinds.trial import STREAM, WRITES
from storqual.run import sha256_of
from storqual.run.closing import collected
from tests.attacks.before.tampering import Kind, chained, document, lines_of, made_anew
from tests.attacks.finished_run import put

TRIAL_KINDS: dict[str, Kind] = {}
"""By name: each is seen, on whichever trial or program it is drawn."""
_FIELDS = {
    "trial": (
        *("outcome", "reasons", "violations", "ios", "writes", "flushes", "errors", "stall_s", "recovery_s"),
        *("disks", "boot_id", "slab_bytes", "residual", "timeline", "start", "tag", "bench", "session", "arm"),
        *("adapter", "drive", "fault", "seed"),
    ),
    "program": ("outcome", "reasons", "tests", "problems", "unread_lines", "status", "words", "kernel", "seconds"),
}


_STREAMS = {"trial": STREAM, "program": OUTPUT}


def drawn(run: Path, kind: str, source: random.Random, what: str = "") -> Path:
    """A record of a kind, or with `what` one that names such a raw file."""
    records = [
        path for path in sorted((run / "turns").glob("*.json")) if json.loads(path.read_bytes())["kind"] == kind
    ]
    return source.choice([path for path in records if not what or raw_of(run, path, what)])


def raw_of(run: Path, record: Path, what: str) -> Path | None:
    """The raw file of a record that is called so."""
    named = [one["path"] for one in json.loads(record.read_bytes())["raw"] if f".{what}." in one["path"]]
    return run / named[0] if named else None


def text_of(run: Path, record: Path, what: str) -> bytes:
    path = raw_of(run, record, what)
    assert path is not None
    return gzip.decompress(path.read_bytes())


def told_anew(run: Path, path: Path, body: dict[str, Any]) -> None:
    """Put a record in the place of another one, with the event, the end and the chain that go with it."""
    data = json.dumps(body, indent=1).encode()
    put(path, data)
    events = lines_of(run / "events.jsonl")
    for event in events:
        if event["kind"] == "turn_finished" and event["turn"] == path.stem:
            event["sha256"] = sha256_of(data)
        elif event["kind"] == "closed":
            event.update(collected(run))
    chained(run / "events.jsonl", events)


def other(value: Any, source: random.Random) -> Any:
    """Another value of the same shape."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + source.randint(1, 9)
    if isinstance(value, str):
        return source.choice(("passed", "candidate", "s02", "another"))[: max(1, source.randint(3, 9))] + "x"
    if isinstance(value, list):
        return value[:-1] if value else ["nothing"]
    return {} if value else {"x": 1}


def _field(folder: str, name: str) -> Kind:
    def alter(run: Path, source: random.Random) -> None:
        path = drawn(run, folder, source)
        body = json.loads(path.read_bytes())
        told_anew(run, path, {**body, name: other(body[name], source)})

    return alter


for _folder, _names in _FIELDS.items():
    for _name in _names:
        TRIAL_KINDS[f"{_folder}_{_name}"] = _field(_folder, _name)


def kind(function: Kind) -> Kind:
    TRIAL_KINDS[function.__name__] = function
    return function


def raw_anew(run: Path, record: Path, data: bytes, what: str) -> None:
    """Put a raw file in the place of another one; its record names the new digest."""
    body = json.loads(record.read_bytes())
    digest = sha256_of(data)
    put(run / "raw" / f"{digest}.{what}.jsonl.gz", data)
    entry = {"path": f"raw/{digest}.{what}.jsonl.gz", "sha256": digest}
    body["raw"] = [entry if f".{what}." in one["path"] else one for one in body["raw"]]
    told_anew(run, record, body)


def evidence_anew(run: Path, record: Path, text: bytes, what: str) -> None:
    """The same by what it holds."""
    raw_anew(run, record, gzip.compress(text, mtime=0), what)


def _lines(change: Callable[[list[dict[str, Any]], random.Random], None], kind: str = "trial") -> Kind:
    def alter(run: Path, source: random.Random) -> None:
        record, what = drawn(run, kind, source), _STREAMS[kind]
        lines = [json.loads(line) for line in text_of(run, record, what).splitlines()]
        change(lines, source)
        evidence_anew(run, record, b"".join(json.dumps(line).encode() + b"\n" for line in lines), what)

    return alter


def _without(what: str) -> Callable[[list[dict[str, Any]], random.Random], None]:
    def change(lines: list[dict[str, Any]], source: random.Random) -> None:
        # the second reading decides nothing where the first is right
        known = [at for at, line in enumerate(lines) if line["kind"] == what and line.get("turn") != 2]
        del lines[source.choice(known)]

    return change


for _kind in ("trial", "begin", "state", "loading", "io", "fault", "seen", "kernel", "found", "end"):
    TRIAL_KINDS[f"stream_without_{_kind}"] = _lines(_without(_kind))
for _kind in ("run", "program", "output", "ended", "end", "spent"):
    TRIAL_KINDS[f"program_without_{_kind}"] = _lines(_without(_kind), "program")


@kind
def a_write_that_was_never_made(run: Path, source: random.Random) -> None:
    def change(lines: list[dict[str, Any]], source: random.Random) -> None:
        line = source.choice([line for line in lines if line["kind"] == "io"])
        line["ios"].append(["w", 9, 4100, 1, 5, 6, 0])

    _lines(change)(run, source)


@kind
def what_was_read_back(run: Path, source: random.Random) -> None:
    def change(lines: list[dict[str, Any]], source: random.Random) -> None:
        line = source.choice([line for line in lines if line["kind"] == "found" and line["turn"] == 1])
        line["runs"][0][3] = 1

    _lines(change)(run, source)


@kind
def the_stream_of_another_trial(run: Path, source: random.Random) -> None:
    one = drawn(run, "trial", source)
    two = one
    while two == one:
        two = drawn(run, "trial", source)
    evidence_anew(run, one, text_of(run, two, STREAM), STREAM)


@kind
def the_stream_of_another_run(run: Path, source: random.Random) -> None:
    def change(lines: list[dict[str, Any]], _: random.Random) -> None:
        lines[0]["run"] = "20261120T100000Z-kept-0001"

    _lines(change)(run, source)


@kind
def a_stream_that_is_cut(run: Path, source: random.Random) -> None:
    record = drawn(run, "trial", source)
    text = text_of(run, record, STREAM)
    evidence_anew(run, record, text[: source.randrange(len(text) // 2, len(text) - 1)], STREAM)


@kind
def a_stream_that_is_empty(run: Path, source: random.Random) -> None:
    evidence_anew(run, drawn(run, "trial", source), b"", STREAM)


def _stream_of(run: Path, source: random.Random) -> Path:
    of = source.choice(("trial", "program"))
    path = raw_of(run, drawn(run, of, source), _STREAMS[of])
    assert path is not None
    return path


@kind
def a_stream_that_is_missing(run: Path, source: random.Random) -> None:
    _stream_of(run, source).unlink()


@kind
def a_stream_that_is_no_archive(run: Path, source: random.Random) -> None:
    raw_anew(run, drawn(run, "trial", source), source.randbytes(200), STREAM)


@kind
def a_pipe_for_a_stream(run: Path, source: random.Random) -> None:
    path = _stream_of(run, source)
    path.unlink()
    os.mkfifo(path)


@kind
def a_device_for_a_stream(run: Path, source: random.Random) -> None:
    path = _stream_of(run, source)
    path.unlink()
    path.symlink_to("/dev/zero")


@kind
def a_line_that_never_ends(run: Path, source: random.Random) -> None:
    record = drawn(run, "trial", source)
    text = text_of(run, record, STREAM)
    evidence_anew(run, record, text + b"[" * source.randrange(100_000, 200_000) + b"\n", STREAM)


@kind
def a_time_without_end(run: Path, source: random.Random) -> None:
    record = drawn(run, "trial", source)
    evidence_anew(run, record, text_of(run, record, STREAM) + b'{"kind":"note","at":1e400}\n', STREAM)


@kind
def a_write_of_a_trillion_sectors(run: Path, source: random.Random) -> None:
    def change(lines: list[dict[str, Any]], source: random.Random) -> None:
        line = source.choice([line for line in lines if line["kind"] == "io"])
        line["ios"].append(["w", 9, 4100, source.randrange(10**12, 10**13), 5, 6, 0])

    _lines(change)(run, source)


@kind
def a_trillion_sectors_that_were_read_back(run: Path, source: random.Random) -> None:
    def change(lines: list[dict[str, Any]], source: random.Random) -> None:
        line = source.choice([line for line in lines if line["kind"] == "found"])
        line["runs"].append([5000, source.randrange(10**12, 10**13), "good", 2])

    _lines(change)(run, source)


@kind
def another_digest_of_a_stream(run: Path, source: random.Random) -> None:
    path = drawn(run, source.choice(("trial", "program")), source)
    body = json.loads(path.read_bytes())
    body["raw"][0]["sha256"] = "0" * 64
    told_anew(run, path, body)


@kind
def a_stream_outside_its_folder(run: Path, source: random.Random) -> None:
    path = drawn(run, "trial", source)
    body = json.loads(path.read_bytes())
    body["raw"][0]["path"] = "../raw/x.gz"
    told_anew(run, path, body)


@kind
def a_raw_file_that_says_nothing_more(run: Path, source: random.Random) -> None:
    path = drawn(run, "program", source)
    body = json.loads(path.read_bytes())
    told_anew(run, path, {**body, "raw": [*body["raw"], body["raw"][0] | {"path": body["raw"][0]["path"] + "x"}]})


@kind
def a_log_of_writes_that_is_missing(run: Path, source: random.Random) -> None:
    path = raw_of(run, drawn(run, "trial", source, WRITES), WRITES)
    assert path is not None
    path.unlink()


@kind
def a_log_of_writes_that_lacks_one(run: Path, source: random.Random) -> None:
    record = drawn(run, "trial", source, WRITES)
    lines = text_of(run, record, WRITES).splitlines(keepends=True)
    del lines[source.choice((0, 2))]
    evidence_anew(run, record, b"".join(lines), WRITES)


@kind
def a_log_of_writes_that_no_record_names(run: Path, source: random.Random) -> None:
    record = drawn(run, "trial", source, WRITES)
    body = json.loads(record.read_bytes())
    told_anew(run, record, {**body, "raw": body["raw"][:1]})


@kind
def images_of_power_cuts(run: Path, source: random.Random) -> None:
    record = drawn(run, "trial", source, WRITES)
    body = json.loads(record.read_bytes())
    body["power_cuts"]["images"] += source.randint(1, 9999)
    told_anew(run, record, body)


@kind
def a_key_that_no_stream_gives(run: Path, source: random.Random) -> None:
    path = drawn(run, source.choice(("trial", "program")), source)
    told_anew(run, path, {**json.loads(path.read_bytes()), "approved": True})


@kind
def what_disks_counted(run: Path, source: random.Random) -> None:
    def change(lines: list[dict[str, Any]], _: random.Random) -> None:
        lines[-1]["disks"]["sda"]["write_sectors_after"] += 8

    _lines(change)(run, source)


@kind
def disks_in_the_event(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    event = source.choice([event for event in events if event["kind"] == "turn_finished"])
    event["end"]["disks"]["sda"]["write_sectors_after"] = 0
    chained(run / "events.jsonl", events)


@kind
def outcome_in_the_event(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    event = source.choice([event for event in events if event["kind"] == "turn_finished"])
    event["outcome"] = "failed"
    chained(run / "events.jsonl", events)


@kind
def a_trial_that_no_event_tells_of(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    events.remove(source.choice([event for event in events if event.get("turn_kind") == "trial"]))
    chained(run / "events.jsonl", events)


@kind
def a_trial_whose_batch_no_session_has(run: Path, source: random.Random) -> None:
    """The plan would not miss it; its batch is there, and the event that started it."""
    path = drawn(run, "trial", source)
    events = lines_of(run / "events.jsonl")
    (event,) = (event for event in events if event.get("turn") == path.stem)
    chained(run / "events.jsonl", [other for other in events if other != event])
    path.unlink()
    with document(run / "run.json") as body:
        for session in body["plan"]["sessions"]:
            session["blocks"] = [name for name in session["blocks"] if name != event["block"]]
    made_anew(run)


@kind
def a_trial_that_is_told_twice(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    at = source.choice([at for at, event in enumerate(events) if event.get("turn_kind") == "trial"])
    events.insert(at, dict(events[at]))
    chained(run / "events.jsonl", events)


@kind
def rules_of_a_former_version(run: Path, source: random.Random) -> None:
    """A record is changed, and the plan says that nothing is kept of it."""
    _field("trial", "recovery_s")(run, source)
    with document(run / "run.json") as body:
        del body["plan"]["evidence"]
