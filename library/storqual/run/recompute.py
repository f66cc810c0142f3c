# SPDX-License-Identifier: Apache-2.0
"""Each sample against what it rests on: the batch that launched it, its raw evidence, and what follows from that."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storqual.run.collect import read_block, sample_problem
from storqual.run.layout import RAW, SAMPLES, sha256_of
from storqual_core.kit.errors import StorqualError
from storqual_core.measure.derive import RECORD, SAMPLE_SCHEMA, derive

MOST_TOLD = 20
"""Sentences of one kind of finding; the rest is counted."""
_BLOCKS_HELD = 16
_RECORD_END = f".{RECORD}.gz"


class SampleCheck:
    """Looks at each sample of a run once, in the order in which they were collected.

    `findings` are sentences that begin with the file that is wrong. With `derived` each sample is made again from its
    evidence, as runs have it since storqual.run/2.
    """

    def __init__(self, run: Path, name: str, *, derived: bool) -> None:
        self.findings: list[str] = []
        self.more = 0
        self.by_block: defaultdict[str, list[str]] = defaultdict(list)
        self.used: set[str] = set()
        self._run = run
        self._name = name
        self._derived = derived
        self._blocks: OrderedDict[str, tuple[Mapping[str, Any], Mapping[str, Any]] | str] = OrderedDict()
        self._last: dict[str, int] = {}

    def look(self, line: bytes, sample: Mapping[str, Any]) -> None:
        """One more sample: its line, and the same parsed."""
        self.by_block[str(sample.get("block"))].append(sha256_of(line))
        told = self._place(sample) or self._evidence(sample)
        if told:
            self.tell(told)

    def tell(self, finding: str) -> None:
        """One more finding; beyond the first ones they are only counted."""
        if len(self.findings) < MOST_TOLD:
            self.findings.append(finding)
        else:
            self.more += 1

    def _place(self, sample: Mapping[str, Any]) -> str:
        """Whether the sample is of a launch of its batch, and comes after those before it."""
        name, block = str(sample.get("id")), str(sample.get("block"))
        planned = self._block(block)
        if isinstance(planned, str):
            return planned
        launches, document = planned
        problem = sample_problem(sample, launches.get(name), document)
        if problem:
            return f"{SAMPLES}: sample {name} {problem}"
        index = int(launches[name]["index"])
        if index <= self._last.get(block, -1):
            return f"{SAMPLES}: sample {name} stands behind one that was launched after it"
        self._last[block] = index
        return ""

    def _block(self, block: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | str:
        """The launches of a batch by sample id with its file, or why there are none."""
        held = self._blocks.get(block)
        if held is None:
            try:
                document = read_block(self._run, block)
                launches = {f"{block}/{launch['index']}": launch for launch in document["launches"]}
                held = (launches, document)
            except (StorqualError, KeyError, TypeError) as problem:
                held = str(problem).removeprefix(f"{self._run}/")
            self._blocks[block] = held
            if len(self._blocks) > _BLOCKS_HELD:
                self._blocks.popitem(last=False)
        return held

    def _evidence(self, sample: Mapping[str, Any]) -> str:
        """Whether the raw files of a sample are there, and say what the sample says."""
        name = str(sample["id"])
        texts: dict[str, str] = {}
        for file in sample.get("raw") or ():
            data = self._raw(str(file["path"]), str(file["sha256"]))
            if isinstance(data, str):
                return f"{data} (it is evidence of sample {name})"
            if self._derived:
                texts[file["path"]] = data.decode("utf-8", "replace")
        if not self._derived:
            return ""
        if sample.get("schema") != SAMPLE_SCHEMA:
            return f"{SAMPLES}: sample {name} is of schema {sample.get('schema')!r}, expected {SAMPLE_SCHEMA!r}"
        if not texts:
            return _without_evidence(sample)
        return self._made_again(sample, texts)

    def _raw(self, path: str, sha256: str) -> bytes | str:
        """The text of a piece of evidence, unpacked; a sentence where it is not what its name says."""
        file = self._run / path
        if not path.startswith(f"{RAW}/{sha256}.") or "/" in path[len(RAW) + 1 :]:
            return f"{SAMPLES}: found evidence named {path[:100]!r} with digest {sha256[:70]!r}"
        self.used.add(path)
        return read_raw(file, path, sha256, unpack=self._derived)

    def _made_again(self, sample: Mapping[str, Any], texts: Mapping[str, str]) -> str:
        name = str(sample["id"])
        records = [text for path, text in texts.items() if path.endswith(_RECORD_END)]
        if len(records) != 1:
            return f"{SAMPLES}: sample {name} has {len(records)} records of its launch, expected one"
        try:
            record = json.loads(records[0])
            if record["run"] != self._name:
                return f"{SAMPLES}: the record of sample {name} is of run {record['run']!r}"
            made = derive(record, texts)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as problem:
            return f"{SAMPLES}: sample {name} cannot be derived from its raw files ({problem!r})"
        wrong = [key for key in made.keys() | sample.keys() if key != "raw" and made.get(key) != sample.get(key)]
        return f"{SAMPLES}: sample {name}: {_differences(made, sample, sorted(wrong))}" if wrong else ""


def read_raw(file: Path, path: str, sha256: str, *, unpack: bool) -> bytes | str:
    """The bytes of a piece of evidence, unpacked where that is asked; a sentence where its digest is another one."""
    try:
        data = file.read_bytes()
    except OSError as problem:
        return f"{path}: cannot be read ({problem.strerror})"
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        return f"{path}: holds bytes of digest {found}"
    if not unpack:
        return b""
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as problem:
        return f"{path}: cannot be unpacked ({problem})"


def _without_evidence(sample: Mapping[str, Any]) -> str:
    """A launch that was never run has no evidence, and nothing that it measured."""
    name = str(sample["id"])
    measured = (sample.get("series") or {}).get("iops") or sample["primitives"].keys() - {"asked_runtime_ns"}
    if sample.get("status") == "lost" and not measured:
        return ""
    return f"{SAMPLES}: sample {name} has no raw files that it can be derived from"


def _differences(made: Mapping[str, Any], sample: Mapping[str, Any], keys: list[str]) -> str:
    """What the raw files say and what the sample says, for the first thing that differs."""
    key = keys[0]
    if key == "primitives":
        both = made[key], sample.get(key) or {}
        key = min(name for name in both[0].keys() | both[1].keys() if both[0].get(name) != both[1].get(name))
        made, sample = both
    said, found = (_short(one.get(key)) for one in (sample, made))
    return f"found {key} {said}, its raw files say {found}"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
