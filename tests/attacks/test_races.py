# SPDX-License-Identifier: Apache-2.0
"""While a command works on a run, somebody exchanges, edits and adds files, and colleagues work on it as well.

Each moment is a file system call of the command, drawn from all that it makes. What is not the run that passed is
never valid, and no run is signed that a colleague's command made invalid.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from storqual import pytest_plugin
from storqual.campaign.pipeline import publish
from storqual.cli.playbook.record import record
from storqual.cli.report import report_command
from storqual.cli.signoff import note_command
from storqual.history.index import history_of
from storqual.judge.verdict import judge_run
from storqual.run import is_signed, write_bytes
from storqual.run.closing import close_run
from storqual.run.evidence import PUBLISHED, record_published
from storqual.signoff.verify import verify_run
from tests.attacks.racing import Work, beside, calls_of, disturbed, exchange
from tests.support.make_run import make_run
from tests.support.signing import NOW, Person, make_person, sign, write_keys
from tests.support.synthetic_shape import POINTS, SUITE

pytestmark = pytest.mark.slow

SHAPE = {"noise": 0.003, "points": POINTS[:1], "adapters": ("sym",)}
POLICY = "require:\n  - roles: [release-manager]\n"
FILES = ("samples.jsonl", "verdict.json", "events.jsonl", "run.json", "report.html")
ADDED = ("raw/added.json.gz", "blocks/added.json", "added.txt")
EACH = 10
"""Drawings of each kind: 280 in all."""


@pytest.fixture(scope="module", autouse=True)
def _no_pytest_in_pytest() -> Iterator[None]:
    """The log of a run without a process for it."""

    def log(run: Path) -> Path:
        write_bytes(run / "pytest.html", (run / "verdict.json").read_bytes()[:100])
        return run / "pytest.html"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest_plugin, "publish_log", log)
        yield


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return make_person(tmp_path_factory.mktemp("person"), "Rene", "release-manager")


@pytest.fixture(scope="module")
def keys(person: Person) -> Path:
    path = write_keys(person.key.parent, person)
    path.write_text(path.read_text(encoding="utf-8") + POLICY, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("passing"), **SHAPE)
    close_run(run)
    assert publish(run).verdict["exit_code"] == 0
    return run


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the same name that fails."""
    run = make_run(tmp_path_factory.mktemp("failing"), **SHAPE, effect={"sym": -0.3})
    close_run(run)
    assert publish(run).verdict["exit_code"] == 1
    return run


@pytest.fixture(scope="module")
def twin(failing: Path, passing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that fails, with the verdict and the report of the one that passes, and a chain that says so."""
    run = Path(shutil.copytree(failing, tmp_path_factory.mktemp("twin") / failing.name))
    for name in PUBLISHED:
        if (passing / name).is_file():
            shutil.copy(passing / name, run / name)
    record_published(run)
    return run


@pytest.fixture(scope="module")
def signed(passing: Path, person: Person, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = Path(shutil.copytree(passing, tmp_path_factory.mktemp("signed") / passing.name))
    sign(run, person, keys)
    assert verified(run, keys) == 0
    return run


def verified(run: Path, keys: Path) -> int:
    return verify_run(run, keys, as_of=NOW + timedelta(hours=2), allow_virtual=True).exit_code


def copies(folder: Path, *runs: Path) -> Iterator[Path]:
    for number, run in enumerate(runs):
        yield Path(shutil.copytree(run, folder / str(number) / run.name))


def calls_on_copy(folder: Path, run: Path, work: Callable[[Path], object]) -> tuple[Path, tuple[str, ...]]:
    """The calls of a command that nobody disturbs, on a copy of a run."""
    (counted,) = copies(folder / "counted", run)
    return counted, calls_of(partial(work, counted))


def is_all_of(run: Path, original: Path) -> bool:
    """Whether a run still holds every file of another one as it is there."""
    files = {path.relative_to(original): path.read_bytes() for path in original.rglob("*") if path.is_file()}
    return all((run / file).is_file() and (run / file).read_bytes() == data for file, data in files.items())


def after_first_look(calls: tuple[str, ...], run: Path) -> int:
    """The number of a call after the run directory was opened and listed for the first time."""
    listed = next(number for number, call in enumerate(calls, 1) if call.startswith(("os.scandir", "os.listdir")))
    opened = next((number for number, call in enumerate(calls, 1) if call == f"open {str(run)!r}"), 0)
    return max(listed, opened) + 1


def two_of(source: random.Random, first: int, last: int) -> tuple[int, int]:
    one, other = sorted(source.sample(range(first, last + 1), 2))
    return one, other


def exchange_all(run: Path, other: Path) -> None:
    """Exchange what lies in two folders, and not the folders."""
    for path in list(other.iterdir()):
        exchange(run / path.name, path)


def a_change(run: Path, other: Path, source: random.Random) -> tuple[Work, Work]:
    """Something done to the files of a run, and the same undone; `other` is a run of the same shape."""
    name, added = source.choice(FILES), run / source.choice(ADDED)
    before = (run / name).read_bytes()
    swap = partial(exchange, run / name, other / name)
    edit = partial((run / name).write_bytes, before.replace(b"1", b"2", 5))
    return source.choice(
        (
            (swap, swap),
            (edit, partial((run / name).write_bytes, before)),
            (partial(added.write_bytes, b"{}"), partial(added.unlink, missing_ok=True)),
        )
    )


@pytest.mark.parametrize("begins_with", ["the run", "its twin"])
@pytest.mark.parametrize("returns", [True, False])
def test_a_folder_that_is_exchanged_while_it_is_signed(
    begins_with: str, returns: bool, passing: Path, twin: Path, person: Person, keys: Path, tmp_path: Path
) -> None:
    both = (passing, twin) if begins_with == "the run" else (twin, passing)
    _, calls = calls_on_copy(tmp_path, passing, lambda run: sign(run, person, keys))
    source = random.Random(f"{begins_with}/{returns}")
    for number in range(EACH):
        run, other = copies(tmp_path / str(number), *both)
        moments = two_of(source, 1, len(calls))
        swaps = dict.fromkeys(moments if returns else moments[:1], partial(exchange, run, other))
        said = disturbed(partial(sign, run, person, keys), swaps)
        assert "broke" not in said
        for place in (run, other):
            assert verified(place, keys) != 0 or is_all_of(place, passing), (moments, said)


@pytest.mark.parametrize("returns", [True, False])
def test_files_that_are_exchanged_edited_and_added_while_a_run_is_signed(
    returns: bool, passing: Path, twin: Path, person: Person, keys: Path, tmp_path: Path
) -> None:
    _, calls = calls_on_copy(tmp_path, passing, lambda run: sign(run, person, keys))
    source = random.Random(f"files/{returns}")
    for number in range(2 * EACH):
        run, other = copies(tmp_path / str(number), passing, twin)
        first, second = two_of(source, 1, len(calls))
        do, undo = a_change(run, other, source)
        said = disturbed(partial(sign, run, person, keys), {first: do, **({second: undo} if returns else {})})
        assert "broke" not in said
        # a file beside the evidence is part of what is judged and signed, one among it is not
        added = [path for path in run.rglob("added*") if path.parent != run]
        assert verified(run, keys) != 0 or (is_all_of(run, passing) and not added), (first, second, said)


@pytest.mark.parametrize(("swap", "returns"), [(exchange, True), (exchange, False), (exchange_all, True)])
def test_what_is_exchanged_while_it_is_verified_is_not_valid(
    swap: Callable[[Path, Path], None], returns: bool, signed: Path, twin: Path, keys: Path, tmp_path: Path
) -> None:
    """The twin has the signature of the run. Once it was looked at, nothing that is put in its place helps.

    (Files of the run that come into the folder and stay there make it that run, which is valid.)
    """
    counted, calls = calls_on_copy(tmp_path, signed, lambda run: verified(run, keys))
    source = random.Random(f"verify/{swap.__name__}/{returns}")
    for number in range(EACH):
        run, other = copies(tmp_path / str(number), twin, signed)
        for file in other.glob("signoff*"):
            shutil.copy(file, run / file.name)
        moments = two_of(source, after_first_look(calls, counted), len(calls))
        swaps = dict.fromkeys(moments if returns else moments[:1], partial(swap, run, other))
        said = disturbed(partial(verified, run, keys), swaps)
        assert said == "1", (moments, said)


def note(run: Path) -> str:
    attached = run.parent / "scope.png"
    attached.write_bytes(b"picture")
    note_command.main([str(run), "seen", "--by", "Kim", "--attach", str(attached)], standalone_mode=False)
    return "noted"


COMMANDS: dict[str, Callable[[Path], object]] = {
    "judge": lambda run: judge_run(run)["exit_code"],
    "publish": lambda run: publish(run).verdict["exit_code"],
    "note": note,
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_exchanged_while_others_work_on_it_is_not_released(
    name: str, failing: Path, signed: Path, keys: Path, tmp_path: Path
) -> None:
    _, calls = calls_on_copy(tmp_path, failing, COMMANDS[name])
    source = random.Random(name)
    for number in range(EACH):
        run, other = copies(tmp_path / str(number), failing, signed)
        moments = two_of(source, 1, len(calls))
        said = disturbed(partial(COMMANDS[name], run), dict.fromkeys(moments, partial(exchange, run, other)))
        for place in (run, other):
            assert verified(place, keys) != 0 or is_all_of(place, signed), (moments, said)


def test_judge_says_what_the_folder_says_that_it_opened(failing: Path, passing: Path, tmp_path: Path) -> None:
    counted, calls = calls_on_copy(tmp_path, failing, COMMANDS["judge"])
    source = random.Random("judge")
    for number in range(EACH):
        run, other = copies(tmp_path / str(number), failing, passing)
        moments = two_of(source, after_first_look(calls, counted), len(calls))
        swaps = dict.fromkeys(moments, partial(exchange, run, other))
        said = disturbed(partial(COMMANDS["judge"], run), swaps)
        assert said == "1", (moments, said)


def judged_otherwise(run: Path) -> object:
    suite = run.parent / "strict.suite.yml"
    suite.write_text(SUITE.replace("margin: 8%", "margin: 7%"), encoding="utf-8")
    return judge_run(run, suite=suite)["outcome"]


COLLEAGUES: dict[str, Callable[[Path], object]] = {
    "note": note,
    "record": lambda run: record(run, "note", {"text": "cable reseated"}),
    "judge by another suite": judged_otherwise,
    "publish": publish,
    "report": lambda run: report_command.main([str(run)], standalone_mode=False),
    "history": history_of,
}


@pytest.mark.parametrize("first", ["signoff", "the colleague"])
@pytest.mark.parametrize("name", COLLEAGUES)
def test_a_colleague_beside_a_sign_off(
    name: str, first: str, passing: Path, person: Person, keys: Path, tmp_path: Path
) -> None:
    """Both are done, or one is refused; a run that is signed in the end is valid, and one that is not can be."""

    def works(run: Path) -> tuple[Work, Work]:
        both = partial(sign, run, person, keys), partial(COLLEAGUES[name], run)
        return both if first == "signoff" else both[::-1]

    _, calls = calls_on_copy(tmp_path, passing, lambda run: works(run)[0]())
    source = random.Random(f"{name}/{first}")
    for number in range(EACH):
        (run,) = copies(tmp_path / str(number), passing)
        moment = source.randint(1, max(1, len(calls)))
        said = beside(works(run)[0], moment, works(run)[1])
        assert not any("broke" in one for one in said), moment
        if not is_signed(run):
            sign(run, person, keys)
        assert verified(run, keys) == 0, (moment, said)
