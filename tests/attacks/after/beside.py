# SPDX-License-Identifier: Apache-2.0
"""Tampering after signing: files and folders beside those that were signed, the annex too."""

from __future__ import annotations

import os
import random
import shutil

from tests.attacks.after.tampering import Attack, kind


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
