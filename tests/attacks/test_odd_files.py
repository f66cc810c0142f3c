# SPDX-License-Identifier: Apache-2.0
"""Odd files in each place that a run has: every command ends in seconds, in half a gigabyte, and names the file."""

from __future__ import annotations

import io
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.base.text import terminal_text
from storqual.cli import main
from storqual.judge.verdict import verdict_of
from storqual.run.files import limit_of
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import StorqualError
from tests.attacks.finished_run import copy_of, finished_run
from tests.attacks.trial_run import trial_run
from tests.support.odd_files import MEMORY, NAMES, NO_FILE, ODD, Ended, immutable, in_child, remove
from tests.support.signing import make_person, sign, write_keys

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 31
SHARE = float(os.environ.get("STORQUAL_ODD_SHARE", "0.04"))
"""Of the pairs of a place and what is put there; each place and each odd thing is drawn anyway."""
UNREAD = ("junit.xml", "ocp.jsonl", "pytest.html", "report.html", "robot/", "verdict.json")
"""What judging does not read."""
COMMANDS = {
    "report": ["report", "{run}"],
    "report --test-plan": ["report", "{run}", "--test-plan", "{out}"],
    "compare": ["compare", "{run}"],
    "audit": ["audit", "{run}"],
    "history": ["history", "{runs}"],
    "export": ["export", "{run}", "--format", "criteria-csv"],
    "note": ["note", "{run}", "--text", "seen", "--by", "Pat"],
    "record": ["record", "{run}", "note", "text=seen"],
    "next": ["next", "{run}", "--json"],
    "collect": ["collect", "{run}", "--batch", "s01-b01"],
    "signoff": ["signoff", "{run}", "--key", "{key}", "--keys", "{keys}"],
    "waive": ["waive", "{run}", "-o", "{out}"],
    "judge --as-of": ["judge", "{run}", "--as-of", "2030-01-01"],
    "judge of many": ["judge", "{runs}"],
}


class Place:
    """Where something odd is put: a file that is there before, or a name in a folder where nothing is."""

    def __init__(self, kind: str, name: str, *, beside: bool) -> None:
        self.kind, self.name, self.beside = kind, name, beside

    def __repr__(self) -> str:
        return f"{self.kind}: {'beside ' if self.beside else ''}{self.name}"

    def is_named(self, said: str) -> bool:
        """Whether a command told of it, or of the folder in which something is that was not there."""
        folder = self.name.rpartition("/")[0]
        return self.name in said or (self.beside and bool(folder) and f"{folder}/" in said)


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    # whoever becomes nobody must get into it
    with tempfile.TemporaryDirectory(prefix="odd-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def runs(base: Path) -> dict[str, Path]:
    """A measured run, one of trials, and both signed, each in a folder of its own."""
    found = {"measured": finished_run(base / "measured", 0.0), "trials": trial_run(base / "trials")}
    person = make_person(base, "Pat", "release-manager")
    keys = write_keys(base, person)
    for kind in ("measured", "trials"):
        found[f"signed {kind}"] = copy_of(found[kind], base / f"signed {kind}")
        sign(found[f"signed {kind}"], person, keys, now=datetime.now(UTC))
    for kind in ("signed measured", "signed trials"):
        assert verify_run(found[kind], keys).problems == ()
        # a child that finds everything imported is fast, and needs no right to read it
        for arguments in (["judge", str(found[kind])], ["verify", str(found[kind]), "--keys", str(keys)]):
            with pytest.raises(SystemExit), redirect_stdout(io.StringIO()):
                main(arguments)
    return found


def places(kind: str, run: Path, *, only: tuple[str, ...] = ("",)) -> list[Place]:
    """One file of each kind in each folder, and a new name in each folder."""
    found: dict[tuple[str, ...], Place] = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        folder = name.rpartition("/")[0]
        alike = (folder, "".join(path.suffixes[-2:]), limit_of(name).why) if folder else (name,)
        if path.is_file() and name.startswith(only):
            found.setdefault(alike, Place(kind, name, beside=False))
        elif path.is_dir() and f"{name}/".startswith(only):
            found[name, ""] = Place(kind, f"{name}/stray.json", beside=True)
    top = [Place(kind, "stray.json", beside=True)] if only == ("",) else []
    return [*found.values(), *top]


def drawn(places: list[Place], share: float = SHARE) -> list[tuple[Place, str]]:
    """Pairs of a place and something odd: each place with something, everything somewhere, and a share of all."""
    random_one = random.Random(SEED)
    pairs = [(place, odd) for place in places for odd in ODD]
    chosen = {(place, random_one.choice(list(ODD))) for place in places}
    chosen |= {(random_one.choice(places), odd) for odd in ODD}
    return [pair for pair in pairs if pair in chosen or random_one.random() < share]


def with_odd(run: Path, place: Place, odd: str, folder: Path) -> Path:
    """A copy of a run with something odd in it."""
    copy = copy_of(run, folder)
    if not place.beside:
        (copy / place.name).unlink()
    ODD[odd](copy / place.name)
    return copy


def broken(ended: Ended) -> str:
    """Why a command did not end as every command must; empty when it did."""
    if ended.code not in (0, 1, 2, 3):
        return f"ended with {ended.code}"
    if ended.memory > MEMORY:
        return f"took {ended.memory >> 20} MiB"
    if "Traceback" in ended.said or "for a maintainer" in ended.said:
        return f"nobody foresaw it: {ended.said[-300:]}"
    return ""


def words_of(arguments: list[str], run: Path, base: Path) -> list[str]:
    """The command line for a run."""
    (base / "out").unlink(missing_ok=True)
    named = {"run": run, "runs": run.parent, "keys": base / "keys.yml", "key": base / "pat", "out": base / "out"}
    return [word.format(**named) for word in arguments]


def faults(
    runs: dict[str, Path],
    base: Path,
    pairs: list[tuple[Place, str]],
    arguments: list[str],
    wrong: Callable[[Place, str, Ended], str],
) -> list[tuple[str, Place, str, str]]:
    """What a command did not do as it must, by the place and what lies there; `wrong` says what else it must do."""
    found = []
    for place, odd in pairs:
        copy = with_odd(runs[place.kind], place, odd, base / "work" / place.kind)
        ended = in_child(words_of(arguments, copy, base))
        told = broken(ended) or wrong(place, odd, ended)
        if told:
            found.append((arguments[0], place, odd, told))
        if os.path.lexists(copy / place.name):
            remove(copy / place.name)
        shutil.rmtree(copy)
    return found


def all_places(runs: dict[str, Path], *kinds: str) -> list[Place]:
    """The places of these runs; of trials only those that measured runs have not."""
    trials = ("trials/", "external/")
    return [
        place
        for kind in kinds
        for place in places(kind, runs[kind], only=trials if kind.endswith("trials") else ("",))
    ]


def test_verify_finds_whatever_lies_in_a_signed_run(runs: dict[str, Path], base: Path) -> None:
    def not_found(place: Place, odd: str, ended: Ended) -> str:
        return "" if ended.code == 1 and place.is_named(ended.said) else f"{ended.code}: {ended.said[-300:]}"

    pairs = drawn(all_places(runs, "signed measured", "signed trials"))
    assert faults(runs, base, pairs, ["verify", "{run}", "--keys", "{keys}"], not_found) == []


def test_judge_counts_nothing_that_is_no_file_of_a_run(runs: dict[str, Path], base: Path) -> None:
    def not_found(place: Place, odd: str, ended: Ended) -> str:
        if ended.code == 0:
            read = not place.beside and not place.name.startswith(UNREAD)
            return "took it" if odd in NO_FILE or read else ""
        # what the run was planned with is bad input, and so is a folder that is no run
        right = ended.code == 2 or (ended.code == 3 and place.name.startswith(("inputs/", "run.json")))
        return "" if right and place.is_named(ended.said) else f"{ended.code}: {ended.said[-300:]}"

    pairs = drawn(all_places(runs, "measured", "trials"))
    assert faults(runs, base, pairs, ["judge", "{run}", "--json"], not_found) == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_other_command_ends_and_names_what_it_could_not_read(
    runs: dict[str, Path], base: Path, command: str
) -> None:
    def not_named(place: Place, _odd: str, ended: Ended) -> str:
        # what a command does not read is none of its business
        same = (ended.code, ended.said.splitlines()[:1]) == usual[place.kind]
        named = ended.code == 0 or place.is_named(ended.said) or same or "judge it again" in ended.said
        return "" if named else f"{ended.code}: {ended.said[-300:]}"

    usual = {}
    for kind in ("measured", "trials"):
        ended = in_child(words_of(COMMANDS[command], copy_of(runs[kind], base / "work" / kind), base))
        usual[kind] = ended.code, ended.said.splitlines()[:1]
    rng = random.Random(f"{SEED} {command}")
    known = all_places(runs, "measured", "trials")
    number = max(12, int(SHARE * len(known) * len(ODD) / len(COMMANDS)))
    pairs = [(rng.choice(known), rng.choice(list(ODD))) for _ in range(number)]
    assert faults(runs, base, pairs, COMMANDS[command], not_named) == []


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("folder", ["", "raw", "blocks"])
def test_odd_names_are_found_and_do_nothing_to_a_terminal(
    runs: dict[str, Path], tmp_path: Path, base: Path, name: bytes, folder: str
) -> None:
    copy = copy_of(runs["signed measured"], tmp_path)
    (copy / folder / os.fsdecode(name)).write_bytes(b"{}\n")
    ended = in_child(["verify", str(copy), "--keys", str(base / "keys.yml")])
    assert (ended.code, broken(ended)) == (1, "")
    assert terminal_text(os.fsdecode(name)) in ended.said
    assert "\x1b" not in ended.said
    ended = in_child(["judge", str(copy), "--as-of", "2030-01-01", "--json"])
    assert (ended.code, broken(ended)) == (2 if folder else 0, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become nobody")
@pytest.mark.parametrize("name", ["run.json", "samples.jsonl", "events.jsonl", "raw", "inputs"])
def test_what_must_not_be_read_is_named(runs: dict[str, Path], base: Path, name: str) -> None:
    copy = copy_of(runs["signed measured"], base / "work")
    (copy / name).chmod(0)
    for arguments, code in ((["judge", str(copy)], 2), (["verify", str(copy), "--keys", str(base / "keys.yml")], 1)):
        ended = in_child(arguments, nobody=True)
        assert (ended.code, broken(ended)) == (code, "")
        assert name in ended.said


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file immutable")
def test_what_cannot_be_written_is_no_fault_of_the_program(runs: dict[str, Path], base: Path) -> None:
    copy = copy_of(runs["measured"], base / "work")
    try:
        with immutable(copy / "events.jsonl"):
            ended = in_child(["record", str(copy), "note", "text=seen"])
    except OSError as problem:
        pytest.skip(f"this file system has no immutable files ({problem.strerror})")
    assert (ended.code, broken(ended)) == (2, "")
    assert "events.jsonl: " in ended.said


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), junk=st.binary(max_size=300))
def test_random_bytes_are_a_finding(runs: dict[str, Path], base: Path, data: st.DataObject, junk: bytes) -> None:
    kind = data.draw(st.sampled_from(["signed measured", "signed trials"]))
    place = data.draw(st.sampled_from([one for one in places(kind, runs[kind]) if not one.beside]))
    path = copy_of(runs[kind], base / "drawn") / place.name
    old = path.read_bytes()
    start = data.draw(st.integers(0, len(old)))
    cut = data.draw(st.integers(0, len(old) - start))
    new = old[:start] + junk + old[start + cut :]
    path.write_bytes(new)
    run = path.parents[place.name.count("/")]
    found = verify_run(run, base / "keys.yml")
    assert found.exit_code == 1 or new == old
    # a torn last line is one that its writer never finished
    whole = new[: new.rfind(b"\n") + 1] if place.name.endswith(".jsonl") else new
    unread = place.name.startswith((*UNREAD, "signoff"))
    assert unread or whole == old or judged(run) == 2


def judged(run: Path) -> int:
    """The exit code of judging."""
    try:
        return int(verdict_of(run)["exit_code"])
    except StorqualError:
        return 2
