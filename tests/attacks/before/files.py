# SPDX-License-Identifier: Apache-2.0
"""Tampering before signing: whole files and folders, and lines of a file whatever is in them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tests.attacks.before.tampering import kind
from tests.attacks.finished_run import put

FILES = ("samples.jsonl", "checks.jsonl", "events.jsonl")


@kind
def a_file_is_deleted(run: Path, source: random.Random) -> None:
    (run / source.choice(FILES)).unlink()


@kind
def a_file_is_emptied(run: Path, source: random.Random) -> None:
    put(run / source.choice(FILES), b"")


@kind
def a_folder_is_deleted(run: Path, source: random.Random) -> None:
    shutil.rmtree(run / source.choice(("raw", "blocks", "inputs")))


@kind
def all_evidence_is_deleted(run: Path, _source: random.Random) -> None:
    shutil.rmtree(run / "raw")
    shutil.rmtree(run / "blocks")
    (run / "events.jsonl").unlink()
    (run / "checks.jsonl").unlink()


@kind
def a_file_is_cut_at_the_end_of_a_line(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    # what stands behind the closing event adds nothing that is judged
    most = len(lines) - (3 if path.name == "events.jsonl" else 1)
    put(path, b"".join(lines[: source.randint(1, most)]))


@kind
def a_file_is_cut_anywhere(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES[:2])
    data = path.read_bytes()
    put(path, data[: source.randrange(len(data) - 1)])


@kind
def a_line_is_taken_out(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[source.randrange(len(lines) - 3)]
    put(path, b"".join(lines))


@kind
def a_line_stands_twice(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    put(path, b"".join([*lines, source.choice(lines)]))


@kind
def two_lines_change_places(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    one, other = source.sample(range(len(lines) - 3), 2)
    lines[one], lines[other] = lines[other], lines[one]
    put(path, b"".join(lines))


@kind
def two_lines_stand_in_one(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    number = source.randrange(len(lines) - 3)
    lines[number] = lines[number][:-1]
    put(path, b"".join(lines))
