# SPDX-License-Identifier: Apache-2.0
"""Who may sign what: every way in which a signature is refused, and what it is made of when it is not."""

import base64
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.run import append_event, finish_run, sha256_of
from storqual.run.closing import close_run
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.make_run import make_run
from tests.support.sealed_run import chained, lines_of
from tests.support.signing import NOW, Person, make_person, sign, write_keys
from tests.support.synthetic_shape import POINTS
from tests.support.terminal import at_terminal

pytestmark = pytest.mark.slow

LATER = NOW + timedelta(hours=2)
WAIVER = """\
- {{criterion: iops, adapter: "{adapter}", point: "{point}", owner: Pat, reason: known, reference: LAB-12,
   expiry: {expiry}, max_loss: 25%}}
"""


def statement_of(envelope: Path) -> dict:
    """The statement in an envelope, by plain base64."""
    return json.loads(base64.b64decode(json.loads(envelope.read_text())["payload"]))


def refusal(run: Path, person: Person, keys: Path, **more: object) -> str:
    """What signing is refused with; nothing may have been written."""
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(BadInputError) as caught:
        sign(run, person, keys, **more)
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert after == {**after, **before}
    assert not [path for path in after.keys() - before.keys() if path.name.startswith("signoff")]
    return str(caught.value)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("failed"), noise=0.003, points=POINTS[:2], effect={"sym": -0.2})
    assert judge_run(run)["exit_code"] == 1
    return run


def waivers_of(folder: Path, adapter: str = "sym", point: str = "*", expiry: str = "2026-12-31") -> Path:
    path = folder / "waivers.yml"
    path.write_text(WAIVER.format(adapter=adapter, point=point, expiry=expiry), encoding="utf-8")
    return path


def test_two_people_sign_and_the_run_is_signed_off(run: Path, people: tuple[Person, Person], keys: Path) -> None:
    first = sign(run, people[0], keys)
    assert (first.role, first.missing) == ("technician", ("release-manager",))
    assert "there is no valid signature as release-manager" in verify_run(run, keys, as_of=LATER).problems
    second = sign(run, people[1], keys)
    assert second.missing == ()
    assert " ".join(second.to_json()) == "run outcome role name key files missing policy waivers told"
    verification = verify_run(run, keys, as_of=LATER)
    assert verification.problems == ()
    assert (verification.outcome, {signature.role for signature in verification.signatures}) == (
        "PASS",
        {"technician", "release-manager"},
    )


def test_the_statement_is_in_toto_about_the_manifest_and_the_drop(
    run: Path, people: tuple[Person, Person], keys: Path
) -> None:
    sign(run, people[0], keys)
    statement = statement_of(run / "signoff.technician.json")
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    subjects = {entry["name"]: entry["digest"]["sha256"] for entry in statement["subject"]}
    assert subjects["signoff.manifest.json"] == sha256_of((run / "signoff.manifest.json").read_bytes())
    assert subjects["inputs/candidate.drop.yml"] == sha256_of((run / "inputs" / "candidate.drop.yml").read_bytes())
    verdict = json.loads((run / "verdict.json").read_text())
    predicate = statement["predicate"]
    assert predicate["result"] == "PASSED"
    assert predicate["failedTests"] == []
    tests = [*predicate["passedTests"], *predicate["warnedTests"]]
    assert len(tests) == len(verdict["criteria"])
    assert f"iops@sym/{POINTS[0]}" in tests
    assert {entry["name"] for entry in predicate["configuration"]} == set(verdict["inputs"])
    assert predicate["storqual"]["signer"]["name"] == "Pat"


def test_files_of_the_drop_are_subjects_by_their_digest(
    tmp_path: Path, people: tuple[Person, Person], keys: Path
) -> None:
    firmware, module, other = ("a" * 64, "b" * 64, "c" * 64)
    run = make_run(
        tmp_path,
        noise=0.003,
        points=POINTS[:1],
        adapters=("sym",),
        manifests={
            "candidate": {"firmware": [{"file": "fw-28.rom", "sha256": firmware, "tool": "storcli"}]},
            "baseline": {"firmware": [{"file": "fw-27.rom", "sha256": other, "tool": "storcli"}]},
        },
        finished=False,
    )
    events = lines_of(run / "events.jsonl")
    for event in events:
        if event["kind"] == "session_started":
            module_sha256 = module if event["arm"] == "candidate" else other
            event["provisioned"]["drivers"]["sym"] = {"name": "sym53c8xx.ko", "sha256": module_sha256}
    chained(run / "events.jsonl", events)
    finish_run(run)
    close_run(run)
    judge_run(run)
    sign(run, people[1], keys)
    subjects = statement_of(run / "signoff.release-manager.json")["subject"]
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in subjects}
    assert (digests["fw-28.rom"], digests["sym53c8xx.ko"]) == (firmware, module)
    assert other not in digests.values()


def test_a_key_with_a_passphrase_asks_for_it(run: Path, tmp_path: Path) -> None:
    pat = make_person(tmp_path, "Pat", "technician", passphrase="open sesame")  # noqa: S106 - of a key made for this test
    keys = write_keys(tmp_path, pat)
    assert "this is not a usable key" in refusal(run, pat, keys, passphrase=lambda: "wrong")
    assert sign(run, pat, keys, passphrase=lambda: "open sesame").name == "Pat"


def test_a_key_that_only_an_agent_holds_signs(run: Path, tmp_path: Path) -> None:
    pat = make_person(tmp_path, "Pat", "technician")
    keys = write_keys(tmp_path, pat)
    words = [sys.executable, "-m", "storqual", "signoff", run, "--key", f"{pat.key}.pub", "--keys", keys, "--ssh"]
    command = f"ssh-add -q {pat.key} && rm {pat.key} && exec {shlex.join(map(str, words))}"
    ended = subprocess.run(["ssh-agent", "sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert [signature.problem for signature in verify_run(run, keys).signatures] == [""]


def test_ssh_keygen_asks_for_a_passphrase_at_the_terminal(run: Path, tmp_path: Path) -> None:
    pat = make_person(tmp_path, "Pat", "technician", passphrase="open sesame")  # noqa: S106 - of a key made for this test
    keys = write_keys(tmp_path, pat)
    words = ["storqual", "signoff", str(run), "--key", str(pat.key), "--keys", str(keys), "--ssh"]
    code, screen = at_terminal([sys.executable, "-m", *words], [("passphrase", "open sesame\n")])
    assert code == 0, screen
    assert [signature.problem for signature in verify_run(run, keys).signatures] == [""]


def test_a_key_that_ssh_keygen_cannot_use_is_told_in_its_words(run: Path, tmp_path: Path) -> None:
    pat = make_person(tmp_path, "Pat", "technician")
    keys = write_keys(tmp_path, pat)
    public = pat.key.with_name("alone.pub")
    pat.key.with_name("pat.pub").rename(public)
    with pytest.raises(StorqualError, match="ssh-keygen did not sign: "):
        sign(run, Person(pat.name, public, pat.public, pat.role, pat.expires), keys, ssh=True)
    assert not list(run.glob("signoff*"))


def test_a_key_that_nobody_trusts_does_not_sign(run: Path, tmp_path: Path, keys: Path) -> None:
    """The message says where it would have to stand."""
    stranger = make_person(tmp_path, "Sam", "technician")
    assert "; add it there" in refusal(run, stranger, keys)


def test_what_is_no_private_key_does_not_sign(
    run: Path, tmp_path: Path, people: tuple[Person, Person], keys: Path
) -> None:
    broken = b"-----BEGIN PRIVATE KEY-----\nnothing\n-----END PRIVATE KEY-----\n"
    for name, data, words in (
        ("empty", b"", "this file holds no private key; expected an Ed25519 private key (ssh-keygen -t ed25519)"),
        ("junk", b"\x00\xff" * 50, "this file holds no private key"),
        ("broken", broken, "this is not a usable key"),
        ("x", people[0].public.encode(), "this is a public key; sign with the private one: --key the file of its"),
        (
            "x.pub",
            people[0].public.encode(),
            f"this is a public key; sign with the private one: --key {tmp_path / 'x'}",
        ),
    ):
        file = tmp_path / name
        file.write_bytes(data)
        stranger = Person("Sam", file, "", "technician", "")
        assert refusal(run, stranger, keys).startswith(f"{file}: {words}")
    assert "cannot be read" in refusal(run, Person("Sam", tmp_path / "none", "", "", ""), keys)


@pytest.mark.parametrize(
    ("day", "words"), [("2026-11-20", "expired on 2026-11-20"), ("2026-11-21", ""), ("2027-01-01", "")]
)
def test_a_key_counts_through_its_last_day(
    run: Path, people: tuple[Person, Person], tmp_path: Path, day: str, words: str
) -> None:
    pat = people[0]
    keys = write_keys(tmp_path, Person(pat.name, pat.key, pat.public, pat.role, day))
    if words:
        assert words in refusal(run, pat, keys)
    else:
        assert sign(run, pat, keys).role == "technician"


def test_nobody_signs_in_a_role_that_is_not_theirs(run: Path, people: tuple[Person, Person], keys: Path) -> None:
    message = refusal(run, people[0], keys, role="release-manager")
    assert f"{keys}: the key of Pat is listed as technician, not as release-manager; add release-manager" in message


def test_a_role_that_the_gate_does_not_ask_for_co_signs_and_counts_for_no_other(
    run: Path, people: tuple[Person, Person], tmp_path: Path
) -> None:
    """It has to be named, is listed, and stands for nobody who must sign."""
    pat = people[0]
    keys = write_keys(tmp_path, Person(pat.name, pat.key, pat.public, "director", pat.expires))
    message = refusal(run, pat, keys)
    assert "is listed as director, and the run needs a signature as technician, release-manager" in message
    assert f"{keys}: " in message
    signed = sign(run, pat, keys, role="director")
    assert (signed.role, signed.missing) == ("director", ("technician", "release-manager"))
    verification = verify_run(run, keys, as_of=LATER)
    assert verification.co_signers == ("Pat as director",)
    assert "there is no valid signature as technician" in verification.problems


def test_a_key_with_two_roles_that_are_asked_for_is_told_how_to_choose(
    run: Path, people: tuple[Person, Person], tmp_path: Path
) -> None:
    pat = people[0]
    keys = write_keys(tmp_path, Person(pat.name, pat.key, pat.public, "technician, release-manager", pat.expires))
    assert "choose one with --role technician or --role release-manager" in refusal(run, pat, keys)


def test_a_lab_without_a_gate_policy_is_told_that_one_signature_suffices(
    tmp_path: Path, people: tuple[Person, Person], keys: Path
) -> None:
    run = make_run(tmp_path, noise=0.003, points=POINTS[:1])
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert "gate" not in document["inputs"]
    judge_run(run)
    signed = sign(run, people[1], keys)
    assert (signed.role, signed.missing) == ("release-manager", ())
    assert "the lab has no gate policy, so one signature suffices" in signed.policy
    assert "under `signatures` in gate.yml" in signed.policy


def test_one_person_is_not_two(run: Path, tmp_path: Path, people: tuple[Person, Person]) -> None:
    other = make_person(tmp_path, "other", "release-manager")
    again = Person("Pat", other.key, other.public, other.role, other.expires)
    keys = write_keys(tmp_path, people[0], again)
    sign(run, people[0], keys)
    assert "Pat has already signed" in refusal(run, again, keys)
    assert "Pat has already signed as technician" in refusal(run, people[0], keys)


def test_a_run_that_was_not_judged_is_not_signed(tmp_path: Path, people: tuple[Person, Person], keys: Path) -> None:
    run = make_run(tmp_path, points=POINTS[:1])
    assert "this run has no verdict; judge it first" in refusal(run, people[1], keys)


@pytest.mark.parametrize("field", ["outcome", "criterion", "number", "as_of"])
def test_an_edited_verdict_is_not_signed(field: str, run: Path, people: tuple[Person, Person], keys: Path) -> None:
    verdict = json.loads((run / "verdict.json").read_text())
    if field == "outcome":
        verdict["outcome"] = "MARGINAL"
    elif field == "criterion":
        verdict["criteria"][0]["outcome"] = "MARGINAL"
    elif field == "number":
        verdict["criteria"][0]["shift_percent"] += 0.5
    else:
        verdict["as_of"] = "yesterday"
    (run / "verdict.json").write_text(json.dumps(verdict))
    message = refusal(run, people[0], keys)
    assert "the files say" in message or "this file holds no verdict" in message


def test_a_run_whose_inputs_were_changed_is_not_signed(run: Path, people: tuple[Person, Person], keys: Path) -> None:
    (run / "inputs" / "gate.yml").write_text("signatures: [technician]\n")
    assert "expected the gate as planned" in refusal(run, people[0], keys)


def test_a_failure_needs_waivers(failed: Path, tmp_path: Path, people: tuple[Person, Person], keys: Path) -> None:
    assert "give waivers that cover every failure" in refusal(failed, people[1], keys)
    for more in ({"adapter": "mpt"}, {"expiry": "2026-11-20"}, {"point": POINTS[0]}):
        waivers = waivers_of(tmp_path, **more)
        assert "the outcome is FAIL" in refusal(failed, people[1], keys, waivers=waivers), more


def test_a_waiver_that_is_wider_than_what_failed_is_refused(
    failed: Path, tmp_path: Path, people: tuple[Person, Person], keys: Path
) -> None:
    """It would accept failures that nobody has seen yet."""
    message = refusal(failed, people[1], keys, waivers=waivers_of(tmp_path, adapter="*"))
    assert "is wider than what failed: it covers 4 criteria, 2 failed; narrow it to them" in message


def test_a_waived_failure_is_signed_with_its_waivers_until_they_expire(
    failed: Path, tmp_path: Path, people: tuple[Person, Person], keys: Path
) -> None:
    failed = Path(shutil.copytree(failed, tmp_path / failed.name))
    signed = sign(failed, people[1], keys, waivers=waivers_of(tmp_path))
    assert (signed.waivers, signed.missing) == (2, ())
    assert json.loads((failed / "verdict.json").read_text())["outcome"] == "FAIL"
    predicate = statement_of(failed / "signoff.release-manager.json")["predicate"]
    assert (predicate["result"], len(predicate["storqual"]["waivers"])) == ("WARNED", 2)
    assert (failed / predicate["storqual"]["judgement"]["path"]).with_name("waivers.yml").is_file()
    assert verify_run(failed, keys, as_of=LATER).problems == ()
    # a judgement of the same day by the same rules does not take the place of the one that was signed
    judge_run(failed, waivers=tmp_path / "waivers.yml", as_of=NOW)
    assert verify_run(failed, keys, as_of=LATER).problems == ()
    (problem, *_) = verify_run(failed, keys, as_of=NOW + timedelta(days=60)).problems
    assert "it rests on waiver LAB-12" in problem
    assert "which expired on 2026-12-31" in problem


def test_a_verdict_whose_waiver_has_expired_since_needs_another_one(
    failed: Path, tmp_path: Path, people: tuple[Person, Person], keys: Path
) -> None:
    run = Path(shutil.copytree(failed, tmp_path / failed.name))
    (run / "verdict.json").unlink()
    assert judge_run(run, waivers=waivers_of(tmp_path, expiry="2026-11-30"))["exit_code"] == 0
    late = NOW + timedelta(days=20)
    assert "waiver LAB-12 of Pat expired on 2026-11-30" in refusal(run, people[1], keys, now=late)
    assert sign(run, people[1], keys, now=late, waivers=waivers_of(tmp_path)).waivers == 2
    assert verify_run(run, keys, as_of=late + timedelta(hours=1)).problems == ()


def test_what_was_not_judged_is_never_signed(tmp_path: Path, people: tuple[Person, Person], keys: Path) -> None:
    run = make_run(tmp_path, noise=0.003, points=POINTS[:1], statuses={"sym": "refused"})
    assert judge_run(run)["exit_code"] == 2
    waivers = waivers_of(tmp_path)
    message = refusal(run, people[1], keys, waivers=waivers)
    assert "a run that could not be judged can be neither signed nor waived" in message
    # it is closed: nobody is sent to resume what is finished
    assert "nothing is left to measure" in message
    assert "resume" not in message


def test_a_link_in_a_run_directory_is_not_signed(run: Path, people: tuple[Person, Person], keys: Path) -> None:
    (run / "raw" / "elsewhere").symlink_to("/etc/hostname")
    assert "raw/elsewhere: is a symbolic link" in refusal(run, people[0], keys)


def test_a_report_of_another_verdict_is_not_signed(run: Path, people: tuple[Person, Person], keys: Path) -> None:
    (run / "report.html").write_text("<p>PASS</p>")
    assert "this report is of another verdict" in refusal(run, people[0], keys)


def test_a_signed_run_takes_no_more_writers(signed: Path) -> None:
    """Whatever would write to it is refused before it does."""
    before = (signed / "events.jsonl").read_bytes()
    with pytest.raises(BadInputError, match="this run is signed"):
        append_event(signed, "note", {"text": "one more thing"})
    assert (signed / "events.jsonl").read_bytes() == before


MOMENTS = 30
WAIVED = """\
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
    with os.fdopen(reader) as pipe:
        text = pipe.read()
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
        more["waivers"].write_text(WAIVED, encoding="utf-8")
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
        assert not [signature.problem for signature in verify_run(copy, keys).signatures if signature.problem]
    # some of these moments were between two files
    assert changed > 1


def _sign(run: Path, person: Person, keys: Path, ssh: bool, more: dict[str, Any]) -> None:
    sign(run, person, keys, now=NOW.replace(hour=20), ssh=ssh, **more)
