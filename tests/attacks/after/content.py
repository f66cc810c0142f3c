# SPDX-License-Identifier: Apache-2.0
"""Tampering after signing: what is in one file, its name, its place."""

import gzip
import json
import os
import random
import shutil

from storqual.run.layout import MANIFEST
from tests.attacks.after.tampering import ENVELOPE, LINES, SIGNATURES, TEXTS, Attack, kind


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


@kind
def a_file_is_added(attack: Attack, source: random.Random) -> None:
    name = source.choice(
        (".hidden", "verdict.json.bak", "raw/x", "inputs/x.yml", "blocks/x.json", "Verdict.json", "-rf")
    )
    (attack.run / name).write_text("{}")


@kind
def an_empty_file_is_added(attack: Attack, source: random.Random) -> None:
    (attack.run / source.choice(("empty", "raw/empty", ".gitignore"))).touch()


@kind
def a_file_with_a_hostile_name_is_added(attack: Attack, source: random.Random) -> None:
    name = source.choice(("a\nVALID", "\x1b[2J", "\u202egpj.exe", "run.json\u200b", "{{ 7*7 }}", "=1+1"))
    (attack.run / "raw" / name).write_text("x")


@kind
def a_file_whose_name_is_no_utf8_is_added(attack: Attack, source: random.Random) -> None:
    (attack.run / os.fsdecode(bytes([0xFF, source.randrange(0x80, 0xFF)]))).write_text("x")


@kind
def an_empty_folder_is_added(attack: Attack, source: random.Random) -> None:
    (attack.run / source.choice(("more", "raw/more", ".git", "signoff", "annexes", "signoff.boss.json"))).mkdir()


@kind
def a_folder_with_files_is_added(attack: Attack, source: random.Random) -> None:
    folder = attack.run / source.choice(("judgements", "inputs/annex", "raw/annex", "runs"))
    folder.mkdir()
    shutil.copy(attack.other / "verdict.json", folder)


@kind
def a_judgement_is_put_where_judgements_were(attack: Attack, source: random.Random) -> None:
    folder = attack.run / "judgements" / f"{source.getrandbits(64):016x}"
    folder.mkdir(parents=True)
    shutil.copy(attack.other / "verdict.json", folder)


@kind
def a_whole_run_is_put_inside(attack: Attack, source: random.Random) -> None:
    shutil.copytree(attack.other, attack.run / source.choice(("raw/run", "run", "inputs/run")))


@kind
def a_folder_is_deleted(attack: Attack, source: random.Random) -> None:
    shutil.rmtree(attack.run / source.choice(("raw", "inputs")))


@kind
def an_empty_folder_is_deleted(attack: Attack, source: random.Random) -> None:
    (attack.run / "inputs" / "none").rmdir()


@kind
def a_folder_is_renamed(attack: Attack, source: random.Random) -> None:
    (attack.run / source.choice(("raw", "inputs"))).rename(attack.run / "renamed")


@kind
def a_file_is_put_into_the_annex(attack: Attack, source: random.Random) -> None:
    (attack.run / "annex").mkdir(exist_ok=True)
    (attack.run / "annex" / source.choice(("note.txt", ".hidden", "verdict.json", "run.sh"))).write_text("x")


@kind
def a_link_is_put_into_the_annex(attack: Attack, source: random.Random) -> None:
    (attack.run / "annex").mkdir(exist_ok=True)
    (attack.run / "annex" / "note.txt").symlink_to(source.choice(("../verdict.json", "/etc/hostname", "none")))


@kind
def another_name_is_put_into_the_annex(attack: Attack, source: random.Random) -> None:
    (attack.run / "annex").mkdir(exist_ok=True)
    os.link(attack.any_file(source), attack.run / "annex" / "copy")


@kind
def the_annex_is_a_file(attack: Attack, source: random.Random) -> None:
    (attack.run / "annex").write_text("x")


@kind
def a_file_becomes_a_link_to_its_copy(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    copy = attack.run.with_name("elsewhere")
    path.rename(copy)
    path.symlink_to(copy)


@kind
def a_folder_becomes_a_link_to_its_copy(attack: Attack, source: random.Random) -> None:
    folder = attack.run / source.choice(("raw", "inputs"))
    copy = attack.run.with_name("elsewhere")
    folder.rename(copy)
    folder.symlink_to(copy)


@kind
def a_link_is_added(attack: Attack, source: random.Random) -> None:
    (attack.run / source.choice(("link", "raw/link", "annex"))).symlink_to(
        source.choice(("/etc/hostname", ".", "none"))
    )


@kind
def a_file_gets_another_name_outside(attack: Attack, source: random.Random) -> None:
    os.link(attack.any_file(source), attack.run.with_name("elsewhere"))


@kind
def a_file_is_a_name_of_another_runs_file(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    data = path.read_bytes()
    path.unlink()
    attack.run.with_name("elsewhere").write_bytes(data)
    os.link(attack.run.with_name("elsewhere"), path)


@kind
def a_signature_gets_another_name(attack: Attack, source: random.Random) -> None:
    os.link(attack.run / source.choice((*SIGNATURES, MANIFEST)), attack.run.with_name("elsewhere"))


@kind
def a_signature_becomes_a_link(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice((*SIGNATURES, MANIFEST))
    path.rename(attack.run.with_name("elsewhere"))
    path.symlink_to(attack.run.with_name("elsewhere"))


@kind
def a_pipe_is_added(attack: Attack, source: random.Random) -> None:
    os.mkfifo(attack.run / source.choice(("pipe", "raw/pipe", "annex")))


@kind
def a_file_may_be_executed(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.chmod(path.stat().st_mode | source.choice((0o100, 0o010, 0o001)))


@kind
def a_file_has_the_rights_of_its_owner(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.chmod(path.stat().st_mode | source.choice((0o4000, 0o2000)))


@kind
def anybody_may_write_a_file(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.chmod(path.stat().st_mode | 0o002)


@kind
def anybody_may_write_a_folder(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(("raw", "inputs", "inputs/none"))
    path.chmod(path.stat().st_mode | 0o002)


@kind
def anybody_may_write_a_signature(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice((*SIGNATURES, MANIFEST))
    path.chmod(0o666)


@kind
def anybody_may_write_the_run_directory(attack: Attack, source: random.Random) -> None:
    attack.run.chmod(source.choice((0o777, 0o757, 0o1777)))


@kind
def something_else_is_named_like_a_signature(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(("signoff-x.json", "signoff.x.json", "signoff.x.statement.json", ENVELOPE))
    path.unlink(missing_ok=True)
    source.choice((path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero")))()
