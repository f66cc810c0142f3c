# SPDX-License-Identifier: Apache-2.0
"""The written list: each kind of tampering with a run after it was signed, as a function of what an attacker has."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.run import sha256_of
from storqual.signoff.envelope import load_private_key, seal
from storqual.signoff.manifest import MANIFEST, dump_manifest, list_files
from tests.support.signing import Person

ENVELOPE = "signoff.release-manager.json"
STATEMENT = "signoff.technician.statement.json"
DETACHED = f"{STATEMENT}.sig"
SIGNATURES = (ENVELOPE, STATEMENT, DETACHED)
TEXTS = (
    "run.json",
    "verdict.json",
    "samples.jsonl",
    "events.jsonl",
    "checks.jsonl",
    "inputs/gate.yml",
    "report.html",
)
LINES = ("samples.jsonl", "events.jsonl")


@dataclass(frozen=True)
class Attack:
    """What an attacker has: the signed run to write to, another one signed by the same people, a key of his own."""

    run: Path
    other: Path
    stranger: Person

    def any_file(self, source: random.Random) -> Path:
        """A file that the manifest covers."""
        found = (path for path in sorted(self.run.rglob("*")) if path.is_file())
        return source.choice([path for path in found if not path.name.startswith("signoff")])


Kind = Callable[[Attack, random.Random], None]
KINDS: dict[str, Kind] = {}
"""By name, in the order in which they stand here."""


def kind(function: Kind) -> Kind:
    """Put a kind on the list under the name of its function."""
    KINDS[function.__name__] = function
    return function


# --- one file


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
    raw = sorted((attack.run / "inputs").iterdir())
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
    path = attack.run / "raw" / "kept.json.gz"
    path.write_bytes(
        gzip.compress(gzip.decompress(path.read_bytes()), source.randrange(1, 9), mtime=source.randrange(9))
    )


@kind
def a_file_becomes_a_folder(attack: Attack, source: random.Random) -> None:
    path = attack.any_file(source)
    path.unlink()
    path.mkdir()


# --- files and folders beside


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
    (attack.run / "raw" / "none").rmdir()


@kind
def a_folder_is_renamed(attack: Attack, source: random.Random) -> None:
    (attack.run / source.choice(("raw", "inputs"))).rename(attack.run / "renamed")


# --- links, special files, rights


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
    path = attack.run / source.choice(("raw", "inputs", "raw/none"))
    path.chmod(path.stat().st_mode | 0o002)


@kind
def anybody_may_write_a_signature(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice((*SIGNATURES, MANIFEST))
    path.chmod(0o666)


# --- manifest and signatures


def _manifest_again(attack: Attack) -> None:
    (attack.run / MANIFEST).write_bytes(dump_manifest(attack.run.name, list_files(attack.run)))


def _payload(attack: Attack) -> dict[str, Any]:
    envelope = json.loads((attack.run / ENVELOPE).read_text())
    found: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))
    return found


def _with_payload(attack: Attack, payload: dict[str, Any]) -> None:
    """The same signature over another statement."""
    envelope = json.loads((attack.run / ENVELOPE).read_text())
    envelope["payload"] = base64.b64encode(json.dumps(payload, indent=1).encode() + b"\n").decode()
    (attack.run / ENVELOPE).write_text(json.dumps(envelope, indent=1) + "\n")


@kind
def a_file_and_the_manifest_are_changed(attack: Attack, source: random.Random) -> None:
    a_bit_is_flipped(attack, source)
    _manifest_again(attack)


@kind
def a_file_is_taken_out_of_the_manifest(attack: Attack, source: random.Random) -> None:
    document = json.loads((attack.run / MANIFEST).read_text())
    gone = document["files"].pop(source.randrange(len(document["files"])))
    (attack.run / MANIFEST).write_text(json.dumps(document, indent=1) + "\n")
    (attack.run / gone["path"]).write_bytes(b"other")


@kind
def the_manifest_is_of_the_first_rules(attack: Attack, source: random.Random) -> None:
    text = (attack.run / MANIFEST).read_text()
    (attack.run / MANIFEST).write_text(text.replace("storqual.manifest/2", "storqual.manifest/1"))


@kind
def the_manifest_is_deleted(attack: Attack, source: random.Random) -> None:
    (attack.run / MANIFEST).unlink()


@kind
def the_manifest_of_another_run_takes_its_place(attack: Attack, source: random.Random) -> None:
    shutil.copy(attack.other / MANIFEST, attack.run / MANIFEST)


@kind
def a_signature_is_deleted(attack: Attack, source: random.Random) -> None:
    (attack.run / source.choice(SIGNATURES)).unlink()


@kind
def a_signature_is_renamed(attack: Attack, source: random.Random) -> None:
    one, other = source.choice(((ENVELOPE, "signoff.technician.json"), (STATEMENT, "signoff.x.statement.json")))
    (attack.run / one).rename(attack.run / other)


@kind
def a_bit_of_a_signature_is_flipped(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(SIGNATURES)
    data = bytearray(path.read_bytes())
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    path.write_bytes(data)


@kind
def a_signature_is_written_in_another_way(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice((ENVELOPE, STATEMENT))
    path.write_text(json.dumps(json.loads(path.read_text()), indent=source.choice((None, 2, 4))))


@kind
def a_signature_has_more_lines(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(SIGNATURES)
    path.write_bytes(path.read_bytes() + source.choice((b"\n", b" ", b"-----BEGIN SSH SIGNATURE-----\n")))


@kind
def a_signature_of_another_run_is_put_in_place(attack: Attack, source: random.Random) -> None:
    for name in source.choice(((ENVELOPE,), (STATEMENT, DETACHED), (ENVELOPE, STATEMENT, DETACHED), (DETACHED,))):
        shutil.copy(attack.other / name, attack.run / name)


@kind
def all_of_another_sign_off_is_put_in_place(attack: Attack, source: random.Random) -> None:
    for name in (*SIGNATURES, MANIFEST):
        shutil.copy(attack.other / name, attack.run / name)


@kind
def a_statement_says_another_outcome(attack: Attack, source: random.Random) -> None:
    payload = _payload(attack)
    payload["predicate"]["storqual"]["outcome"] = source.choice(("FAIL", "MARGINAL", "ERROR"))
    _with_payload(attack, payload)


@kind
def a_statement_points_elsewhere(attack: Attack, source: random.Random) -> None:
    payload = _payload(attack)
    path = source.choice(("annex/judgements/0123456789abcdef/verdict.json", "../verdict.json", "report.html"))
    payload["predicate"]["storqual"]["judgement"]["path"] = path
    _with_payload(attack, payload)


@kind
def a_statement_says_hardware(attack: Attack, source: random.Random) -> None:
    payload = _payload(attack)
    payload["predicate"]["storqual"]["benches"] = {"vbench": "hardware"}
    _with_payload(attack, payload)


@kind
def a_detached_statement_is_edited(attack: Attack, source: random.Random) -> None:
    path = attack.run / STATEMENT
    path.write_text(
        path.read_text().replace(*source.choice((("PASSED", "WARNED"), ("Pat", "Rat"), ("2026", "2025"))))
    )


@kind
def a_stranger_signs(attack: Attack, source: random.Random) -> None:
    key = load_private_key(attack.stranger.key, lambda: "")
    payload = json.dumps(_payload(attack), indent=1).encode() + b"\n"
    name = source.choice((ENVELOPE, "signoff.director.json", "signoff.technician.json"))
    (attack.run / name).write_bytes(seal(payload, key))


@kind
def a_stranger_signs_a_changed_run(attack: Attack, source: random.Random) -> None:
    a_digit_is_changed(attack, source)
    _manifest_again(attack)
    payload = _payload(attack)
    payload["subject"][0]["digest"]["sha256"] = sha256_of((attack.run / MANIFEST).read_bytes())
    key = load_private_key(attack.stranger.key, lambda: "")
    (attack.run / ENVELOPE).write_bytes(seal(json.dumps(payload, indent=1).encode() + b"\n", key))


@kind
def a_signature_without_a_statement_is_added(attack: Attack, source: random.Random) -> None:
    name = source.choice((f"{ENVELOPE}.sig", f"{MANIFEST}.sig", "signoff.x.statement.json.sig", "signoff.sig"))
    shutil.copy(attack.run / DETACHED, attack.run / name)


@kind
def a_file_is_named_like_a_sign_off(attack: Attack, source: random.Random) -> None:
    name = source.choice(
        ("signoff.txt", "signoff", "signoff.json", "signoff..json", "signoff.x.json", "signoff.html")
    )
    (attack.run / name).write_text("{}")


@kind
def a_role_has_two_signatures(attack: Attack, source: random.Random) -> None:
    shutil.copy(attack.run / ENVELOPE, attack.run / "signoff.release-manager.statement.json")


# --- the annex


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
