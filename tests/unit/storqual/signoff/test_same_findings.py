# SPDX-License-Identifier: Apache-2.0
"""What speaks against a run speaks against signing it and against what was signed, in the same words."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.report.export import write_ocp
from storqual.run import append_event, is_signed, read_run, sha256_of, write_bytes
from storqual.run.closing import close_run
from storqual.run.evidence import record_published
from storqual.run.layout import MANIFEST, dump_json
from storqual.run.notes import add_note
from storqual.signoff.manifest import dump_manifest, list_files, look
from storqual.signoff.signature import load_private_key, seal
from storqual.signoff.statement import Signer, dump_statement, make_statement
from storqual.signoff.verify import Verification, verify_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.signing import NOW, Person, sign, write_keys
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

FEW = {"noise": 0.003, "points": POINTS[:1], "adapters": ("sym",)}
LOSS = {"effect": {"sym": -0.2}}
WAIVERS = "- {criterion: iops, adapter: sym, owner: Pat, reason: known, reference: LAB-12, expiry: 2035-12-31}\n"


def published(folder: Path, **shape: object) -> Path:
    """A closed run with a note, its attachment, a verdict, a report and an export, on record as published."""
    run = make_run(folder, **{**FEW, **shape})
    close_run(run)
    attached = folder / "scope.png"
    attached.write_bytes(b"picture")
    add_note(run, "seen", "Kim", (), (attached,))
    judge_run(run)
    build_report(run)
    write_ocp(run)
    record_published(run)
    return run


@pytest.fixture(scope="module")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("published"))


@pytest.fixture
def run(_published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_published, tmp_path / "run" / _published.name))


@pytest.fixture
def manager(people: tuple[Person, Person]) -> Person:
    return people[1]


def verify(run: Path, keys: Path) -> Verification:
    return verify_run(
        run, keys, as_of=NOW + timedelta(hours=2), allow_virtual=True, require_roles=["release-manager"]
    )


def refusal(run: Path, person: Person, keys: Path) -> list[str]:
    with pytest.raises(BadInputError) as caught:
        sign(run, person, keys)
    assert not is_signed(run)
    return [line.removeprefix(f"{run}/") for line in caught.value.problems]


def forged(run: Path, person: Person) -> Path:
    """Sign what lies there, whatever it is, as a program that looks at nothing would."""
    write_bytes(run / MANIFEST, dump_manifest(read_run(run).name, list_files(run)))
    data = (run / "verdict.json").read_bytes()
    signer = Signer(person.name, person.role, fingerprint_of(person), NOW.isoformat().replace("+00:00", "Z"))
    statement = make_statement(
        read_run(run),
        json.loads(data),
        signer,
        manifest=sha256_of((run / MANIFEST).read_bytes()),
        judgement={"path": "verdict.json", "sha256": sha256_of(data)},
    )
    sealed = seal(dump_statement(statement), load_private_key(person.key, lambda: ""))
    write_bytes(run / f"signoff.{person.role}.json", sealed)
    return run


def fingerprint_of(person: Person) -> str:
    from storqual.inputs.policy import fingerprint  # noqa: PLC0415

    return fingerprint(person.public)


def edited(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def edit(run: Path) -> None:
        data = (run / name).read_bytes()
        assert old in data
        (run / name).write_bytes(data.replace(old, new, 1))

    return edit


def verdict_with(value: object, *keys: Any) -> Callable[[Path], None]:
    """Published again with another value under these keys."""

    def change(run: Path) -> None:
        verdict = json.loads((run / "verdict.json").read_bytes())
        inner = reduce(getitem, keys[:-1], verdict)
        assert inner[keys[-1]] != value
        inner[keys[-1]] = value
        (run / "verdict.json").write_bytes(dump_json(verdict))
        build_report(run)
        write_ocp(run)
        record_published(run)

    return change


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a report that is edited": edited("report.html", b"PASS", b"pass"),
    "an attachment that is replaced": edited("notes/0001-scope.png", b"picture", b"another"),
    "an export that says otherwise": edited("ocp.jsonl", b'"result":"PASS"', b'"result":"FAIL"'),
    "a raw file that is gone": lambda run: next((run / "raw").iterdir()).unlink(),
    "a suite that is another": edited("inputs/suite.yml", b"8%", b"9%"),
    "a verdict that the files do not give": verdict_with(1e9, "criteria", 0, "candidate"),
    "a warning that the files do not give": verdict_with(["nothing to see"], "warnings"),
    "a reason that the files do not give": verdict_with("all pass", "reason"),
    **{
        f"a verdict with another digest of {name}": verdict_with("0" * 64, "inputs", name)
        for name in ("suite", "baseline", "candidate")
    },
    "a verdict of other samples": verdict_with("0" * 64, "inputs", "samples.jsonl"),
    "a verdict of another chain": verdict_with("0" * 64, "inputs", "events.jsonl"),
}
ODD: dict[str, Callable[[Path], None]] = {
    "a folder named like a signature": lambda run: (run / "signoff-x.json").mkdir(),
    "a pipe named like a signature": lambda run: os.mkfifo(run / "signoff.release-manager.json"),
    "a link named like a signature": lambda run: (run / "signoff.x.json").symlink_to("verdict.json"),
    "a run directory for anybody": lambda run: run.chmod(0o777),
    "a file for anybody": lambda run: (run / "report.html").chmod(0o666),
    "a pipe in the place of the samples": lambda run: (
        (run / "samples.jsonl").unlink(),
        os.mkfifo(run / "samples.jsonl"),
    )[1],
}


def test_a_published_run_is_signed_and_valid(run: Path, manager: Person, keys: Path) -> None:
    """Else nothing below would prove anything; neither command leaves anything else in it."""
    sign(run, manager, keys)
    before = look(run)
    assert (verify(run, keys).problems, verify(run, keys).exit_code) == ((), 0)
    assert look(run) == before


@pytest.mark.parametrize("name", DAMAGE)
def test_signoff_refuses_what_verify_finds(name: str, run: Path, manager: Person, keys: Path) -> None:
    DAMAGE[name](run)
    refused = refusal(run, manager, keys)
    verification = verify(forged(run, manager), keys)
    assert verification.exit_code == 1
    assert verification.problems[0] in refused


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_neither_signed_nor_valid(name: str, run: Path, manager: Person, keys: Path) -> None:
    """Nor does it make a run signed, or one that is signed unsigned."""
    signed = Path(shutil.copytree(run, run.parent / "signed" / run.name))
    sign(signed, manager, keys)
    ODD[name](run)
    refused = refusal(run, manager, keys)
    (signed / "signoff.release-manager.json").rename(signed.parent / "kept")
    ODD[name](signed)
    if not (signed / "signoff.release-manager.json").exists():
        (signed.parent / "kept").rename(signed / "signoff.release-manager.json")
    verification = verify(signed, keys)
    assert verification.exit_code == 1
    assert [problem for problem in verification.problems if problem in refused], (verification.problems, refused)


def test_a_run_that_failed_is_not_valid_whoever_signed_it(tmp_path: Path, manager: Person, keys: Path) -> None:
    """The verdict of a run that passed stands in it, and everything else agrees with itself."""
    good, bad = published(tmp_path / "good"), published(tmp_path / "bad", **LOSS)
    for name in ("verdict.json", "report.html", "ocp.jsonl"):
        shutil.copy(good / name, bad / name)
    record_published(bad)
    verification = verify(forged(bad, manager), keys)
    assert verification.exit_code == 1
    assert verification.problems[0].startswith("verdict.json: found ")


def test_waivers_beside_a_verdict_are_those_of_its_digest_and_those_in_it(
    tmp_path: Path, manager: Person, keys: Path
) -> None:
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(WAIVERS, encoding="utf-8")
    run = make_run(tmp_path, **FEW, **LOSS)
    close_run(run)
    assert judge_run(run, waivers=waivers)["exit_code"] == 0
    changes = (
        ("waivers.yml", b"", b""),
        ("waivers.yml", b"2035", b"2036"),
        ("verdict.json", b'"owner": "Pat"', b'"owner": "Kim"'),
        ("verdict.json", b'"expiry": "2035', b'"expiry": "2099'),
    )
    codes = []
    for number, (name, old, new) in enumerate(changes):
        copy = Path(shutil.copytree(run, tmp_path / str(number) / run.name))
        edited(name, old, new)(copy)
        codes.append(verify(forged(copy, manager), keys).exit_code)
    assert codes == [0, 1, 1, 1]


def test_a_run_that_passed_no_more_on_the_day_of_signing_is_not_valid(
    tmp_path: Path, manager: Person, people: tuple[Person, Person]
) -> None:
    """Its waiver was good when it was judged; the statement itself names a waiver that is still good."""
    keys = write_keys(tmp_path, *people)
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(WAIVERS.replace("2035-12-31", "2026-11-20"), encoding="utf-8")
    run = make_run(tmp_path, **FEW, **LOSS)
    close_run(run)
    early = NOW - timedelta(days=3)
    verdict = judge_run(run, waivers=waivers, as_of=early)
    assert verdict["exit_code"] == 0
    (judgement,) = run.glob("judgements/*/verdict.json")
    for name in ("verdict.json", "waivers.yml"):
        shutil.copy(judgement.with_name(name), run / name)
    append_event(
        run, "judged", {"outcome": "PASS", "path": "verdict.json", "sha256": sha256_of(judgement.read_bytes())}
    )
    problems = verify(forged(run, manager), keys).problems
    assert any("waiver LAB-12" in problem or "as of 2026-11-21" in problem for problem in problems)
