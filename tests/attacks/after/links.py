# SPDX-License-Identifier: Apache-2.0
"""Tampering after signing: links, second names, special files, rights."""

from __future__ import annotations

import os
import random

from storqual.run.layout import MANIFEST
from tests.attacks.after.tampering import ENVELOPE, SIGNATURES, Attack, kind


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
