# SPDX-License-Identifier: Apache-2.0
"""Copy what a bench spooled into the run directory: keyed by id, so that doing it twice changes nothing."""

import base64
import binascii
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from storqual.base.files import parse_json
from storqual.run.events import append_event, append_event_locked, iter_events
from storqual.run.files import LIMITS, read_lines, read_object
from storqual.run.layout import BATCHES, EVENTS, RAW, SAMPLES, append_lines, dump_line, locked, sha256_of, write_bytes
from storqual.run.records import Sample
from storqual_core.kit.durable import MOST, checked_name
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.turns.derive import SAMPLE_SCHEMA

_RAW_NAME = re.compile(r"raw/[0-9a-f]{64}(\.[a-z0-9]{1,10}){1,3}\Z")
_OF_BATCH = ("bench", "session", "block")
_OF_LAUNCH = ("adapter", "arm", "configuration", "point", "n")
_of_batch, _of_launch = itemgetter(*_OF_BATCH), itemgetter(*_OF_LAUNCH)
_STORED_ID = re.compile(rb'^\{"schema":"[^"]*","id":"([^"]+)"')


@dataclass(frozen=True)
class Collected:
    """What came in. `ended`: done, refused, stopped, lost; empty while the batch still runs."""

    batch: str
    new: int
    known: int
    of: int
    ended: str
    message: str
    findings: int
    torn: bool


@dataclass
class _Spool:
    """The lines of a spool file by kind."""

    start: Mapping[str, Any] = field(default_factory=dict)
    end: Mapping[str, Any] = field(default_factory=dict)
    samples: list[Mapping[str, Any]] = field(default_factory=list)
    artifacts: dict[str, str] = field(default_factory=dict)
    kernel_log: list[Any] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)
    preconditioned: dict[str, Any] = field(default_factory=dict)
    torn: bool = False


def read_batch(run: Path, batch: str) -> dict[str, Any]:
    """The batch file `block` of a run. Raises BadInputError when it was never planned, StorqualError for no batch."""
    name = f"{BATCHES}/{checked_name(batch, 'block', most=2 * MOST)}.json"
    try:
        return read_object(run, name)
    except OSError:
        raise BadInputError([f"{run / name}: no such batch; expected one that `storqual next` named"]) from None


def collect(run: Path, batch: str, spool: str, *, lost: str | None = None) -> Collected:
    """Take in the text of one block's spool; returns what was new.

    Samples are checked against the batch file, evidence against its digest. When the spool has its last line, or
    `lost` says why it never will (the bench was reset), the event `block_finished` is appended once.
    Raises StorqualError for a spool that contradicts the plan or samples already stored; nothing of it is kept then.
    """
    planned = read_batch(run, batch)
    parts = _parse(batch, spool)
    where = f"spool of batch {batch}"
    if parts.start and parts.start.get("run") not in (None, planned["run"]):
        raise StorqualError(f"{where}: found run {parts.start['run']!r}, expected {planned['run']!r}")
    launches = {turn["id"]: turn for turn in planned["turns"]}
    for sample in parts.samples:
        _check_sample(where, sample, launches, planned)
    files = {name: _decode(where, name, text) for name, text in parts.artifacts.items()}
    _check_evidence(where, run, parts.samples, files)
    lines = {str(sample["id"]): dump_line(_ordered(sample)) for sample in parts.samples}
    with locked(run):
        before = _stored(run, batch)
        for name, line in lines.items():
            if name in before and before[name] != sha256_of(line[:-1]):
                raise StorqualError(f"{where}: found sample {name} with other content than the one already stored")
        fresh = [line for name, line in lines.items() if name not in before]
        for name, data in files.items():
            if not (run / name).is_file():
                write_bytes(run / name, data)
        if fresh:
            append_lines(run / SAMPLES, b"".join(fresh))
        digests = [*before.values(), *(sha256_of(line[:-1]) for name, line in lines.items() if name not in before)]
        ended, message = _finish(run, planned, parts, lost, digests)
    return Collected(
        batch=batch,
        new=len(fresh),
        known=len(lines) - len(fresh),
        of=len(launches),
        ended=ended,
        message=message,
        findings=len(parts.findings),
        torn=parts.torn,
    )


def _parse(batch: str, spool: str) -> _Spool:
    """Split a spool into its parts; only a last line without an end may be torn."""
    parts = _Spool()
    lines = spool.split("\n")
    parts.torn = lines.pop() != ""
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = parse_json(text.encode(), LIMITS[EVENTS].values)
            kind = line["kind"]
        except (ValueError, KeyError, TypeError):
            raise StorqualError(
                f"spool of batch {batch}, line {number}: found no spool record: {text[:80]!r}"
            ) from None
        if kind == "start":
            parts.start = line
        elif kind == "end":
            parts.end = line
        elif kind == "sample":
            parts.samples.append(line["sample"])
            parts.artifacts.update(line.get("artifacts") or {})
        elif kind == "precondition":
            parts.preconditioned[str(line["stage"])] = line["report"]
        elif kind == "log":
            parts.kernel_log += line.get("kernel_log") or []
            parts.findings += line.get("findings") or []
            parts.artifacts.update(line.get("artifacts") or {})
        else:
            raise StorqualError(f"spool of batch {batch}, line {number}: found kind {kind!r}, which is not known")
    return parts


def _check_sample(
    where: str, line: Mapping[str, Any], launches: Mapping[str, Mapping[str, Any]], planned: Mapping[str, Any]
) -> None:
    """A sample is of this batch, and is what was launched. Raises StorqualError."""
    try:
        sample = Sample.from_json(line)
    except (KeyError, TypeError, ValueError) as problem:
        raise StorqualError(f"{where}: found no sample ({problem}) in {str(line)[:120]!r}") from None
    wrong = sample_problem(line, launches.get(sample.id), planned)
    if wrong:
        raise StorqualError(f"{where}: sample {sample.id} {wrong}")


def sample_problem(sample: Mapping[str, Any], launch: Mapping[str, Any] | None, planned: Mapping[str, Any]) -> str:
    """Why a sample is not of `launch` in the batch file `planned`; empty when it is (None: there is none)."""
    if launch is None:
        return "is not a launch of its batch"
    if _of_batch(sample) == _of_batch(planned) and _of_launch(sample) == _of_launch(launch):
        return ""
    for whole, names in ((planned, _OF_BATCH), (launch, _OF_LAUNCH)):
        for name in names:
            if sample.get(name) != whole[name]:
                return f"has {name} {sample.get(name)!r}, expected {whole[name]!r}"
    return ""


def _decode(where: str, name: str, text: str) -> bytes:
    """The bytes of one artifact. Raises StorqualError when name, encoding or digest is wrong."""
    if not _RAW_NAME.match(name):
        raise StorqualError(f"{where}: found artifact {name[:120]!r}, expected raw/<sha256>.<type>")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise StorqualError(f"{where}: artifact {name} is not base64") from None
    if sha256_of(data) != name[4:68]:
        raise StorqualError(f"{where}: artifact {name} holds bytes of digest {sha256_of(data)}")
    return data


def _check_evidence(where: str, run: Path, samples: Sequence[Mapping[str, Any]], files: Mapping[str, bytes]) -> None:
    """Every piece of evidence that a sample names is here or was stored before. Raises StorqualError."""
    for line in samples:
        for raw in Sample.from_json(line).raw:
            if not _RAW_NAME.match(raw.path) or raw.path[4:68] != raw.sha256:
                raise StorqualError(
                    f"{where}: sample {line['id']} names {raw.path[:120]!r} with digest {raw.sha256!r}"
                )
            if raw.path not in files and not (run / raw.path).is_file():
                raise StorqualError(f"{where}: sample {line['id']} names {raw.path}, which the spool does not hold")


def _ordered(sample: Mapping[str, Any]) -> dict[str, Any]:
    """The sample with schema and id in front: the line of `samples.jsonl`."""
    first = {"schema": sample.get("schema") or SAMPLE_SCHEMA, "id": sample["id"]}
    return {**first, **{name: value for name, value in sample.items() if name not in first}}


def _stored(run: Path, batch: str) -> dict[str, str]:
    """Digest by id of the samples of `block` that are stored; the other lines are not even parsed."""
    prefix = f"{batch}/".encode()
    digests = {}
    for _, line in read_lines(run, SAMPLES):
        match = _STORED_ID.match(line)
        if match is not None and match.group(1).startswith(prefix):
            digests[match.group(1).decode()] = sha256_of(line)
    return digests


def batch_digest(lines: Iterable[str]) -> str:
    """What stands for all samples of a batch: the digest over those of their lines, in the order of the file."""
    return sha256_of("".join(lines).encode())


def _finish(
    run: Path, planned: Mapping[str, Any], parts: _Spool, lost: str | None, digests: Sequence[str]
) -> tuple[str, str]:
    """Append `block_finished` when the block is over and that was not said before; returns outcome and message."""
    if not parts.end and lost is None:
        return "", ""
    outcome = str(parts.end.get("outcome") or "done") if parts.end else "lost"
    message = str(parts.end.get("message") or "") if parts.end else str(lost)
    recorded = any(
        event.kind == "block_finished" and event.fields.get("block") == planned["block"] for event in iter_events(run)
    )
    if not recorded:
        log = parts.kernel_log
        fields = {
            "bench": planned["bench"],
            "session": planned["session"],
            "block": planned["block"],
            "outcome": outcome,
            "message": message,
            "samples": len(digests),
            "sha256": batch_digest(digests),
            "boot_id": parts.start.get("boot_id"),
            "start": {name: value for name, value in parts.start.items() if name != "kind"},
            "end": {name: value for name, value in parts.end.items() if name != "kind"},
            "findings": parts.findings,
            "kernel_log": keep_raw(run, json.dumps(log, ensure_ascii=False).encode(), "json.gz") if log else None,
            **({"preconditioned": parts.preconditioned} if parts.preconditioned else {}),
        }
        append_event_locked(run, "block_finished", fields)
    return outcome, message


def finish_streamed(
    run: Path,
    planned: Mapping[str, Any],
    outcome: str,
    message: str,
    fields: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[str, str]:
    """Append the end of a streamed batch, whose turns have records and no samples; outcome and message.

    `fields` says more of a lost one: `lost`, the turn that was cut short and whether the bench was booted, or
    `interrupted` where its campaign was killed.
    """
    names = {name: planned[name] for name in ("bench", "session", "block")}
    ended = {"outcome": outcome, "message": message, "samples": 0, "sha256": batch_digest(())}
    append_event(run, "block_finished", {**names, **ended, **fields})
    return outcome, message


def keep_raw(run: Path, text: bytes, ending: str) -> dict[str, str]:
    """Keep a text packed as a raw file, `raw/<sha256>.<ending>`; how a record or an event names it."""
    data = gzip.compress(text, mtime=0)
    digest = sha256_of(data)
    path = f"{RAW}/{digest}.{ending}"
    if not (run / path).is_file():
        write_bytes(run / path, data)
    return {"path": path, "sha256": digest}
