# SPDX-License-Identifier: Apache-2.0
"""Files that people name: of a sane size, regular, in time that grows with their size, with messages that end."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual.audit.auditing import read_report
from storqual.cli import main
from storqual.inputs import (
    beside_inventory,
    load_drop,
    load_gate,
    load_suite,
    load_trust,
    load_waivers,
    read_inventory,
)
from storqual.inputs.yaml_file import parse_yaml, read_yaml
from storqual.judge.earlier import read_histories
from storqual.plan.settable import read_facts
from storqual.signoff.signature import load_private_key
from storqual.witness.milestones import _text as witness_text
from storqual_core.kit.errors import BadInputError

READERS: dict[str, Callable[[Path], Any]] = {
    "audit.yml": read_report,
    "audit.txt": read_report,
    "drop.yml": load_drop,
    "gate.yml": load_gate,
    "s.suite.yml": load_suite,
    "trials.suite.yml": load_suite,
    "keys.yml": load_trust,
    "waivers.yml": load_waivers,
    "facts.json": read_facts,
    "hosts.yml": lambda path: read_inventory([path]),
    "hosts.json": lambda path: read_inventory([path]),
    "history.json": read_histories,
    "key": lambda path: load_private_key(path, str),
    "witness": lambda path: witness_text(str(path)),
}
WRITTEN = [name for name in READERS if name.endswith(".yml")]
_LIMIT = 256 << 10


def refused(read: Callable[[Path], Any], path: Path) -> str:
    with pytest.raises(BadInputError) as caught:
        read(path)
    (line,) = str(caught.value).splitlines()
    assert caught.value.exit_code == 3
    assert line.startswith(str(path))
    return line


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["fifo", "zero", "folder", "loop", "link to a pipe"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
        if name.startswith(("hosts", "audit")):
            pytest.skip("an inventory and a run may be folders")
    elif kind == "loop":
        path.symlink_to(path)
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    refused(READERS[name], path)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("# " + "x" * (_LIMIT - 1), encoding="utf-8")
    line = refused(READERS[name], path)
    assert str(_LIMIT + 1) in line
    assert str(_LIMIT) in line
    with path.open("wb") as sparse:
        sparse.truncate(1 << 40)
    refused(READERS[name], path)


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("a: 1 #" + "x" * (_LIMIT - 6), encoding="utf-8")
    assert read_yaml(path).data == {"a": 1}


def test_what_has_no_size_of_its_own_is_held_to_the_limit_too() -> None:
    """A file of /proc has size 0 until it is read."""
    assert "regular" not in refused(read_yaml, Path("/proc/kallsyms"))


def test_variables_beside_an_inventory_are_held_to_the_same_limits(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("benches: {hosts: {b: {}}}\n", encoding="utf-8")
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "b.yml").write_text("x: " + "y" * _LIMIT, encoding="utf-8")
    os.mkfifo(tmp_path / "host_vars" / "c.yml")
    with pytest.raises(BadInputError) as caught:
        read_inventory([tmp_path])
    assert [name in line for name, line in zip(("b.yml", "c.yml"), sorted(caught.value.problems), strict=True)]


def test_aliases_of_an_inventory_do_not_grow_in_ansible(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (tmp_path / "hosts.yml").write_text("\n".join(lines), encoding="utf-8")
    assert "too large" in refused(lambda path: read_inventory([path]), tmp_path / "hosts.yml")


@pytest.mark.parametrize("name", ["gate.yml", "waivers.yml"])
def test_a_policy_that_is_no_file_does_not_count_as_none(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert beside_inventory(name, [tmp_path]) == tmp_path / name


@pytest.mark.parametrize("shape", ["[", "{a: ", "- ", "? "])
@pytest.mark.parametrize("depth", [62, 300, 100_000])
def test_too_many_levels_are_refused_with_their_line(shape: str, depth: int) -> None:
    with pytest.raises(BadInputError, match=r"x.yml:1: .*60 levels"):
        parse_yaml(shape * depth, name="x.yml")


SHAPES: dict[str, Callable[[int], str]] = {
    "keys": lambda size: "".join(f"k{number}: v\n" for number in range(size // 8)),
    "entries": lambda size: f"a: [{'1,' * (size // 2)}]",
    "levels": lambda size: f"a: [{('[' * 50 + ']' * 50 + ',') * (size // 101)}]",
    "doubled keys": lambda size: "a: 1\n" * (size // 5),
    "aliases": lambda size: f"a: &a x\nb: [{'*a,' * (size // 3)}]",
    "words": lambda size: "a: " + "x " * (size // 2),
    "a quoted text": lambda size: 'a: "' + "x\n " * (size // 3) + '"',
    "digits": lambda size: "a: " + "1" * size,
    "spaces": lambda size: "a:" + " " * size + "1",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_the_size_of_a_file_and_no_faster(shape: str) -> None:
    """Twice the size takes about twice the time of the processor; its square would be four times."""

    def spent(size: int) -> float:
        start = time.process_time()
        parse_yaml(SHAPES[shape](size), name="x")
        return time.process_time() - start

    spent(1 << 10)
    assert min(spent(32 << 10) / spent(16 << 10) for _ in range(3)) < 3


@pytest.mark.parametrize("name", WRITTEN[1:])
def test_problems_are_told_up_to_fifty(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("".join(f"wrong{number}: {number}\n" for number in range(10_000)), encoding="utf-8")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of an inventory there is no bench
        READERS[name](path)
    lines = str(caught.value).splitlines()
    assert len(lines) <= 51
    if isinstance(caught.value, BadInputError) and len(caught.value.problems) > 50:
        assert lines[50] == f"and {len(caught.value.problems) - 50} more"


def test_a_message_about_a_long_key_is_short(tmp_path: Path) -> None:
    path = tmp_path / "gate.yml"
    path.write_text("x" * 100_000 + ": 1\n", encoding="utf-8")
    assert len(refused(load_gate, path)) < 3000


def test_options_that_name_a_device_end_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "pipe").symlink_to("/dev/zero")
    for words in (
        ("judge", str(tmp_path / "run"), "--waivers", "/dev/zero"),
        ("audit", "/dev/zero"),
        ("audit", str(tmp_path / "pipe")),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code in (2, 3)
        assert len(capsys.readouterr().err.splitlines()) == 1
