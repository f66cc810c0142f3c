# SPDX-License-Identifier: Apache-2.0
"""Tampering after signing: what is in one file, its name, its place."""

from __future__ import annotations

import gzip
import json
import random
import shutil

from tests.attacks.after.tampering import LINES, TEXTS, Attack, kind


@kind
def a_bit_is_flipped(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    data = bytearray(path.read_bytes())
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    path.write_bytes(data)


@kind
def a_file_is_cut(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.write_bytes(path.read_bytes()[: source.randrange(path.stat().st_size)])


@kind
def a_file_is_emptied(attack: Attack, source: random.Random) -> None:
    attack.any_file(source).write_bytes(b"")


@kind
def a_file_gets_more_bytes(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.write_bytes(path.read_bytes() + source.choice((b"\n", b" ", b"\0", b"x")))


@kind
def a_file_is_deleted(attack: Attack, source: random.Random) -> None:
    attack.any_file(source).unlink()


@kind
def a_file_is_renamed(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.rename(path.with_name(source.choice((path.name.upper(), f"{path.name} ", f".{path.name}", f"{path.name}~"))))


@kind
def a_file_is_moved(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.rename(attack.run / ("moved" if path.parent != attack.run else "inputs/moved"))


@kind
def two_files_change_places(attack: Attack, source: random.Random) -> None:
    raw = sorted(path for path in (attack.run / "inputs").iterdir() if path.is_file())
    one, other = source.sample(raw, 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


@kind
def a_file_of_another_run_takes_its_place(attack: Attack, source: random.Random) -> None:
    name = source.choice(("verdict.json", "samples.jsonl", "run.json", "report.html"))
    shutil.copy(attack.other / name, attack.run / name)


@kind
def a_file_has_other_ends_of_lines(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(TEXTS)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@kind
def a_file_gets_a_byte_order_mark(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(TEXTS)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


@kind
def json_is_written_in_another_way(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(("run.json", "verdict.json"))
    path.write_text(json.dumps(json.loads(path.read_text()), indent=source.choice((2, 3, 4))))


@kind
def a_key_is_doubled(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(("run.json", "verdict.json"))
    path.write_text(path.read_text().replace("{", '{"outcome": "PASS",', 1))


@kind
def a_digit_is_changed(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(TEXTS[:4])
    data = bytearray(path.read_bytes())
    place = source.choice([index for index, byte in enumerate(data) if chr(byte).isdigit()])
    data[place] = ord(str((data[place] - 48 + source.randrange(1, 10)) % 10))
    path.write_bytes(data)


@kind
def lines_change_places(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(LINES)
    lines = path.read_bytes().splitlines(keepends=True)
    one, other = source.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    path.write_bytes(b"".join(lines))


@kind
def a_line_is_deleted(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(LINES)
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[source.randrange(len(lines))]
    path.write_bytes(b"".join(lines))


@kind
def a_line_is_doubled(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(LINES)
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(source.randrange(len(lines)), source.choice(lines))
    path.write_bytes(b"".join(lines))


@kind
def the_last_line_is_torn(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(LINES)
    path.write_bytes(path.read_bytes()[: -source.randrange(1, 20)])


@kind
def a_check_is_added(attack: Attack, source: random.Random) -> None:
    with (attack.run / "checks.jsonl").open("ab") as file:
        file.write(b'{"id":"more","outcome":"PASS","source":"x","time":"2026-11-21T10:00:00Z"}\n')


@kind
def packed_evidence_is_packed_again(attack: Attack, source: random.Random) -> None:
    path = attack.run / "inputs" / "kept.json.gz"
    path.write_bytes(
        gzip.compress(gzip.decompress(path.read_bytes()), source.randrange(1, 9), mtime=source.randrange(9))
    )


@kind
def a_file_becomes_a_folder(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.unlink()
    path.mkdir()
