# SPDX-License-Identifier: Apache-2.0
"""Each kind of event has its fields, and nothing else is written or read as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.run import EVENT_KINDS, append_event, iter_events
from storqual.run.event_kinds import Stage, event_problems, line_problems
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.event_examples import example, mistakes, stored
from tests.support.make_run import make_run
from tests.support.sealed_run import chained, lines_of
from tests.support.synthetic_shape import POINTS

FIELDS_OF_OTHERS = {"end": {"disks": {}}, "outcome": "done", "sha256": "a" * 64, "provisioned": {}, "checks": {}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"), points=POINTS[:1], adapters=("sym",), finished=False)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_an_event_with_its_fields_is_one_and_no_other_is(kind: str) -> None:
    assert event_problems(kind, example(kind)) == []
    passed = [told for told, fields in mistakes(kind) if not event_problems(kind, fields)]
    assert passed == []
    of_others = {name: value for name, value in FIELDS_OF_OTHERS.items() if name not in example(kind)}
    assert all(event_problems(kind, example(kind, **{name: value})) for name, value in of_others.items())


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_what_the_store_writes_is_checked_when_it_is_read(kind: str) -> None:
    line = {**stored(kind), **example(kind)}
    assert line_problems(line) == []
    for name in ("time", "kind", "previous"):
        assert line_problems({key: value for key, value in line.items() if key != name})
        assert line_problems({**line, name: 1})
        assert line_problems({**line, name: ""})
    assert line_problems([line])
    assert line_problems({**line, "kind": ["note"]})


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_a_mistake_is_refused_when_it_is_appended_and_found_when_it_is_read(kind: str, run: Path) -> None:
    before = (run / "events.jsonl").read_bytes()
    events = lines_of(run / "events.jsonl")
    try:
        # one of each place: the table was gone through above
        for told, fields in list(mistakes(kind))[::5]:
            with pytest.raises(BadInputError, match=f"event {kind}: "):
                append_event(run, kind, fields)
            assert (run / "events.jsonl").read_bytes() == before, told
            chained(run / "events.jsonl", [*events, {**stored(kind), **fields}])
            with pytest.raises(StorqualError, match=rf"events.jsonl:{len(events) + 1}: event {kind}: "):
                list(iter_events(run))
            (run / "events.jsonl").write_bytes(before)
    finally:
        (run / "events.jsonl").write_bytes(before)


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b"1e400",
        b"[" * 100_000,
        b'{"kind":"note"}',
        # whoever reads the first key reads another event
        b'{"time":"2026-11-21T10:00:00Z","kind":"note","kind":"closed","text":"x","previous":"PREVIOUS"}',
        b'{"kind":"note","time":"2026-11-21T10:00:00Z","text":"x","previous":"PREVIOUS"}',
        b'{"time":"2026-11-21T10:00:00Z", "kind":"note","text":"x","previous":"PREVIOUS"}',
    ],
    ids=["list", "empty", "infinite", "deep", "bare", "a key twice", "another order", "another spacing"],
)
def test_a_line_that_is_no_event_of_ours_is_found_with_its_number(line: bytes, tmp_path: Path) -> None:
    path = make_run(tmp_path, points=POINTS[:1], adapters=("sym",), finished=False)
    *_, last = iter_events(path)
    data = (path / "events.jsonl").read_bytes() + line.replace(b"PREVIOUS", last.sha256.encode()) + b"\n"
    (path / "events.jsonl").write_bytes(data)
    with pytest.raises(StorqualError, match=rf"events.jsonl:{last.number + 1}: "):
        list(iter_events(path))


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_behind_the_end_only_what_is_judged_published_noted_and_witnessed_is_written(
    kind: str, tmp_path: Path
) -> None:
    path = make_run(tmp_path, points=POINTS[:1], adapters=("sym",))
    fields = example(kind)
    fields.pop("file_sha256", None)
    taken = EVENT_KINDS[kind].stage in (Stage.ANY, Stage.OPENING)
    if taken:
        append_event(path, kind, fields)
    else:
        with pytest.raises(BadInputError, match=f"event {kind}: "):
            append_event(path, kind, fields)
    assert any(event.kind == kind and event.fields["time"] > "2026-11-22" for event in iter_events(path)) is taken
