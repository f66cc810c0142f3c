# SPDX-License-Identifier: Apache-2.0
"""Each sample against what it rests on: the batch that launched it, its raw evidence, and what follows from that."""

import gc
import hashlib
import json
import zlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import orjson
from pydantic_core import from_json, to_json

from storqual.base.child import Workers
from storqual.base.files import OddFileError, OpenFolder, unpacked
from storqual.kinds.kind import PlannedTurn
from storqual.kinds.launch import LAUNCH, RECORD_END
from storqual.run.collect import read_batch, sample_problem
from storqual.run.files import LIMITS, read_bytes, read_packed_lines
from storqual.run.layout import BATCHES, RAW, SAMPLES, sha256_of
from storqual_core.kit.errors import StorqualError
from storqual_core.turns.derive import SAMPLE_SCHEMA, derive, idle_of
from storqual_core.turns.fio_result import FioDocument, document_of

MOST_FINDINGS = 20
"""Sentences of one kind of finding; the rest is counted."""
_BATCHES_HELD = 16
_FEW = 2000
"""Samples that are held to their evidence in this process; starting others takes as long."""
_CHUNK = 200
_MOST_PENDING = 8
_BEGINS = f'{{"schema":"{SAMPLE_SCHEMA}",'.encode()
_RAW_AT = b',"raw":['
_UNPACKED = LIMITS[f"{RAW}/"]
_CHUNK_BYTES = 4 << 20
_AS_ONE = bytes.maketrans(b"0123456789:,[- \t\r\n", b"0" * 10 + b":" * 8)
_LONG_NUMBER = b":" + b"0" * 20
_UNDERIVABLE = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""What a record raises that is none, or whose numbers are larger than any launch has them."""
_NULL = b"null"
"""What orjson, which is faster, writes for NaN and infinity too; `to_json` does not."""


class SampleCheck:
    """Looks at each sample of a run once, in the order in which they were collected.

    `findings` are sentences that begin with the file that is wrong. Each sample is made again from its evidence.
    """

    def __init__(self, run: Path, name: str) -> None:
        self.findings: list[str] = []
        self.more = 0
        self.by_batch: defaultdict[str, list[str]] = defaultdict(list)
        self._run = run
        self._name = name
        self._batches: OrderedDict[str, tuple[Mapping[str, Any], Mapping[str, Any]] | str] = OrderedDict()
        self._last: dict[str, int] = {}
        self._seen = 0
        self._chunk: list[bytes] = []
        self._chunk_bytes = 0
        self._raw = _raw(run)
        self._pending: deque[Future[list[str]]] = deque()
        self._pool: Workers | None = None

    def look(self, line: bytes, sample: Mapping[str, Any]) -> None:
        self.by_batch[str(sample.get("block"))].append(sha256_of(line))
        problem = self._ordered(sample)
        if problem:
            self.tell(problem)
        else:
            self._hold(line, sample)

    def tell(self, finding: str) -> None:
        """One more finding; beyond the first ones they are only counted."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
        else:
            self.more += 1

    def _ordered(self, sample: Mapping[str, Any]) -> str:
        name, batch = str(sample.get("id")), str(sample.get("block"))
        planned = self._batch(batch)
        if isinstance(planned, str):
            return planned
        launches, document = planned
        problem = sample_problem(sample, launches.get(name), document)
        if problem:
            return f"{SAMPLES}: sample {name} {problem}"
        index, before = int(launches[name]["index"]), self._last.get(batch, -1)
        if index <= before:
            return f"{SAMPLES}: sample {name} comes after one that was launched later"
        self._last[batch] = index
        # a batch may end early, and then its last launches are missing, never one before a sample
        return f"{SAMPLES}: has no sample of the launch before {name}" if index > before + 1 else ""

    def launched(self, batch: str) -> list[tuple[str, str, str]]:
        """Bench, adapter and point of each launch of a batch; nothing where its file is no batch."""
        planned = self._batch(batch)
        turns, document = ({}, {}) if isinstance(planned, str) else planned
        return [
            (str(document.get("bench")), str(turn.get("adapter")), str(turn.get("point")))
            for turn in turns.values()
            if turn.get("kind") == "launch"
        ]

    def _batch(self, batch: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | str:
        """The launches of a batch by sample id with its file, or why there are none."""
        planned = self._batches.get(batch)
        if planned is None:
            try:
                document = read_batch(self._run, batch)
                planned = ({turn["id"]: turn for turn in document["turns"]}, document)
                for turn in planned[0].values() if document["spool"] == "durable" else ():
                    # what is asked of it later is there
                    _ = int(turn["index"]), sample_problem({**document, **turn}, turn, document)
            except StorqualError as problem:
                planned = str(problem).removeprefix(f"{self._run}/")
            except (KeyError, TypeError, ValueError) as problem:
                planned = f"{BATCHES}/{batch}.json: this is no batch ({problem!r})"
            self._batches[batch] = planned
            if len(self._batches) > _BATCHES_HELD:
                self._batches.popitem(last=False)
        return planned

    def _hold(self, line: bytes, sample: Mapping[str, Any]) -> None:
        """Hold a sample to its raw files: now, or in a process beside this one where there are many."""
        self._seen += 1
        if self._seen <= _FEW:
            if not (self._raw and is_made_again(self._raw, self._name, line)):
                self._tell_all([evidence_problem(self._run, self._name, sample)])
            return
        if self._pool is None:
            # samples are let go one by one and have no cycles: looking for some takes a fifth of the time
            self._pool = Workers(gc.disable)
        # as text: taking a parsed sample apart for another process costs more than parsing it there
        self._chunk.append(line)
        self._chunk_bytes += len(line)
        if len(self._chunk) == _CHUNK or self._chunk_bytes > _CHUNK_BYTES:
            self._send(self._pool)

    def _send(self, pool: Workers) -> None:
        while len(self._pending) >= _MOST_PENDING:
            self._tell_all(self._pending.popleft().result())
        self._pending.append(pool.submit(_problems, self._run, self._name, self._chunk))
        self._chunk, self._chunk_bytes = [], 0

    def finish(self) -> None:
        """Wait for what is looked at beside this process; call it when every sample was seen."""
        if self._pool is None:
            return
        with self._pool as pool:
            if self._chunk:
                self._send(pool)
            while self._pending:
                self._tell_all(self._pending.popleft().result())
        self._pool = None

    def _tell_all(self, findings: Iterable[str]) -> None:
        for finding in filter(None, findings):
            self.tell(finding)


def _raw(run: Path) -> OpenFolder | None:
    """The folder of raw files, held open; None where there is none: each file is named as missing then."""
    try:
        return OpenFolder(run, RAW)
    except OSError:
        return None


def _problems(run: Path, name: str, lines: Sequence[bytes]) -> list[str]:
    """What is wrong with some samples, in a process of its own."""
    raw = _raw(run)
    # only what does not come out of its evidence as it stands there has to be parsed
    samples = (from_json(line, allow_inf_nan=False) for line in lines if not (raw and is_made_again(raw, name, line)))
    return [problem for sample in samples if (problem := evidence_problem(run, name, sample))]


class _LastIdle:
    """The idle window of a batch is measured once and stands in the record of each of its launches."""

    def __init__(self) -> None:
        self._window: tuple[Sequence[Mapping[str, object]], int] = ([], 0)
        self._usage: dict[str, int] = {}

    def __call__(self, idle: Sequence[Mapping[str, object]], tick_ns: int) -> dict[str, int]:
        if (idle, tick_ns) != self._window:
            self._usage = idle_of(idle, tick_ns)
            self._window = (idle, tick_ns)
        return self._usage


_idle = _LastIdle()


def is_made_again(raw: OpenFolder, run_name: str, line: bytes) -> bool:
    """Whether this line of samples.jsonl comes out of its raw files in the folder `raw`, byte for byte.

    The quick way: nearly all lines do, and one that is proven need not be parsed. False means only that it is not
    proven this way: `evidence_problem` then reads the files as the bench did, and says what is wrong.
    """
    at = line.rfind(_RAW_AT)
    if at < 0 or not line.startswith(_BEGINS):
        return False
    try:
        # if these are not the files that the line names, the line made of them is another one
        files = orjson.loads(line[at + len(_RAW_AT) - 1 : -1])
        texts, records = {}, []
        for file in files:
            path, sha256 = file["path"], file["sha256"]
            if not path.startswith(f"{RAW}/{sha256}.") or "/" in path[len(RAW) + 1 :]:
                return False
            data = raw.read(path[len(RAW) + 1 :], _UNPACKED.most)
            if hashlib.sha256(data).hexdigest() != sha256:
                return False
            text = _text(data)
            texts[path] = text.decode()
            if path.endswith(RECORD_END):
                records.append(text)
        if len(records) != 1:
            return False
        record = _record(records[0])
        dumped = to_json if _NULL in line else orjson.dumps
        return record["run"] == run_name and dumped({**derive(record, texts, _alone, _idle), "raw": files}) == line
    except (OSError, EOFError, zlib.error, OddFileError, *_UNDERIVABLE):
        return False


def _record(text: bytes) -> Any:  # noqa: ANN401 - whatever the record holds
    """A record of a launch. Raises ValueError for one that could be read in more than one way.

    One that comes out of its value again, as storqual writes it, has no key twice and no number that was rounded.
    """
    record = orjson.loads(text)
    if orjson.dumps(record) == text:
        return record
    # orjson reads a whole number past 64 bits as a float; the slow way reads it as it stands there
    if _LONG_NUMBER in text.translate(_AS_ONE):
        raise ValueError("a number is too long")
    return _strictly(text.decode())


def _alone(output: str) -> tuple[FioDocument | None, str]:
    """The result of fio where nothing stands beside it and no key twice. Raises ValueError where that is not so."""
    document = document_of(_strictly(output))
    if document is None:
        raise ValueError("this is not a result of fio")
    return document, ""


def _strictly(text: str) -> Any:  # noqa: ANN401 - whatever the text holds
    """What a JSON text holds. Raises ValueError where a key stands in it twice, or may: which is meant is not known.

    A pair that was dropped takes its colons along, and on the way to a value and back no other is lost or won but
    one that was written as an escape.
    """
    value = orjson.loads(text)
    # one character is found many times faster than two, and fio prints no escapes
    escaped = "\\" in text and "\\u" in text
    if escaped or orjson.dumps(value).count(b":") != text.count(":"):
        raise ValueError("a key may stand twice in this")
    return value


def _text(data: bytes) -> bytes:
    """A raw file unpacked. Raises EOFError for one that cannot be, or has more in it than fits in memory."""
    text = unpacked(data, _UNPACKED.unpacked)
    if len(text) > _CHUNK_BYTES and sum(map(text.count, (b":", b"[", b"{"))) > _UNPACKED.values:
        raise EOFError(f"it has more than {_UNPACKED.values} values")
    return text


class RawFiles:
    """The raw files that a sample or a record names, each held to its name and its digest when it is read."""

    def __init__(self, run: Path, files: Sequence[Mapping[str, Any]]) -> None:
        self._run = run
        self._files = {str(file["path"]): str(file["sha256"]) for file in files}
        self.unread = list(self._files)
        for path, sha256 in self._files.items():
            if not path.startswith(f"{RAW}/{sha256}.") or "/" in path[len(RAW) + 1 :]:
                raise StorqualError(f"found evidence named {path[:100]!r} with digest {sha256[:70]!r}")

    def texts(self) -> dict[str, str]:
        """All of them, unpacked, by their paths. Raises StorqualError."""
        texts = {}
        for path, sha256 in self._files.items():
            data = read_raw(self._run, path, sha256, unpack=True)
            if isinstance(data, str):
                raise StorqualError(data)
            texts[path] = data.decode("utf-8", "replace")
        self.unread = []
        return texts

    def lines(self, what: str) -> Iterator[Any] | None:
        """The values of the lines of the file that is called so, one after the other. Raises StorqualError."""
        named = [path for path, sha256 in self._files.items() if path == f"{RAW}/{sha256}.{what}.jsonl.gz"]
        if not named:
            return None
        (path,) = named
        self.unread.remove(path)
        return self._lines(path)

    def _lines(self, path: str) -> Iterator[Any]:
        try:
            data = read_bytes(self._run, path)
        except FileNotFoundError:
            raise StorqualError(f"{path} is missing") from None
        if hashlib.sha256(data).hexdigest() != self._files[path]:
            raise StorqualError(f"{path} is not what the bench told: its digest is another one")
        yield from read_packed_lines(data, path)


def evidence_problem(run: Path, run_name: str, sample: Mapping[str, Any]) -> str:
    """Why the raw files of a sample are not there, or do not say what it says; empty when they do."""
    name, raw = str(sample["id"]), sample.get("raw") or ()
    if sample.get("schema") != SAMPLE_SCHEMA:
        return f"{SAMPLES}: sample {name} is of schema {sample.get('schema')!r}, expected {SAMPLE_SCHEMA!r}"
    if not raw:
        return _without_evidence(sample)
    try:
        turn = PlannedTurn.of(
            {**sample, "run": run_name}, {**sample, "kind": "launch", "drives": [""], "request": {}}
        )
        made = LAUNCH.derive(turn, RawFiles(run, raw))
    except StorqualError as problem:
        where = "" if str(problem).startswith(f"{RAW}/") else f"{SAMPLES}: "
        return f"{where}{problem} (it is evidence of sample {name})"
    except _UNDERIVABLE as problem:
        return f"{SAMPLES}: sample {name} cannot be derived from its raw files ({problem!r})"
    wrong = first_difference({**made, "raw": raw}, sample)
    return f"{SAMPLES}: sample {name}: {wrong}" if wrong else ""


def read_raw(run: Path, path: str, sha256: str, *, unpack: bool) -> bytes | str:
    """The bytes of a piece of evidence, unpacked where that is asked; a sentence where its digest is another one."""
    try:
        data = read_bytes(run, path)
    except OSError as problem:
        return f"{path}: cannot be read ({problem.strerror})"
    except OddFileError as problem:
        return str(problem).removeprefix(f"{run}/")
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        return f"{path}: holds bytes of digest {digest}"
    if not unpack:
        return b""
    try:
        return _text(data)
    except (EOFError, zlib.error) as problem:
        return f"{path}: cannot be unpacked ({problem})"


def _without_evidence(sample: Mapping[str, Any]) -> str:
    """A launch that was never run has no evidence, and nothing that it measured."""
    name = str(sample["id"])
    measured = (sample.get("series") or {}).get("iops") or sample["primitives"].keys() - {"asked_runtime_ns"}
    measured = measured or (sample.get("data") or {}).keys() - {"reason"}
    if sample.get("status") == "lost" and not measured:
        return ""
    return f"{SAMPLES}: sample {name} has no raw files that it can be derived from"


def first_difference(made: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    """What the raw files say and what a sample or a record says, for the first thing that differs; empty for none."""
    keys = made.keys() | stored.keys()
    differing = (key for key in keys if made.get(key) != stored.get(key) or (key in made) != (key in stored))
    key = min(differing, default="")
    if not key:
        return ""
    if key == "primitives":
        return first_difference(made[key], stored.get(key) or {}) or "found other primitives"
    return f"found {key} {short(stored.get(key))}, its raw files say {short(made.get(key))}"


def short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
