# SPDX-License-Identifier: Apache-2.0
"""Odd files in each place that a run has: every command ends in seconds, in half a gigabyte, and names the file."""

import os
import random
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.base.text import terminal_text
from storqual.judge.verdict import verdict_of
from storqual.run.files import limit_of
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import StorqualError
from tests.attacks.finished_run import copy_of, finished_run
from tests.attacks.trial_run import trial_run
from tests.support.odd_files import MEMORY, NAMES, NO_FILE, ODD, Commands, Ended, immutable, remove
from tests.support.signing import make_person, sign, write_keys

SEED = 31
SHARE = float(os.environ.get("STORQUAL_ODD_SHARE", "0.01"))
"""Of the pairs of a place and what is put there, for each command; 1 takes all 22,800: two hours of a processor."""
FEWEST = 12
"""Pairs for a command."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900 if SHARE < 0.1 else 6 * 3600)]
UNREAD = ("junit.xml", "ocp.jsonl", "pytest.html", "report.html", "robot/", "verdict.json")
"""What judging does not read."""
COMMANDS = {
    "verify": ["verify", "{run}", "--keys", "{keys}"],
    "judge": ["judge", "{run}", "--json"],
    "judge --as-of": ["judge", "{run}", "--as-of", "2030-01-01"],
    "judge of many": ["judge", "{runs}"],
    "publish": ["publish", "{run}"],
    "report": ["report", "{run}"],
    "report --test-plan": ["report", "{run}", "--test-plan", "{out}"],
    "compare": ["compare", "{run}", "--arm", "both"],
    "audit": ["audit", "{run}"],
    "history": ["history", "{runs}"],
    "export": ["export", "{run}", "--format", "criteria-csv"],
    "note": ["note", "{run}", "seen", "--by", "Pat"],
    "record": ["record", "{run}", "note", "text=seen"],
    "next": ["next", "{run}", "--bench", "{bench}", "--json"],
    "signoff": ["signoff", "{run}", "--key", "{key}", "--keys", "{keys}"],
    "waive": ["waive", "{run}", "-o", "{out}"],
}
RUNS = dict.fromkeys(COMMANDS, ("measured", "trials")) | {
    "verify": ("signed measured", "signed trials"),
    "compare": ("measured",),
    "waive": ("failed",),
}
"""The runs on which a command does something when nothing odd lies there."""
BENCHES = {"trials": "vbench"}
"""The bench, where it is not that of a measured run."""


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
    """A measured run, one of trials, both signed, and one that failed, each in a folder of its own."""
    found = {"measured": finished_run(base / "measured", 0.0), "trials": trial_run(base / "trials")}
    found["failed"] = finished_run(base / "failed", 0.2)
    person = make_person(base, "Pat", "release-manager")
    keys = write_keys(base, person)
    for kind in ("measured", "trials"):
        found[f"signed {kind}"] = copy_of(found[kind], base / f"signed {kind}")
        sign(found[f"signed {kind}"], person, keys, now=datetime.now(UTC))
    for kind in ("signed measured", "signed trials"):
        assert verify_run(found[kind], keys).problems == ()
    return found


@pytest.fixture(scope="module")
def execute(runs: dict[str, Path], base: Path) -> Iterator[Commands]:
    """Executes commands; what they import, they have imported."""
    signed = [str(runs[kind]) for kind in ("signed measured", "signed trials")]
    keys = str(base / "keys.yml")
    commands = Commands(
        *(["judge", run] for run in signed), *(["verify", run, "--keys", keys] for run in signed), log=SHARE < 0.1
    )
    yield commands
    commands.close()


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


def drawn(places: list[Place], command: str) -> list[tuple[Place, str]]:
    """Pairs of a place and something odd, a share of all; for `verify` and `judge` each place and each odd thing."""
    rng = random.Random(f"{SEED} {command}")
    pairs = [(place, odd) for place in places for odd in ODD]
    rng.shuffle(pairs)
    chosen = dict.fromkeys(pairs[: max(FEWEST, int(SHARE * len(pairs)))])
    if command in ("verify", "judge"):
        chosen |= dict.fromkeys((place, rng.choice(list(ODD))) for place in places)
        chosen |= dict.fromkeys((rng.choice(places), odd) for odd in ODD)
    return list(chosen)


def with_odd(run: Path, place: Place, odd: str, folder: Path) -> Path:
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


def words_of(command: str, kind: str, run: Path, base: Path) -> list[str]:
    (base / "out").unlink(missing_ok=True)
    bench = BENCHES.get(kind, "b1")
    named = {"run": run, "runs": run.parent, "keys": base / "keys.yml", "key": base / "pat", "out": base / "out"}
    return [word.format(**named, bench=bench) for word in COMMANDS[command]]


def all_places(runs: dict[str, Path], kinds: tuple[str, ...]) -> list[Place]:
    """The places of these runs; of trials only those that measured runs have not."""
    trials = ("turns/",)
    return [
        place
        for kind in kinds
        for place in places(kind, runs[kind], only=trials if kind.endswith("trials") else ("",))
    ]


def fault(command: str, place: Place, odd: str, ended: Ended, usual: Ended) -> str:
    """What a command did not do as it must; `usual` is how it ends when nothing odd is there."""
    named = place.is_named(ended.said)
    if command == "verify":
        right = ended.code == 1 and named
    elif command == "judge" and ended.code == 0:
        right = odd not in NO_FILE and (place.beside or place.name.startswith(UNREAD))
    elif command == "judge":
        # what the run was planned with is bad input, and so is a folder that is no run
        right = named and (ended.code == 2 or (ended.code == 3 and place.name.startswith(("inputs/", "run.json"))))
    else:
        # what a command does not read is none of its business
        same = (ended.code, ended.said.splitlines()[:1]) == (usual.code, usual.said.splitlines()[:1])
        stale = "judge it again" in ended.said or "the files say" in ended.said
        right = named or same or ended.code == 0 or stale
    return broken(ended) or ("" if right else f"{ended.code}: {ended.said[-300:]}")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_and_names_what_it_could_not_read(
    execute: Commands, runs: dict[str, Path], base: Path, command: str
) -> None:
    work = {kind: base / "work" / command / kind for kind in RUNS[command]}
    usual = {kind: execute(words_of(command, kind, copy_of(runs[kind], work[kind]), base)) for kind in work}
    # whoever is refused at once reads nothing
    assert {ended.code for ended in usual.values()} == {{"verify": 2}.get(command, 0)}
    pairs = drawn(all_places(runs, RUNS[command]), command)
    faults = []
    for place, odd in pairs:
        copy = with_odd(runs[place.kind], place, odd, work[place.kind])
        ended = execute(words_of(command, place.kind, copy, base))
        told = fault(command, place, odd, ended, usual[place.kind])
        faults += [(place, odd, told)] if told else []
        remove(copy)
    print(f"{command}: {len(pairs)} pairs, {len(faults)} faults")
    assert faults == []


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("folder", ["", "raw", "blocks"])
def test_odd_names_are_found_and_do_nothing_to_a_terminal(
    execute: Commands, runs: dict[str, Path], tmp_path: Path, base: Path, name: bytes, folder: str
) -> None:
    copy = copy_of(runs["signed measured"], tmp_path)
    (copy / folder / os.fsdecode(name)).write_bytes(b"{}\n")
    ended = execute(["verify", str(copy), "--keys", str(base / "keys.yml")])
    assert (ended.code, broken(ended)) == (1, "")
    assert terminal_text(os.fsdecode(name)) in ended.said
    assert "\x1b" not in ended.said
    ended = execute(["judge", str(copy), "--as-of", "2030-01-01", "--json"])
    assert (ended.code, broken(ended)) == (2 if folder else 0, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become nobody")
@pytest.mark.parametrize("name", ["run.json", "samples.jsonl", "events.jsonl", "raw", "inputs"])
def test_what_must_not_be_read_is_named(execute: Commands, runs: dict[str, Path], base: Path, name: str) -> None:
    copy = copy_of(runs["signed measured"], base / "work")
    (copy / name).chmod(0)
    for arguments, code in ((["judge", str(copy)], 2), (["verify", str(copy), "--keys", str(base / "keys.yml")], 1)):
        ended = execute(arguments, nobody=True)
        assert (ended.code, broken(ended)) == (code, "")
        assert name in ended.said


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file immutable")
def test_what_cannot_be_written_is_no_fault_of_the_program(
    execute: Commands, runs: dict[str, Path], base: Path
) -> None:
    copy = copy_of(runs["measured"], base / "work")
    try:
        with immutable(copy / "events.jsonl"):
            ended = execute(["record", str(copy), "note", "text=seen"])
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
    try:
        return int(verdict_of(run)["exit_code"])
    except StorqualError:
        return 2
