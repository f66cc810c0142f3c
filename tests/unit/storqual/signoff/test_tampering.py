# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to a signed run is found, and each file that it was done to is named."""

import json
import os
import random
import re
import shutil
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.run import sha256_of
from storqual.run.layout import MANIFEST
from storqual.signoff.manifest import dump_manifest, list_files
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import BadInputError
from tests.support.signing import NOW, Person, make_person, sign, write_keys

pytestmark = pytest.mark.slow

LATER = NOW + timedelta(hours=2)


def problems(run: Path, keys: Path) -> str:
    """What is wrong with the sign-off of `run`."""
    return "\n".join(verify_run(run, keys, as_of=LATER).problems)


def files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file())


def test_an_untouched_run_is_valid(signed: Path, keys: Path) -> None:
    """Else nothing below would prove anything; a moved copy is the same run."""
    assert problems(signed, keys) == ""
    moved = signed.rename(signed.with_name("renamed"))
    assert problems(moved, keys) == ""


def test_one_flipped_bit_in_any_file_is_found(signed: Path, keys: Path) -> None:
    """Any bit: text, compressed bytes, line ends, the base64 of a signature."""
    chance = random.Random(20261121)
    for path in files(signed):
        before = path.read_bytes()
        for _ in range(3 if "signoff" in path.name else 1):
            data = bytearray(before)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(data)
            assert path.name in problems(signed, keys), path
        path.write_bytes(before)
    assert problems(signed, keys) == ""


def test_every_bit_of_a_signature_counts(signed: Path, keys: Path) -> None:
    """Also the spare bits of its base64, in an envelope and in what ssh-keygen wrote."""
    chance = random.Random(7)
    for name in ("signoff.release-manager.json", "signoff.technician.statement.json.sig"):
        before = (signed / name).read_bytes()
        last = before.rindex(b"==" if b"==" in before else b"\n-----END") - 1
        places = [(last, bit) for bit in range(8)]
        places += [(chance.randrange(len(before)), chance.randrange(8)) for _ in range(12)]
        for offset, bit in places:
            data = bytearray(before)
            data[offset] ^= 1 << bit
            (signed / name).write_bytes(data)
            assert name.removesuffix(".sig") in problems(signed, keys), (name, offset, bit)
        (signed / name).write_bytes(before)


def test_any_missing_file_is_found(signed: Path, keys: Path) -> None:
    for path in files(signed):
        data = path.read_bytes()
        path.unlink()
        sentences = problems(signed, keys)
        assert path.name in sentences or "no valid signature as release-manager" in sentences, path
        path.write_bytes(data)


def test_any_renamed_file_is_found(signed: Path, keys: Path) -> None:
    for path in files(signed):
        other = path.with_name(f"{path.stem}-{path.suffix}")
        path.rename(other)
        sentences = problems(signed, keys)
        assert path.name in sentences or other.name in sentences, path
        if "signoff" not in path.name:
            assert f"was renamed to {other.relative_to(signed)}" in sentences
        other.rename(path)


def test_any_added_file_is_found(signed: Path, keys: Path) -> None:
    for name in (
        *("raw/extra.json.gz", ".hidden", "inputs/more/deep.yml", "signoff.txt", "signoff.x.json"),
        "verdict.json~",
    ):
        path = signed / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}\n")
        assert f"{name}: " in problems(signed, keys), name
        path.unlink()
    (signed / "raw" / "link").symlink_to("/etc/hostname")
    assert "raw/link: was added" in problems(signed, keys)


@pytest.mark.parametrize(
    "name", [b"\x1b[2J.json", b"a\nVALID", b"\xff\xfe.bin", "\u202egpj.exe".encode(), b"=1+1", b"{{ 7*7 }}"]
)
def test_a_hostile_file_name_is_signed_and_told_as_text(
    name: bytes, run: Path, people: tuple[Person, Person], keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that is no UTF-8: it is in the manifest, and what happens to it is told without a control byte."""
    path = Path(os.fsdecode(os.fsencode(run / "inputs") + b"/" + name))
    path.write_bytes(b"x")
    sign(run, people[0], keys)
    assert "release-manager" in problems(run, keys)
    path.write_bytes(b"y")
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(run), "--keys", str(keys), "--as-of", "2026-11-21T20:00:00"])
    assert ended.value.code == 1
    out, err = capsys.readouterr()
    assert "was changed" in out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out + err)
    assert not any(line.startswith("VALID") for line in out.splitlines())


def test_the_time_of_verifying_grows_with_the_number_of_files(
    run: Path, tmp_path: Path, people: tuple[Person, Person], keys: Path
) -> None:
    seconds = []
    for files in (500, 2000):
        copy = shutil.copytree(run, tmp_path / str(files) / run.name)
        for number in range(files):
            (copy / "inputs" / f"{number:064d}.json.gz").write_bytes(number.to_bytes(4, "big") * 1500)
        for person, hour in zip(people, (18, 19), strict=True):
            sign(copy, person, keys, now=NOW.replace(hour=hour))
        began = time.process_time()
        assert problems(copy, keys) == ""
        seconds.append(time.process_time() - began)
    assert seconds[1] < 8 * seconds[0]


def test_lines_in_another_order_are_told_from_changed_ones(signed: Path, keys: Path) -> None:
    for name in ("samples.jsonl", "events.jsonl"):
        path = signed / name
        before = path.read_bytes()
        lines = before.splitlines(keepends=True)
        path.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
        assert f"{name}: was changed: its lines are in another order" in problems(signed, keys)
        path.write_bytes(before)


def test_two_files_that_changed_places_are_both_named(signed: Path, keys: Path) -> None:
    first, second = sorted((signed / "raw").iterdir())[:2]
    data, other_data = first.read_bytes(), second.read_bytes()
    first.write_bytes(other_data)
    second.write_bytes(data)
    sentences = problems(signed, keys)
    assert first.name in sentences
    assert second.name in sentences


def test_a_manifest_that_was_made_again_is_found(signed: Path, keys: Path) -> None:
    (signed / "verdict.json").write_text("{}")
    (signed / MANIFEST).write_bytes(dump_manifest(signed.name, list_files(signed)))
    assert f"{MANIFEST} was changed" in problems(signed, keys)


def test_judging_again_is_no_tampering_and_is_listed(signed: Path, keys: Path) -> None:
    before = sorted(path for path in signed.rglob("*") if path.is_file())
    judge_run(signed, as_of=NOW + timedelta(days=9))
    (added,) = {path for path in signed.rglob("*") if path.is_file()}.difference(before)
    assert added.is_relative_to(signed / "annex" / "judgements")
    verification = verify_run(signed, keys, as_of=LATER)
    assert verification.problems == ()
    entries = [(entry.path, entry.sha256) for entry in verification.annex]
    assert entries == [(added.relative_to(signed).as_posix(), sha256_of(added.read_bytes()))]


@pytest.mark.parametrize("folder", ["judgements", "annexe", "raw/more", ".git", "signoff", "signoff.director.json"])
def test_a_folder_that_was_added_is_found_though_it_is_empty(folder: str, signed: Path, keys: Path) -> None:
    (signed / folder).mkdir()
    (problem,) = problems(signed, keys).splitlines()
    assert re.match(rf"{folder}: .*folder", problem)


def test_a_folder_that_is_gone_is_found(run: Path, people: tuple[Person, Person], keys: Path) -> None:
    (run / "inputs" / "kept").mkdir()
    sign(run, people[0], keys)
    (run / "inputs" / "kept").rmdir()
    assert "inputs/kept: is missing (a folder)" in problems(run, keys)


@pytest.mark.parametrize("name", ["samples.jsonl", "signoff.technician.statement.json.sig", MANIFEST])
def test_another_name_or_other_rights_of_a_file_are_found(
    name: str, signed: Path, keys: Path, tmp_path: Path
) -> None:
    file = signed / name
    os.link(file, tmp_path / "other")
    assert f"{name}: is a hard link" in problems(signed, keys)
    (tmp_path / "other").unlink()
    mode = file.stat().st_mode & 0o777
    for other, words in (
        (0o755, "is executable"),
        (mode | 0o002, "can be written by anyone"),
        (mode | 0o4000, "runs with the rights of its owner"),
    ):
        file.chmod(other)
        assert f"{name}: {words}" in problems(signed, keys)
        file.chmod(mode)
    assert problems(signed, keys) == ""
    # a copy under another umask is the same run
    file.chmod(0o600)
    assert problems(signed, keys) == ""
    copy = file.rename(tmp_path / "moved")
    file.symlink_to(copy)
    assert name in problems(signed, keys)


def test_links_in_the_annex_are_found(signed: Path, keys: Path, tmp_path: Path) -> None:
    (signed / "annex").mkdir()
    (signed / "annex" / "note.txt").symlink_to("/etc/hostname")
    assert "annex/note.txt: is a symbolic link" in problems(signed, keys)
    (signed / "annex" / "note.txt").unlink()
    (signed / "annex").rmdir()
    (signed / "annex").symlink_to(tmp_path)
    assert "annex: is a symbolic link" in problems(signed, keys)


def test_a_signature_without_what_it_signs_is_found(signed: Path, keys: Path) -> None:
    for name in ("signoff.release-manager.json.sig", "signoff.manifest.json.sig", "signoff.x.statement.json.sig"):
        (signed / name).write_bytes((signed / "signoff.technician.statement.json.sig").read_bytes())
        assert f"{name}: was added" in problems(signed, keys)
        (signed / name).unlink()


def test_a_signature_of_another_run_is_found(
    signed: Path, run: Path, people: tuple[Person, Person], keys: Path
) -> None:
    """It is valid, but about something else."""
    sign(run, people[1], keys, now=NOW - timedelta(hours=1))
    manifest = json.loads((run / MANIFEST).read_text())
    assert manifest == json.loads((signed / MANIFEST).read_text())
    (run / "signoff.release-manager.json").rename(signed / "signoff.release-manager.json")
    assert problems(signed, keys) == ""
    (run / "verdict.json").write_text((run / "verdict.json").read_text() + "\n")
    (run / MANIFEST).unlink()
    sign(run, people[1], keys)
    shutil.copy(run / "signoff.release-manager.json", signed)
    assert "signoff.release-manager.json: it is about another manifest" in problems(signed, keys)


def test_an_unsigned_run_is_not_valid(run: Path, keys: Path) -> None:
    assert "the run is unsigned: it needs technician and release-manager" in problems(run, keys)


def test_a_key_that_is_trusted_no_more_does_not_count(
    signed: Path, tmp_path: Path, people: tuple[Person, Person]
) -> None:
    pat, rene = people
    stranger = make_person(tmp_path, "Sam", "release-manager")
    assert "which is not trusted" in problems(signed, write_keys(tmp_path, pat, stranger))
    other = Person(rene.name, rene.key, rene.public, "technician", rene.expires)
    assert "is trusted as technician only" in problems(signed, write_keys(tmp_path, pat, other))
    named = Person("Robin", rene.key, rene.public, rene.role, rene.expires)
    assert "it names Rene, but the key is that of Robin" in problems(signed, write_keys(tmp_path, pat, named))
    keys = write_keys(tmp_path, pat, rene)
    late = "\n".join(verify_run(signed, keys, as_of=NOW.replace(year=2028)).problems)
    assert (
        "the key of Rene expired on 2027-12-31; if it is known to have been signed before, verify with --as-of"
        in late
    )
    early = "\n".join(verify_run(signed, keys, as_of=NOW - timedelta(days=1)).problems)
    assert "which is not before" in early


def test_what_scripts_read_says_whether_the_sign_off_is_valid(signed: Path, run: Path, keys: Path) -> None:
    good = verify_run(signed, keys, as_of=LATER).to_json()
    assert (good["valid"], good["problems"], good["missing"]) == (True, [], [])
    assert {signature["name"] for signature in good["signatures"]} == {"Pat", "Rene"}
    bad = verify_run(run, keys, as_of=LATER).to_json()
    assert (bad["valid"], bad["missing"]) == (False, ["technician", "release-manager"])
    with pytest.raises(BadInputError, match="no such run directory"):
        verify_run(run / "nowhere", keys)


def test_two_signatures_of_one_person_are_not_two(run: Path, tmp_path: Path, people: tuple[Person, Person]) -> None:
    other = make_person(tmp_path, "other", "release-manager")
    again = Person("Pat", other.key, other.public, other.role, other.expires)
    keys = write_keys(tmp_path, people[0], again)
    copy = Path(shutil.copytree(run, tmp_path / "copy" / run.name))
    sign(run, people[0], keys)
    sign(copy, again, keys)
    for made in copy.glob("signoff.*"):
        shutil.copy(made, run / made.name)
    verification = verify_run(run, keys, as_of=LATER)
    assert [signature.problem for signature in verification.signatures] == ["", ""]
    assert "Pat signed as release-manager and as technician; two people must sign" in "\n".join(verification.problems)


def test_people_can_check_an_ssh_signature_by_hand(
    signed: Path, tmp_path: Path, people: tuple[Person, Person]
) -> None:
    statement = signed / "signoff.technician.statement.json"
    signers = tmp_path / "signers"
    signers.write_text(f"pat {people[0].public}\n")
    argv = ["ssh-keygen", "-Y", "verify", "-n", "storqual-signoff", "-I", "pat", "-f", str(signers)]
    argv += ["-s", f"{statement}.sig"]
    assert subprocess.run(argv, input=statement.read_bytes(), capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", "\x00", '{"payload": 1}', '{"_type": null}', "[" * 9999])
def test_a_file_that_is_no_signature_is_a_problem_and_no_exception(signed: Path, keys: Path, text: str) -> None:
    for name in (MANIFEST, "signoff.release-manager.json", "signoff.technician.statement.json"):
        before = (signed / name).read_bytes()
        (signed / name).write_text(text)
        assert name in problems(signed, keys)
        (signed / name).write_bytes(before)
