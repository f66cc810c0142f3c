# SPDX-License-Identifier: Apache-2.0
"""Tampering before signing: raw files, and the files of batches."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

from storqual.run import sha256_of
from tests.attacks.before.tampering import document, edited, kind
from tests.attacks.finished_run import put


def raw_file(run: Path, source: random.Random) -> Path:
    """Any raw file."""
    return source.choice(sorted((run / "raw").iterdir()))


@kind
def a_raw_file_is_deleted(run: Path, source: random.Random) -> None:
    raw_file(run, source).unlink()


@kind
def a_raw_file_is_emptied(run: Path, source: random.Random) -> None:
    put(raw_file(run, source), b"")


@kind
def a_raw_file_is_cut(run: Path, source: random.Random) -> None:
    path = raw_file(run, source)
    data = path.read_bytes()
    put(path, data[: source.randrange(len(data))])


@kind
def a_bit_of_a_raw_file_is_turned(run: Path, source: random.Random) -> None:
    path = raw_file(run, source)
    data = bytearray(path.read_bytes())
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    put(path, bytes(data))


@kind
def a_raw_file_is_another_one(run: Path, source: random.Random) -> None:
    path, other = source.sample(sorted((run / "raw").iterdir()), 2)
    put(path, other.read_bytes())


@kind
def a_raw_file_is_a_link(run: Path, source: random.Random) -> None:
    path, other = source.sample(sorted((run / "raw").iterdir()), 2)
    path.unlink()
    path.symlink_to(other)


@kind
def a_raw_file_is_added(run: Path, source: random.Random) -> None:
    put(run / "raw" / f"{source.getrandbits(256):064x}.json.gz", gzip.compress(b"{}"))


@kind
def raw_files_and_their_digests_are_changed_together(run: Path, source: random.Random) -> None:
    """The figures, the raw file that they follow from and its name agree; the batch was collected as another one."""
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        for file in sample["raw"]:
            if file["path"].endswith(".json.gz"):
                path = run / file["path"]
                text = gzip.decompress(path.read_bytes()).replace(b'"ctx": ', b'"ctx": 1')
                data = gzip.compress(text, mtime=0)
                file["sha256"] = sha256_of(data)
                file["path"] = f"raw/{file['sha256']}.json.gz"
                put(run / file["path"], data)
                sample["primitives"]["fio_context_switches"] = json.loads(text)["jobs"][0]["ctx"]


@kind
def a_batch_is_deleted(run: Path, source: random.Random) -> None:
    source.choice(sorted((run / "blocks").iterdir())).unlink()


@kind
def a_batch_is_emptied(run: Path, source: random.Random) -> None:
    put(source.choice(sorted((run / "blocks").iterdir())), source.choice((b"", b"{}", b"[]")))


@kind
def a_batch_is_added(run: Path, source: random.Random) -> None:
    path = source.choice(sorted((run / "blocks").iterdir()))
    put(path.with_name(f"s{source.randrange(20, 90)}-b01.json"), path.read_bytes())


@kind
def a_launch_of_a_batch_is_changed(run: Path, source: random.Random) -> None:
    with document(source.choice(sorted((run / "blocks").iterdir()))) as block:
        launch = source.choice(block["turns"])
        name = source.choice(("arm", "configuration", "point", "n", "request", "drives"))
        longer = {"fio": {**launch["request"]["fio"], "runtime_s": 1.5}}
        launch[name] = {"arm": "baseline", "n": 77, "drives": [], "request": longer}.get(name, "other")
        block["idle_s"] = source.random()


@kind
def a_launch_of_a_batch_is_taken_out(run: Path, source: random.Random) -> None:
    with document(source.choice(sorted((run / "blocks").iterdir()))) as block:
        block["turns"].pop(source.randrange(len(block["turns"])))
