# SPDX-License-Identifier: Apache-2.0
"""A sign-off that is killed at any moment: signing again leaves the files that it would have left."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.signoff.verify import verify_run
from tests.support.make_run import make_run
from tests.support.signing import NOW, Person, sign
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

MOMENTS = 30
WAIVER = """\
- {criterion: iops, adapter: sym, point: "*", owner: Pat, reason: known, reference: LAB-12, expiry: 2026-12-31}
"""


def content(run: Path) -> dict[str, bytes | None]:
    """Every path below a run with its bytes; None for a folder."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes() if path.is_file() else None for path in run.rglob("*")
    }


def in_a_child(work: Callable[[], None], moment: int | None) -> int:
    """Do `work` in a process of its own that dies at its n-th call that writes; how many it made, -1 when killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        made = 0

        def count(event: str, _arguments: tuple[Any, ...]) -> None:
            nonlocal made
            if event in {"open", "os.rename", "os.mkdir", "os.chmod", "os.remove", "subprocess.Popen"}:
                made += 1
                if made == moment:
                    os._exit(9)

        try:
            sys.addaudithook(count)
            work()
            os.write(writer, str(made).encode())
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return int(text or -1)


@pytest.mark.parametrize(("way", "ssh"), [("first", False), ("first", True), ("second", True), ("waived", False)])
def test_signing_again_leaves_the_same_files(
    way: str,
    ssh: bool,
    run: Path,
    people: tuple[Person, Person],
    keys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a judgement that is made anew has another time in its event
    monkeypatch.setattr("storqual.run.events.now", lambda: "2026-11-22T20:00:00.000Z")
    person, more = people[0], {}
    if way == "second":
        sign(run, people[1], keys)
    elif way == "waived":
        person = people[1]
        run = make_run(tmp_path / "failed", noise=0.003, points=POINTS[:1], adapters=("sym",), effect={"sym": -0.2})
        judge_run(run)
        more["waivers"] = tmp_path / "waivers.yml"
        more["waivers"].write_text(WAIVER, encoding="utf-8")
    whole = Path(shutil.copytree(run, tmp_path / "whole" / run.name))
    calls = in_a_child(lambda: _sign(whole, person, keys, ssh, more), None)
    expected = content(whole)
    assert f"signoff.{person.role}.{'statement.json' if ssh else 'json'}" in expected
    source = random.Random(f"{way}/{ssh}")
    # the last calls are those that write
    moments = sorted({calls - back for back in range(12)} | set(source.sample(range(1, calls), MOMENTS // 6)))
    changed = 0
    for moment in moments:
        copy = tmp_path / str(moment) / run.name
        shutil.copytree(run, copy)
        assert in_a_child(lambda copy=copy: _sign(copy, person, keys, ssh, more), moment) == -1
        changed += content(copy) not in (content(run), expected)
        if content(copy) != expected:
            sign(copy, person, keys, now=NOW.replace(hour=20), ssh=ssh, **more)
        assert content(copy) == expected, moment
        assert not [one.problem for one in verify_run(copy, keys).signatures if one.problem]
    # some of these moments were between two files
    assert changed > 1


def _sign(run: Path, person: Person, keys: Path, ssh: bool, more: dict[str, Any]) -> None:
    sign(run, person, keys, now=NOW.replace(hour=20), ssh=ssh, **more)
