# SPDX-License-Identifier: Apache-2.0
"""What makes a signed run a release: the verifier's policy, what it was measured on, and what its statements say."""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.inputs.policy import fingerprint
from storqual.judge.verdict import judge_run
from storqual.run import read_run, sha256_of, write_bytes
from storqual.run.layout import MANIFEST
from storqual.signoff.manifest import dump_manifest, envelope_name, list_files
from storqual.signoff.signature import load_private_key, seal
from storqual.signoff.statement import Signer, dump_statement, make_statement
from storqual.signoff.verify import Verification, verify_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.signing import NOW, Person, sign
from tests.support.synthetic_shape import POINTS

LATER = NOW + timedelta(hours=2)
BOTH = "require:\n  - roles: [technician, release-manager]\n"
TECHNICIAN = "name: release\nsignatures: [technician]\n"
FEW = {"noise": 0.003, "points": POINTS[:1], "adapters": ("sym",)}


def with_policy(keys: Path, text: str, folder: Path) -> Path:
    path = folder / "keys.yml"
    path.write_text(keys.read_text(encoding="utf-8") + text, encoding="utf-8")
    return path


def verify(run: Path, keys: Path, **more: object) -> Verification:
    return verify_run(run, keys, as_of=LATER, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("alone"), gate=TECHNICIAN, **FEW)
    judge_run(run)
    return run


@pytest.fixture
def alone(_alone: Path, tmp_path: Path) -> Path:
    """A run whose own gate was written to ask for a technician alone."""
    return Path(shutil.copytree(_alone, tmp_path / "alone" / _alone.name))


def test_a_run_is_released_by_the_verifiers_policy(signed: Path, keys: Path, tmp_path: Path) -> None:
    verification = verify(signed, with_policy(keys, BOTH, tmp_path), allow_virtual=True)
    assert (verification.problems, verification.withheld, verification.exit_code, verification.result) == (
        (),
        (),
        0,
        "released",
    )
    assert (verification.policy, set(verification.required)) == ("keys.yml", {"technician", "release-manager"})
    by_option = verify(signed, keys, require_roles=["release-manager"], allow_virtual=True)
    assert (by_option.exit_code, by_option.policy) == (0, "--require-role")


def test_nobody_releases_a_run_by_its_own_gate(
    alone: Path, people: tuple[Person, Person], keys: Path, tmp_path: Path
) -> None:
    """A technician who can write the gate would release alone."""
    sign(alone, people[0], keys)
    verification = verify(alone, keys, allow_virtual=True)
    assert (verification.problems, verification.exit_code) == ((), 2)
    assert "only the run itself says who must sign" in verification.withheld[0]
    by_file = verify(alone, with_policy(keys, BOTH, tmp_path), allow_virtual=True)
    assert by_file.exit_code == 1
    assert by_file.problems[0] == (
        "inputs/gate.yml: the run's own gate requires technician only, keys.yml requires a signature as "
        "release-manager; the gate of a run cannot be changed: set `signatures: [technician, release-manager]` in "
        "gate.yml beside the inventory and qualify again, or require less in keys.yml"
    )
    assert "there is no valid signature as release-manager" in by_file.problems
    by_option = verify(alone, keys, require_roles=["release-manager"], allow_virtual=True)
    assert "technician only, --require-role requires a signature as release-manager" in by_option.problems[0]


def test_a_run_that_asks_for_less_than_the_policy_is_not_signed(
    alone: Path, people: tuple[Person, Person], keys: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInputError, match=r"gate requires technician only, keys.yml requires"):
        sign(alone, people[0], with_policy(keys, BOTH, tmp_path))


def test_what_fits_of_a_policy_counts_together_and_nothing_that_fits_is_a_problem(
    signed: Path, keys: Path, tmp_path: Path
) -> None:
    drop, suite = read_run(signed).arms["candidate"].drop, read_run(signed).suite.name
    two = f"require:\n  - {{drop: '{drop}', roles: technician}}\n  - {{suite: '{suite}', roles: [release-manager]}}\n"
    assert set(verify(signed, with_policy(keys, two, tmp_path)).required) == {"technician", "release-manager"}
    other = with_policy(keys, "require:\n  - {drop: another, roles: technician}\n", tmp_path)
    assert f"nothing under `require` fits drop {drop}, suite {suite}" in verify(signed, other).problems[0]
    bench = with_policy(keys, "require:\n  - {bench: 'elsewhere-*', roles: technician}\n", tmp_path)
    assert verify(signed, bench).exit_code == 1


def test_what_software_measured_is_no_release_unless_it_is_asked_for(
    signed: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = with_policy(keys, BOTH, tmp_path)
    verification = verify(signed, policy)
    assert (verification.exit_code, verification.result) == (2, "valid, not released")
    assert verification.withheld[0].startswith("method only: it was measured on emulated hardware")
    assert verification.to_json()["benches"] == {"vbench": "virtual"}
    words = ["verify", str(signed), "--keys", str(policy), "--as-of", LATER.strftime("%Y-%m-%dT%H:%M:%S")]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    out = capsys.readouterr().out
    assert "VALID, NOT RELEASED" in out
    assert "method only" in out
    with pytest.raises(SystemExit) as ended:
        main([*words, "--allow-virtual"])
    assert ended.value.code == 0
    assert "VALID, RELEASED" in capsys.readouterr().out


def test_hardware_that_is_asked_for_is_not_waved_away(
    signed: Path, keys: Path, people: tuple[Person, Person], tmp_path: Path
) -> None:
    policy = with_policy(keys, f"{BOTH}    hardware: required\n", tmp_path)
    verification = verify(signed, policy, allow_virtual=True)
    assert verification.problems == ("keys.yml requires hardware: vbench is emulated hardware",)
    run = make_run(tmp_path / "gated", gate="signatures: [technician]\nhardware: required\n", **FEW)
    judge_run(run)
    with pytest.raises(BadInputError, match=r"inputs/gate.yml requires hardware: vbench is emulated hardware"):
        sign(run, people[0], keys)


def test_a_waived_failure_is_told(tmp_path: Path, people: tuple[Person, Person], keys: Path) -> None:
    run = make_run(tmp_path, noise=0.003, points=POINTS[:1], adapters=("sym",), effect={"sym": -0.2})
    judge_run(run)
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(
        f"- {{criterion: iops, adapter: sym, point: '{POINTS[0]}', owner: Pat, reason: known, reference: LAB-12,"
        " expiry: 2026-12-31, max_loss: 25%}\n"
    )
    sign(run, people[1], keys, waivers=waivers)
    verification = verify(run, keys, require_roles=["release-manager"], allow_virtual=True)
    assert verification.exit_code == 0
    assert verification.waivers == (f"iops@sym/{POINTS[0]} on vbench: LAB-12 by Pat, through 2026-12-31",)
    assert verification.to_json()["waivers"] == list(verification.waivers)


def forge(folder: Path, person: Person, **changed: object) -> None:
    """Sign a statement that says something else than the run, with a trusted key: a mistaken or forced signer."""
    statement = statement_of(folder, person)
    part = statement["predicate"]["storqual"]
    for name, value in changed.items():
        target = part if name in part else statement["predicate"] if name in statement["predicate"] else statement
        target[name] = value
    key = load_private_key(person.key, lambda: "")
    write_bytes(folder / envelope_name(person.role), seal(dump_statement(statement), key))


def statement_of(run: Path, person: Person) -> dict:
    data = (run / "verdict.json").read_bytes()
    signer = Signer(person.name, person.role, fingerprint_of(person), NOW.isoformat().replace("+00:00", "Z"))
    return make_statement(
        read_run(run),
        json.loads(data),
        signer,
        manifest=sha256_of((run / MANIFEST).read_bytes()),
        judgement={"path": "verdict.json", "sha256": sha256_of(data)},
    )


def fingerprint_of(person: Person) -> str:
    return fingerprint(person.public)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"outcome": "FAIL"}, "which is not a release"),
        ({"outcome": "MARGINAL"}, "its predicate.storqual.outcome does not match the files"),
        ({"result": "WARNED"}, "its predicate.result does not"),
        ({"passedTests": []}, "its predicate.passedTests does not"),
        ({"waivers": [{"expiry": "2999-01-01"}]}, "its predicate.storqual.waivers does not"),
        ({"benches": {"vbench": "hardware"}}, "its predicate.storqual.benches does not"),
        ({"configuration": []}, "its predicate.configuration does not"),
        ({"judged_as_of": "2020-01-01T00:00:00Z"}, "its predicate.storqual.judged_as_of does not"),
        ({"judgement": {"path": "report.html", "sha256": "0" * 64}}, "is not where judgements of a run are"),
        ({"judgement": {"path": "../x/verdict.json", "sha256": "0" * 64}}, "is not where judgements of a run are"),
        ({"run": "another"}, "it is about the run another"),
    ],
)
def test_a_statement_says_what_the_files_say(
    changed: dict, words: str, run: Path, people: tuple[Person, Person], keys: Path
) -> None:
    sign(run, people[0], keys)
    forge(run, people[1], **changed)
    (signature,) = [candidate for candidate in verify(run, keys).signatures if candidate.role == "release-manager"]
    assert words in signature.problem
    assert bool(words) == bool(signature.problem)


def test_a_statement_of_a_failure_is_no_release(tmp_path: Path, people: tuple[Person, Person], keys: Path) -> None:
    good = make_run(tmp_path / "good", **FEW)
    judge_run(good)
    sign(good, people[1], keys)
    bad = make_run(tmp_path / "bad", **FEW, effect={"sym": -0.2})
    judge_run(bad)
    write_bytes(bad / MANIFEST, dump_manifest(read_run(bad).name, list_files(bad)))
    forge(bad, people[1])
    assert verify(good, keys).problems == ()
    assert "it says FAIL, and the judgement says FAIL, which is not a release" in "\n".join(
        verify(bad, keys).problems
    )


def test_people_who_sign_one_after_the_other_sign_one_manifest(
    run: Path, people: tuple[Person, Person], keys: Path
) -> None:
    """What came into the annex between two signatures is in neither."""
    sign(run, people[0], keys)
    judge_run(run, as_of=NOW + timedelta(days=9))
    assert sign(run, people[1], keys, now=NOW.replace(hour=19)).missing == ()
    assert verify(run, keys).problems == ()
