# SPDX-License-Identifier: Apache-2.0
"""Tampering after signing: the manifest and the signatures."""

import base64
import json
import random
import shutil
from typing import Any

from storqual.run import sha256_of
from storqual.run.layout import MANIFEST, dump_json
from storqual.signoff.manifest import dump_manifest, list_files
from storqual.signoff.signature import load_private_key, seal
from tests.attacks.after.content import a_bit_is_flipped, a_digit_is_changed
from tests.attacks.after.tampering import DETACHED, ENVELOPE, SIGNATURES, STATEMENT, Attack, kind


def _manifest_again(attack: Attack) -> None:
    (attack.run / MANIFEST).write_bytes(dump_manifest(attack.run.name, list_files(attack.run)))


def _payload(attack: Attack) -> dict[str, Any]:
    envelope = json.loads((attack.run / ENVELOPE).read_text())
    found: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))
    return found


def _with_payload(attack: Attack, payload: dict[str, Any]) -> None:
    """The same signature over another statement."""
    envelope = json.loads((attack.run / ENVELOPE).read_text())
    envelope["payload"] = base64.b64encode(json.dumps(payload, indent=1).encode() + b"\n").decode()
    (attack.run / ENVELOPE).write_text(json.dumps(envelope, indent=1) + "\n")


@kind
def a_file_and_the_manifest_are_changed(attack: Attack, source: random.Random) -> None:
    a_bit_is_flipped(attack, source)
    _manifest_again(attack)


@kind
def a_file_is_taken_out_of_the_manifest(attack: Attack, source: random.Random) -> None:
    document = json.loads((attack.run / MANIFEST).read_text())
    gone = document["files"].pop(source.randrange(len(document["files"])))
    (attack.run / MANIFEST).write_text(json.dumps(document, indent=1) + "\n")
    (attack.run / gone["path"]).write_bytes(b"other")


@kind
def the_manifest_is_of_another_schema(attack: Attack, source: random.Random) -> None:
    text = (attack.run / MANIFEST).read_text()
    (attack.run / MANIFEST).write_text(text.replace("storqual.manifest/2", "storqual.manifest/1"))


@kind
def the_manifest_is_deleted(attack: Attack, source: random.Random) -> None:
    (attack.run / MANIFEST).unlink()


@kind
def the_manifest_of_another_run_takes_its_place(attack: Attack, source: random.Random) -> None:
    shutil.copy(attack.other / MANIFEST, attack.run / MANIFEST)


@kind
def a_signature_is_deleted(attack: Attack, source: random.Random) -> None:
    (attack.run / source.choice(SIGNATURES)).unlink()


@kind
def a_signature_is_renamed(attack: Attack, source: random.Random) -> None:
    one, other = source.choice(((ENVELOPE, "signoff.technician.json"), (STATEMENT, "signoff.x.statement.json")))
    (attack.run / one).rename(attack.run / other)


@kind
def a_bit_of_a_signature_is_flipped(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(SIGNATURES)
    data = bytearray(path.read_bytes())
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    path.write_bytes(data)


@kind
def a_signature_is_written_in_another_way(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice((ENVELOPE, STATEMENT))
    path.write_text(json.dumps(json.loads(path.read_text()), indent=source.choice((None, 2, 4))))


@kind
def a_signature_has_more_lines(attack: Attack, source: random.Random) -> None:
    path = attack.run / source.choice(SIGNATURES)
    path.write_bytes(path.read_bytes() + source.choice((b"\n", b" ", b"-----BEGIN SSH SIGNATURE-----\n")))


@kind
def a_signature_of_another_run_is_put_in_place(attack: Attack, source: random.Random) -> None:
    for name in source.choice(((ENVELOPE,), (STATEMENT, DETACHED), (ENVELOPE, STATEMENT, DETACHED), (DETACHED,))):
        shutil.copy(attack.other / name, attack.run / name)


@kind
def all_of_another_sign_off_is_put_in_place(attack: Attack, source: random.Random) -> None:
    for name in (*SIGNATURES, MANIFEST):
        shutil.copy(attack.other / name, attack.run / name)


@kind
def a_statement_says_another_outcome(attack: Attack, source: random.Random) -> None:
    payload = _payload(attack)
    payload["predicate"]["storqual"]["outcome"] = source.choice(("FAIL", "MARGINAL", "ERROR"))
    _with_payload(attack, payload)


@kind
def a_statement_points_elsewhere(attack: Attack, source: random.Random) -> None:
    payload = _payload(attack)
    path = source.choice(("annex/judgements/0123456789abcdef/verdict.json", "../verdict.json", "report.html"))
    payload["predicate"]["storqual"]["judgement"]["path"] = path
    _with_payload(attack, payload)


@kind
def a_statement_says_hardware(attack: Attack, source: random.Random) -> None:
    payload = _payload(attack)
    payload["predicate"]["storqual"]["benches"] = {"vbench": "hardware"}
    _with_payload(attack, payload)


@kind
def a_detached_statement_is_edited(attack: Attack, source: random.Random) -> None:
    path = attack.run / STATEMENT
    path.write_text(
        path.read_text().replace(*source.choice((("PASSED", "WARNED"), ("Pat", "Rat"), ("2026", "2025"))))
    )


@kind
def a_stranger_signs(attack: Attack, source: random.Random) -> None:
    key = load_private_key(attack.stranger.key, lambda: "")
    payload = json.dumps(_payload(attack), indent=1).encode() + b"\n"
    name = source.choice((ENVELOPE, "signoff.director.json", "signoff.technician.json"))
    (attack.run / name).write_bytes(seal(payload, key))


@kind
def a_stranger_signs_a_changed_run(attack: Attack, source: random.Random) -> None:
    a_digit_is_changed(attack, source)
    _manifest_again(attack)
    payload = _payload(attack)
    payload["subject"][0]["digest"]["sha256"] = sha256_of((attack.run / MANIFEST).read_bytes())
    key = load_private_key(attack.stranger.key, lambda: "")
    (attack.run / ENVELOPE).write_bytes(seal(json.dumps(payload, indent=1).encode() + b"\n", key))


@kind
def a_signature_without_a_statement_is_added(attack: Attack, source: random.Random) -> None:
    name = source.choice((f"{ENVELOPE}.sig", f"{MANIFEST}.sig", "signoff.x.statement.json.sig", "signoff.sig"))
    shutil.copy(attack.run / DETACHED, attack.run / name)


@kind
def a_file_is_named_like_a_sign_off(attack: Attack, source: random.Random) -> None:
    name = source.choice(
        ("signoff.txt", "signoff", "signoff.json", "signoff..json", "signoff.x.json", "signoff.html")
    )
    (attack.run / name).write_text("{}")


@kind
def a_role_has_two_signatures(attack: Attack, source: random.Random) -> None:
    shutil.copy(attack.run / ENVELOPE, attack.run / "signoff.release-manager.statement.json")


def _edited_envelope(attack: Attack, field: str, value: object) -> None:
    envelope = json.loads((attack.run / ENVELOPE).read_text())
    target = envelope if field == "more" else envelope["signatures"][0]
    target[field] = value
    (attack.run / ENVELOPE).write_bytes(dump_json(envelope, ascii_only=True))


@kind
def the_envelope_has_another_field(attack: Attack, source: random.Random) -> None:
    _edited_envelope(attack, "more", source.choice(("", "PASS", 1, None)))


@kind
def the_signature_in_the_envelope_has_another_field(attack: Attack, source: random.Random) -> None:
    _edited_envelope(attack, source.choice(("cert", "note")), source.choice(("", "PASS", 1, None)))


@kind
def the_envelope_has_a_further_signature(attack: Attack, source: random.Random) -> None:
    envelope = json.loads((attack.run / ENVELOPE).read_text())
    other = dict(envelope["signatures"][0], keyid=source.choice(("", "x", attack.stranger.public)))
    envelope["signatures"].insert(source.randrange(2), other)
    (attack.run / ENVELOPE).write_bytes(dump_json(envelope, ascii_only=True))


def _ssh_string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@kind
def reserved_bytes_of_an_ssh_signature_are_used(attack: Attack, source: random.Random) -> None:
    """ssh-keygen verifies such a signature: it passes over the reserved field."""
    lines = (attack.run / DETACHED).read_text().splitlines()
    blob = base64.b64decode("".join(lines[1:-1]))
    namespace = _ssh_string(b"storqual-signoff")
    used = _ssh_string(source.randbytes(source.randrange(1, 40)))
    blob = blob.replace(namespace + _ssh_string(b""), namespace + used)
    blob += source.choice((b"", b"\0", b"more"))
    text = base64.b64encode(blob).decode()
    wrapped = [text[at : at + 70] for at in range(0, len(text), 70)]
    (attack.run / DETACHED).write_text("\n".join([lines[0], *wrapped, lines[-1], ""]))
