# SPDX-License-Identifier: Apache-2.0
"""A run is told to a log, and each entry is checked by the keys of the verifier: what is altered does not hold."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from storqual.run import append_event, iter_events, sha256_of
from storqual.run.events import FIRST_DIGEST
from storqual.run.layout import dump_line
from storqual.signoff.verify import verify_run
from storqual.witness import check_witness, witness_batches
from storqual.witness.batches import TOLD, batches_of
from storqual.witness.places import tell
from storqual.witness.rekor import logged_at, proposed, read_keys
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.make_lab import lab_hosts
from tests.support.make_run import make_run
from tests.support.rekor_log import Log, Reply, new_key, public_pem, rekor_log
from tests.support.signing import make_person, write_keys
from tests.support.simulated_campaign import Bench, Rates, drive, plan
from tests.support.synthetic_shape import POINTS

DIGEST = bytes.fromhex("5a" * 32)
LAST = "s9-b01"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The lab's key."""
    new_key(tmp_path / "lab.pem")
    return tmp_path / "lab.pem"


def lab_key(path: Path) -> EllipticCurvePrivateKey:
    key = load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    return key


def keys_of(log: Log, lab: Path, path: Path) -> Path:
    """What a verifier has: the key of the log and that of the lab."""
    path.write_bytes(public_pem(log.key) + public_pem(lab_key(lab)))
    return path


def ended_run(folder: Path, place: str, key: Path) -> Path:
    """A run whose last batch ended now; the others are of another day than any answer."""
    run = make_run(folder, points=POINTS[:1], adapters=("sym",))
    document = json.loads((run / "run.json").read_text())
    document["benches"]["vbench"] |= {"witness": place, "witness_key": str(key)}
    (run / "run.json").write_text(json.dumps(document))
    append_event(run, "block_finished", {"bench": "vbench", "session": "s9", "block": LAST, "outcome": "done"})
    return run


def of_last(said: list[str]) -> list[str]:
    return [one for one in said if f"batch {LAST}:" in one]


def with_answer(run: Path, change: Callable[[bytes], bytes | None], folder: Path) -> Path:
    """A copy whose answer about the last batch is another, or gone; its chain of events is made anew."""
    copy = Path(shutil.copytree(run, folder / run.name))
    previous, chain = FIRST_DIGEST, b""
    for line in (copy / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["kind"] == TOLD and event["block"] == LAST:
            answer = change(base64.b64decode(event["answer"]))
            if answer is None:
                continue
            event["answer"] = base64.b64encode(answer).decode()
        event = dump_line({**event, "previous": previous})
        previous, chain = sha256_of(event[:-1]), chain + event
    (copy / "events.jsonl").write_bytes(chain)
    assert list(iter_events(copy))
    return copy


def test_a_campaign_is_logged_and_verified_without_the_log(tmp_path: Path, lab: Path) -> None:
    log, hosts = Log(records=[b"another's"]), lab_hosts({"sym": 2})
    with rekor_log(log) as place:
        for variables in hosts.values():
            variables |= {"storqual_witness": place, "storqual_witness_key": str(lab)}
        run = plan(tmp_path / "lab", hosts=hosts)
        drive(run, Bench(Rates(noise=0.003)))
        assert witness_batches(run, "b1") == []
        assert witness_batches(run, "b1") == []
    assert len(log.records) == len(batches_of(run)) + 1 >= 2
    keys = keys_of(log, lab, tmp_path / "log.pem")
    assert check_witness(run, str(keys)) == []
    people = write_keys(tmp_path, make_person(tmp_path, "Pat", "technician"))
    assert not any("batch" in one for one in verify_run(run, people, witness=str(keys)).problems)
    log.key = Log().key
    other = keys_of(log, lab, tmp_path / "other.pem")
    assert any(
        "whose key is not among those given" in one for one in verify_run(run, people, witness=str(other)).problems
    )


def test_a_run_that_was_changed_and_one_that_was_not_logged_do_not_hold(tmp_path: Path, lab: Path) -> None:
    log = Log()
    with rekor_log(log) as place:
        run = ended_run(tmp_path / "a", place, lab)
        assert witness_batches(run, "vbench") == []
    keys = str(keys_of(log, lab, tmp_path / "log.pem"))
    said = check_witness(run, keys)
    assert of_last(said) == []
    assert len(said) == len(batches_of(run)) - 1
    assert all("and was recorded at" in one for one in said)
    copy = with_answer(run, lambda _: None, tmp_path / "none")
    assert of_last(check_witness(copy, keys)) == [f"batch {LAST}: the run has no answer of the log about it"]
    changed = Path(shutil.copytree(run, tmp_path / "changed"))
    (changed / "blocks" / f"{LAST}.json").write_text("{}")
    assert "the entry is of another digest" in of_last(check_witness(changed, keys))[0]


def test_an_entry_of_another_run_does_not_hold(tmp_path: Path, lab: Path) -> None:
    log = Log()
    with rekor_log(log) as place:
        runs = [ended_run(tmp_path / name, place, lab) for name in ("a", "b")]
        for run in runs:
            assert witness_batches(run, "vbench") == []
    keys = str(keys_of(log, lab, tmp_path / "log.pem"))
    answers = [event.fields["answer"] for event in iter_events(runs[1]) if event.kind == TOLD]
    copy = with_answer(runs[0], lambda _: base64.b64decode(answers[-1]), tmp_path / "mixed")
    assert "the entry is of another digest" in of_last(check_witness(copy, keys))[0]


Change = Callable[[str, dict[str, Any]], None]


def _proof(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = entry["verification"]["inclusionProof"]
    return found


def _time(_: str, entry: dict[str, Any]) -> None:
    entry["integratedTime"] -= 60


def _index(_: str, entry: dict[str, Any]) -> None:
    entry["logIndex"] += 1


def _signature(_: str, entry: dict[str, Any]) -> None:
    entry["verification"]["signedEntryTimestamp"] = base64.b64encode(Log().sign(b"another")).decode()


def _no_signature(_: str, entry: dict[str, Any]) -> None:
    del entry["verification"]["signedEntryTimestamp"]


def _path(_: str, entry: dict[str, Any]) -> None:
    _proof(entry)["hashes"][0] = "00" * 32


def _shorter(_: str, entry: dict[str, Any]) -> None:
    _proof(entry)["hashes"].pop()


def _place(_: str, entry: dict[str, Any]) -> None:
    _proof(entry)["logIndex"] -= 1


def _root(_: str, entry: dict[str, Any]) -> None:
    _proof(entry)["rootHash"] = "00" * 32


def _checkpoint_line(entry: dict[str, Any], number: int, text: str) -> None:
    lines = _proof(entry)["checkpoint"].split("\n")
    lines[number] = text
    _proof(entry)["checkpoint"] = "\n".join(lines)


def _checkpoint_size(_: str, entry: dict[str, Any]) -> None:
    _checkpoint_line(entry, 1, "7")


def _checkpoint_root(_: str, entry: dict[str, Any]) -> None:
    _checkpoint_line(entry, 2, base64.b64encode(bytes(32)).decode())


def _checkpoint_by_another(_: str, entry: dict[str, Any]) -> None:
    text, _, line = _proof(entry)["checkpoint"].rpartition("\n\n")
    signed = base64.b64encode(b"name" + Log().sign(f"{text}\n".encode())).decode()
    _proof(entry)["checkpoint"] = f"{text}\n\n{line.rsplit(' ', 1)[0]} {signed}\n"


def _checkpoint_unsigned(_: str, entry: dict[str, Any]) -> None:
    _proof(entry)["checkpoint"] = _proof(entry)["checkpoint"].partition("\n\n")[0]


def _lab(_: str, entry: dict[str, Any]) -> None:
    record = json.loads(base64.b64decode(entry["body"]))
    key = record["spec"]["signature"]["publicKey"]
    key["content"] = base64.b64encode(public_pem(Log().key)).decode()
    entry["body"] = base64.b64encode(json.dumps(record).encode()).decode()


ALTERED: list[tuple[Change, str]] = [
    (_time, "the signed entry timestamp is not of this log and entry"),
    (_index, "the signed entry timestamp is not of this log and entry"),
    (_signature, "the signed entry timestamp is not of this log and entry"),
    (_no_signature, "verification: signedEntryTimestamp: Field required"),
    (_path, "does not lead to the root"),
    (_shorter, "the proof of inclusion is too short"),
    (_place, "does not lead to the root"),
    (_root, "does not lead to the root"),
    (_checkpoint_size, "the checkpoint is not of the tree"),
    (_checkpoint_root, "the checkpoint is not of the tree"),
    (_checkpoint_by_another, "the checkpoint is not signed by this log"),
    (_checkpoint_unsigned, "the checkpoint is not of the tree"),
    (_lab, "which is not among those given"),
]


@pytest.fixture
def entry(lab: Path) -> tuple[Log, dict[str, Any]]:
    """A log and its answer about a digest."""
    log = Log(records=[b"%d" % number for number in range(5)])
    return log, log.integrate(proposed(DIGEST, lab))


@pytest.mark.parametrize(("change", "told"), ALTERED, ids=[change.__name__[1:] for change, _ in ALTERED])
def test_an_altered_entry_does_not_hold(
    entry: tuple[Log, dict[str, Any]], lab: Path, tmp_path: Path, change: Change, told: str
) -> None:
    log, answer = entry
    keys = read_keys(keys_of(log, lab, tmp_path / "log.pem").read_bytes())
    assert logged_at(json.dumps(answer).encode(), DIGEST, keys)
    ((uuid, one),) = answer.items()
    change(uuid, one)
    with pytest.raises(ValueError, match=told):
        logged_at(json.dumps(answer).encode(), DIGEST, keys)


def test_an_entry_under_the_name_of_another_does_not_hold(
    entry: tuple[Log, dict[str, Any]], lab: Path, tmp_path: Path
) -> None:
    log, answer = entry
    keys = read_keys(keys_of(log, lab, tmp_path / "log.pem").read_bytes())
    with pytest.raises(ValueError, match="the UUID is of another entry"):
        logged_at(json.dumps(dict(zip(["00" * 32], answer.values(), strict=True))).encode(), DIGEST, keys)


def test_a_log_without_checkpoints_and_one_without_proofs_hold_by_their_promise(
    entry: tuple[Log, dict[str, Any]], lab: Path, tmp_path: Path
) -> None:
    log, answer = entry
    keys = read_keys(keys_of(log, lab, tmp_path / "log.pem").read_bytes())
    (one,) = answer.values()
    del _proof(one)["checkpoint"]
    assert logged_at(json.dumps(answer).encode(), DIGEST, keys)
    del one["verification"]["inclusionProof"]
    assert logged_at(json.dumps(answer).encode(), DIGEST, keys)


def test_a_signature_of_the_lab_over_something_else_does_not_hold_even_if_logged(lab: Path, tmp_path: Path) -> None:
    log = Log()
    record = json.loads(proposed(DIGEST, lab))
    record["spec"]["signature"]["content"] = json.loads(proposed(bytes(32), lab))["spec"]["signature"]["content"]
    answer = json.dumps(log.add(json.dumps(record).encode())).encode()
    with pytest.raises(ValueError, match="the lab's signature does not fit"):
        logged_at(answer, DIGEST, read_keys(keys_of(log, lab, tmp_path / "log.pem").read_bytes()))


def test_keys_that_are_none_are_bad_input(tmp_path: Path) -> None:
    run = make_run(tmp_path, points=POINTS[:1], adapters=("sym",))
    (tmp_path / "log.pem").write_text("-----BEGIN PUBLIC KEY-----\nbm8=\n-----END PUBLIC KEY-----\n")
    with pytest.raises(BadInputError, match=r"found no keys .*expected those of the log and of the lab"):
        check_witness(run, str(tmp_path / "log.pem"))
    (tmp_path / "log.pem").write_text("-----BEGIN PUBLIC KEY-----\n")
    with pytest.raises(BadInputError, match="no whole PEM block"):
        check_witness(run, str(tmp_path / "log.pem"))


def redirected(_: bytes) -> Reply:
    return 302, {"Location": "/elsewhere"}, b""


def endless(_: bytes) -> Reply:
    return 201, {}, b"{" + b" " * (1 << 17) + b"}"


def long_header(_: bytes) -> Reply:
    return 201, {"Server": "a" * (1 << 17)}, b"{}"


def of_another(_: bytes) -> Reply:
    record = {"data": {"hash": {"algorithm": "sha256", "value": "00" * 32}}}
    signature = {"content": "", "publicKey": {"content": ""}}
    body = {"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {**record, "signature": signature}}
    return 201, {}, json.dumps(Log().add(json.dumps(body).encode())).encode()


def body_of(answer: bytes) -> Callable[[bytes], Reply]:
    return lambda _: (201, {}, answer)


HOSTILE: list[tuple[str, Callable[[bytes], Reply], str]] = [
    ("redirect", redirected, "302"),
    ("huge", endless, "longer than 65536 bytes"),
    ("long header", long_header, "got more than 65536 bytes"),
    ("another digest", of_another, "the entry is of another digest"),
    ("refused", lambda _: (400, {}, b"no"), "400"),
    ("not JSON", body_of(b"<html>"), "found no entry of a log"),
    ("empty", body_of(b""), "found no entry of a log"),
    ("no entry", body_of(b"{}"), "found no entry of a log"),
    ("two entries", body_of(b'{"%b":{},"%b":{}}' % (b"0" * 64, b"1" * 64)), "found no entry of a log"),
    ("deep JSON", body_of(b'{"a":' * 8000 + b"1" + b"}" * 8000), "found no entry of a log"),
    ("deep list", body_of(b"[" * 30000), "found no entry of a log"),
    ("a huge number", body_of(b'{"%b":{"integratedTime":%b}}' % (b"0" * 64, b"9" * 5000)), "found no entry of a log"),
    ("escapes", body_of(b'{"\\u001b[2J\\nVALID":{}}'), r"found no entry of a log \(.key.: String should match"),
    ("not UTF-8", body_of(b'{"\xff":{}}'), "found no entry of a log"),
]


@pytest.mark.parametrize(("reply", "told"), [one[1:] for one in HOSTILE], ids=[one[0] for one in HOSTILE])
def test_a_hostile_answer_is_refused_in_one_line(lab: Path, reply: Callable[[bytes], Reply], told: str) -> None:
    with rekor_log(Log(), reply) as place, pytest.raises(StorqualError, match=told) as refused:
        tell(place, "", DIGEST, str(lab))
    assert str(refused.value).startswith(f"{place.removeprefix('rekor+')}: not logged (")
    assert str(refused.value).isprintable()


def test_a_log_that_is_away_stops_nothing_and_is_told_later(tmp_path: Path, lab: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = ended_run(tmp_path / "a", f"rekor+http://127.0.0.1:{port}", lab)
    wrong = witness_batches(run, "vbench")
    assert len(wrong) == len(batches_of(run))
    assert all("did not reach the witness" in one for one in wrong)
    log = Log()
    with rekor_log(log) as place:
        document = json.loads((run / "run.json").read_text())
        document["benches"]["vbench"]["witness"] = place
        (run / "run.json").write_text(json.dumps(document))
        assert witness_batches(run, "vbench") == []
    assert of_last(check_witness(run, str(keys_of(log, lab, tmp_path / "log.pem")))) == []


def test_a_log_is_asked_by_https_with_a_certificate_that_this_machine_trusts(
    tmp_path: Path, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = tmp_path / "server.pem"
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    named = ["-subj", "/CN=log", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-keyout", tmp_path / "key", "-out", tmp_path / "cert"]
    subprocess.run([*new, *named, *made], check=True, capture_output=True)
    certificate.write_bytes((tmp_path / "key").read_bytes() + (tmp_path / "cert").read_bytes())
    with rekor_log(Log(), certificate=certificate) as place:
        with pytest.raises(StorqualError, match="CERTIFICATE_VERIFY_FAILED"):
            tell(place, "", DIGEST, str(lab))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
        assert tell(place, "", DIGEST, str(lab))


def _ed25519() -> Any:
    return Ed25519PrivateKey.generate()


def _p384() -> Any:
    return generate_private_key(SECP384R1())


@pytest.mark.parametrize("make", [_ed25519, _p384, None], ids=["Ed25519", "P-384", "text"])
def test_a_key_that_a_log_cannot_check_by_a_digest_is_refused(tmp_path: Path, make: Callable[[], Any] | None) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(make().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) if make else b"no key")
    with pytest.raises(StorqualError, match="expected an ECDSA private key on P-256"):
        proposed(DIGEST, key)
    key.unlink()
    with pytest.raises(StorqualError, match=r"cannot be read \(No such file or directory\)"):
        proposed(DIGEST, key)
