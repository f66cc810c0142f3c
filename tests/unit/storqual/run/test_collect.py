# SPDX-License-Identifier: Apache-2.0
"""Taking in a spool: each sample once, evidence by digest, and nothing that contradicts the plan."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.run import collect, iter_events, read_batch, read_run, sha256_of
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.make_run import make_run

pytestmark = pytest.mark.slow

BLOCK = "s02-b01"


def empty_run(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A run whose second block has not been collected, and the samples that belong there."""
    path = make_run(folder, finished=False)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text().splitlines()]
    (path / "samples.jsonl").write_bytes(b"")
    events = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    keep = next(n for n, line in enumerate(events) if b'"block_finished"' in line and BLOCK.encode() in line)
    (path / "events.jsonl").write_bytes(b"".join(events[:keep]))
    return path, [line for line in lines if line["block"] == BLOCK]


def spool(samples: list[dict[str, Any]], *, end: str | None = "done", evidence: bool = True, **more: Any) -> str:
    """The text that a bench would have for these samples."""
    lines: list[dict[str, Any]] = [{"kind": "start", "boot_id": "boot-2", "kernel": "6.12", "fio": "fio-3.33"}]
    for sample in samples:
        raw = gzip.compress(json.dumps({"of": sample["id"]}).encode(), mtime=0)
        name = f"raw/{sha256_of(raw)}.json.gz"
        named = {**sample, "raw": [{"path": name, "sha256": sha256_of(raw)}]}
        artifacts = {name: base64.b64encode(raw).decode()} if evidence else {}
        lines.append({"kind": "sample", "sample": named, "artifacts": artifacts})
    if more.get("log"):
        lines.append({"kind": "log", "kernel_log": more["log"], "findings": [{"severity": "error", "text": "reset"}]})
    if end is not None:
        lines.append({"kind": "end", "outcome": end, "message": more.get("message", ""), "disks": {}})
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_a_spool_is_taken_in_once(tmp_path: Path) -> None:
    path, samples = empty_run(tmp_path)
    text = spool(samples, log=["one line"])
    first = collect(path, BLOCK, text)
    content = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    again = collect(path, BLOCK, text)
    assert (first.new, first.known, first.ended) == (8, 0, "done")
    assert (again.new, again.known, again.ended) == (0, 8, "done")
    assert content == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    finished = [event for event in iter_events(path) if event.kind == "block_finished"][-1]
    assert (finished.text("boot_id"), finished.fields["findings"][0]["text"]) == ("boot-2", "reset")
    assert json.loads(gzip.decompress((path / finished.fields["kernel_log"]["path"]).read_bytes())) == ["one line"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 12000), min_size=1, max_size=4).map(sorted))
def test_a_growing_spool_may_be_taken_in_at_any_byte(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    path, samples = empty_run(tmp_path_factory.mktemp("run"))
    text = spool(samples)
    for cut in cuts:
        collect(path, BLOCK, text[:cut])
    collect(path, BLOCK, text)
    assert [sample.id for sample in read_run(path).samples] == [f"{BLOCK}/{n}" for n in range(8)]
    assert sum(event.kind == "block_finished" and event.text("block") == BLOCK for event in iter_events(path)) == 1


def test_a_block_without_end_still_runs(tmp_path: Path) -> None:
    path, samples = empty_run(tmp_path)
    assert collect(path, BLOCK, spool(samples[:3], end=None)).ended == ""
    lost = collect(path, BLOCK, spool(samples[:3], end=None), lost="the bench was reset")
    assert (lost.ended, lost.message, lost.known) == ("lost", "the bench was reset", 3)
    assert collect(path, BLOCK, "", lost="again").ended == "lost"


def test_another_sample_under_a_known_id_is_refused(tmp_path: Path) -> None:
    path, samples = empty_run(tmp_path)
    collect(path, BLOCK, spool(samples[:1], end=None))
    with pytest.raises(StorqualError, match="other content"):
        collect(path, BLOCK, spool([{**samples[0], "runtime_s": 1.5}], end=None))
    assert len(list(read_run(path).samples)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"id": f"{BLOCK}/99"},
        {"id": "s01-b01/0"},
        {"arm": "baseline"},
        {"point": "elsewhere"},
        {"adapter": "mega"},
        {"session": "s01"},
        {"n": 7},
        {"status": "fine"},
        {"primitives": None},
    ],
    ids=str,
)
def test_a_sample_that_was_not_planned_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path, samples = empty_run(tmp_path)
    with pytest.raises(StorqualError, match="spool of batch"):
        collect(path, BLOCK, spool([samples[1], {**samples[0], **change}]))
    assert list(read_run(path).samples) == []
    assert not [
        event for event in iter_events(path) if event.text("block") == BLOCK and event.kind == "block_finished"
    ]


def test_evidence_must_hash_to_its_name(tmp_path: Path) -> None:
    """A changed byte, a missing file, a name that leads elsewhere."""
    path, samples = empty_run(tmp_path)
    good = spool(samples[:1])
    line = json.loads(good.splitlines()[1])
    name, text = next(iter(line["artifacts"].items()))
    other = base64.b64encode(base64.b64decode(text)[:-1] + b"x").decode()
    outside = "raw/../../" + name[4:]
    for artifacts, message in (
        ({name: other}, "holds bytes of digest"),
        ({name: "?"}, "is not base64"),
        ({outside: text}, "expected raw/<sha256>"),
        ({}, "which the spool does not hold"),
    ):
        lines = good.splitlines()
        lines[1] = json.dumps({**line, "artifacts": artifacts})
        with pytest.raises(StorqualError, match=message):
            collect(path, BLOCK, "\n".join(lines) + "\n")
    assert list(read_run(path).samples) == []


def test_a_line_that_is_no_record_is_refused(tmp_path: Path) -> None:
    path, samples = empty_run(tmp_path)
    lines = spool(samples).splitlines()
    for bad in ('{"kind": "sam', "[]", '{"kind": "else"}'):
        with pytest.raises(StorqualError, match="line 2"):
            collect(path, BLOCK, "\n".join([lines[0], bad, *lines[2:]]) + "\n")


def test_the_spool_of_another_run_is_refused(tmp_path: Path) -> None:
    path, _ = empty_run(tmp_path)
    with pytest.raises(StorqualError, match="found run 'other'"):
        collect(path, BLOCK, json.dumps({"kind": "start", "run": "other"}) + "\n")


def test_a_block_that_was_never_planned_is_refused(tmp_path: Path) -> None:
    path, _ = empty_run(tmp_path)
    with pytest.raises(BadInputError, match="no such batch"):
        collect(path, "s99-b01", "")
    assert read_batch(path, BLOCK)["session"] == "s02"
