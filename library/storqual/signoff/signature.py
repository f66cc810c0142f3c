# SPDX-License-Identifier: Apache-2.0
"""One signature: of a trusted key, by somebody who could sign as that, saying what the files of its run say."""

import base64
import binascii
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import FormatError, VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from storqual.base import child
from storqual.inputs.policy import KEY_TYPES, TrustedKey, fingerprint, key_blob
from storqual.run import Run, sha256_of
from storqual.run.files import DAMAGE, parse_line, read_bytes
from storqual.run.layout import ANNEX, MANIFEST, dump_json
from storqual.signoff.manifest import Named, named_signatures, signature_names
from storqual.signoff.statement import PAYLOAD_TYPE, parse_statement, statement_difference
from storqual_core.kit.command import run
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError, StorqualError

_RELEASABLE = ("PASS", "MARGINAL")
_JUDGEMENT = re.compile(rf"verdict\.json\Z|({ANNEX}/)?judgements/[0-9a-f]{{16}}/verdict\.json\Z")


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature; `problem` says why it does not count, empty when it does."""

    file: str
    role: str
    name: str
    key: str
    signed_at: str
    outcome: str
    problem: str


@dataclass(frozen=True, slots=True)
class CheckedSignature:
    """A signature, the waivers that its statement rests on and the judgement that it is about.

    They count as little as it does. The judgement is `(path, SHA-256, day of signing)`.
    """

    signature: Signature
    waivers: tuple[Mapping[str, Any], ...] = ()
    judgement: tuple[str, str, date] = ("", "", date.min)


def validity_problem(key: TrustedKey, day: date) -> str:
    """Why a key does not count on that day; empty when it does."""
    if day > key.expires:
        return f"the key of {key.name} expired on {key.expires.isoformat()}"
    if key.valid_from is not None and day < key.valid_from:
        return f"the key of {key.name} is valid from {key.valid_from.isoformat()} only"
    return ""


def signature_lines(path: Path) -> list[str]:
    """Who says to have signed a run, a line each, for people who read its report; nothing of it is checked here."""
    lines = []
    for named in named_signatures(signature_names(path))[0]:
        try:
            data = read_bytes(path, named.file)
            statement = parse_statement(read_payload(data) if named.detached is None else data)
        except DAMAGE:
            lines.append(f"{named.file} cannot be read")
            continue
        signer = statement["signer"]
        waived = f", {len(statement['waivers'])} failures waived" if statement["waivers"] else ""
        manifest = f"manifest SHA-256 {statement['subjects'].get(MANIFEST, '')}"
        who = f"{signer.name} as {signer.role}, {signer.signed_at}, key {signer.key}"
        lines.append(f"{who}: {statement['outcome']}{waived}, {manifest}")
    return lines


def check_signature(
    path: Path, named: Named, keys: Mapping[str, TrustedKey], moment: datetime, *, digest: str, run: Run | None
) -> CheckedSignature:
    """Check one signature under the run directory `path`, whose manifest has the SHA-256 `digest`.

    `keys` are trusted, by fingerprint. `run` is None where the directory holds none that can be read.
    """
    role, name, key, signed_at, outcome = named.role, "", "", "", ""
    waivers: tuple[Mapping[str, Any], ...] = ()
    judgement = ("", "", date.min)
    try:
        data = read_bytes(path, named.file)
        statement = parse_statement(read_payload(data) if named.detached is None else data)
        signer, outcome = statement["signer"], statement["outcome"]
        role, name, key, signed_at = signer.role, signer.name, signer.key, signer.signed_at
        trusted = _trusted(keys, signer.key)
        if named.detached is None:
            open_envelope(data, trusted)
        else:
            _check_detached(data, path, named.detached, trusted)
        # from here on the statement is what this person said
        waivers = tuple(statement["waivers"])
        problem = _of_signer(statement, named, trusted, moment) or _of_run(statement, path, digest=digest, run=run)
        problem = problem or _expired_waiver(waivers, moment.date())
        named_by = statement["judgement"]
        judgement = (named_by["path"], named_by["sha256"], datetime.fromisoformat(signed_at).astimezone(UTC).date())
    except DAMAGE as broken:
        problem = str(broken)
    return CheckedSignature(Signature(named.file, role, name, key, signed_at, outcome, problem), waivers, judgement)


def _trusted(keys: Mapping[str, TrustedKey], name: str) -> TrustedKey:
    """The trusted key of that fingerprint. Raises ValueError."""
    key = keys.get(name)
    if key is None:
        raise ValueError(f"it is signed with the key {name}, which is not trusted")
    return key


def _check_detached(statement: bytes, path: Path, name: str, key: TrustedKey) -> None:
    """Raise ValueError, naming the signature's own file, when it is not one of `key` over `statement`."""
    try:
        check_ssh_signature(statement, read_bytes(path, name), key)
    except ValueError as problem:
        raise ValueError(f"{problem} (its signature is {name})") from None


def _of_signer(statement: Mapping[str, Any], named: Named, key: TrustedKey, moment: datetime) -> str:
    """Whether this person could sign as that, at that time."""
    signer = statement["signer"]
    if signer.role != named.role:
        return f"it was renamed: it is a signature as {signer.role}"
    if signer.role not in key.role:
        return f"{key.name} signed as {signer.role}, but is trusted as {', '.join(key.role)} only"
    if signer.name != key.name:
        return f"it names {signer.name}, but the key is that of {key.name}"
    return time_problem(key, signer.signed_at, moment)


def time_problem(key: TrustedKey, signed_at: str, moment: datetime) -> str:
    """Why what a key signed at that time (ISO 8601, by its owner's clock) does not count; empty when it does.

    A key that has expired by `moment` may have signed at any time. Raises ValueError for a text that is no time.
    """
    signed = datetime.fromisoformat(signed_at)
    if signed.tzinfo is None or signed > moment:
        return f"it says that it was signed at {signed_at}, which is not before {moment.isoformat()}"
    day = signed.astimezone(UTC).date()
    late = validity_problem(key, moment.date())
    if late and not validity_problem(key, day):
        return f"{late}; if it is known to have been signed before, verify with --as-of"
    return validity_problem(key, day) or late


def _of_run(statement: Mapping[str, Any], path: Path, *, digest: str, run: Run | None) -> str:
    """Whether it is a release of this run, as it is now, and says nothing that its files do not say."""
    if run is not None and statement["run"] != run.name:
        return f"it is about the run {statement['run']}"
    if statement["subjects"].get(MANIFEST) != digest:
        return f"it is about another manifest: {MANIFEST} was changed"
    judgement = statement["judgement"]
    if not _JUDGEMENT.match(judgement["path"]):
        return f"its judgement {judgement['path']} is not where judgements of a run are"
    file = path / judgement["path"]
    if not file.is_file():
        return f"the judgement that it is about is missing: {judgement['path']}"
    data = read_bytes(path, judgement["path"])
    if sha256_of(data) != judgement["sha256"]:
        return f"the judgement that it is about was changed: {judgement['path']}"
    verdict = parse_line(data, judgement["path"])
    if statement["outcome"] not in _RELEASABLE or verdict["exit_code"] != 0:
        return f"it says {statement['outcome']}, and the judgement says {verdict['outcome']}, which is not a release"
    differs = "" if run is None else statement_difference(statement, run, verdict)
    return f"its {differs} does not match the files" if differs else ""


def _expired_waiver(waivers: Iterable[Mapping[str, Any]], today: date) -> str:
    """The first waiver that the signature rests on and that counts no more."""
    for waiver in waivers:
        if today > date.fromisoformat(str(waiver["expiry"])):
            return (
                f"it rests on waiver {waiver['reference']} for {waiver['criterion']}, which expired on "
                f"{waiver['expiry']}"
            )
    return ""


_LARGEST_KEY = 1 << 16


def load_private_key(path: Path, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    """An Ed25519 private key, in OpenSSH's form or as PEM; `passphrase` is asked for only where the key has one.

    Raises BadInputError for a file that holds none, or a passphrase that does not fit.
    """
    expected = "an Ed25519 private key (ssh-keygen -t ed25519)"
    try:
        data = read_regular(path, _LARGEST_KEY)
    except BadInputError as problem:
        raise BadInputError([f"{text}; expected {expected}" for text in problem.problems]) from None
    if data.startswith(tuple(kind.encode() for kind in KEY_TYPES)):
        private = f"{path.with_suffix('')}" if path.suffix == ".pub" else "the file of its private key"
        raise BadInputError([f"{path}: this is a public key; sign with the private one: --key {private}"])
    if b"PRIVATE KEY" not in data:
        raise BadInputError([f"{path}: this file holds no private key; expected {expected}"])
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        try:
            key = load(data, password=None)
        except (TypeError, ValueError) as problem:
            # both libraries say only in words that a key has a passphrase
            if "encrypted" not in str(problem) and "password" not in str(problem).lower():
                raise
            key = load(data, password=passphrase().encode())
    except (TypeError, ValueError, UnsupportedAlgorithm) as problem:
        reason = (str(problem).splitlines() or ["not readable"])[0]
        raise BadInputError([f"{path}: this is not a usable key ({reason}); expected {expected}"]) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInputError([f"{path}: this is a key of another type ({type(key).__name__}); expected {expected}"])
    return key


def public_line(key: Ed25519PrivateKey) -> str:
    """The public half as OpenSSH writes it, without a comment."""
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def seal(statement: bytes, key: Ed25519PrivateKey) -> bytes:
    """The envelope of `statement`, signed; the key is named by the fingerprint that ssh-keygen shows."""
    public = SSlibKey.from_crypto(key.public_key(), keyid=fingerprint(public_line(key)))
    envelope = Envelope(statement, PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key, public))
    return _dump(envelope)


def read_payload(data: bytes) -> bytes:
    """The statement in an envelope, not yet believed. Raises ValueError for bytes that are no envelope of ours."""
    return _parse(data).payload


def open_envelope(data: bytes, key: TrustedKey) -> bytes:
    """The statement in an envelope that `key` signed.

    Raises ValueError when it did not, and for any byte that storqual would write otherwise: another field, a further
    signature, the spare bits of base64 are what nobody signed.
    """
    envelope = _parse(data)
    public = load_ssh_public_key(key.public.encode())
    try:
        envelope.verify([SSlibKey.from_crypto(public, keyid=key.id)], threshold=1)
    except (VerificationError, ValueError):
        raise ValueError(f"it was not signed with the key of {key.name}, or was changed since") from None
    return envelope.payload


def _parse(data: bytes) -> Envelope:
    try:
        envelope = Envelope.from_dict(json.loads(data))
        if envelope.payload_type != PAYLOAD_TYPE or _dump(envelope) != data:
            raise ValueError("it was changed since it was written")
        signatures = list(envelope.signatures.values())
        if len(signatures) != 1 or signatures[0].unrecognized_fields:
            raise ValueError("its envelope holds more than one signature, or a field that nobody signed")
    except (FormatError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError(f"it is not a signed envelope ({problem!r})") from None
    return envelope


def _dump(envelope: Envelope) -> bytes:
    return dump_json(envelope.to_dict(), ascii_only=True)


NAMESPACE = "storqual-signoff"
"""What the signatures are for: one made for e-mail or for git does not count."""

_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_WIDTH = 70
_SSHSIG = b"SSHSIG" + (1).to_bytes(4, "big")
"""How a signature begins: its magic and its version."""
_PATIENCE_S = 120.0
"""Somebody may have to touch a token."""


def read_public_key(path: Path) -> str:
    """The public key line of a key: from `path` itself, or from the `.pub` file beside it. Raises BadInputError."""
    for file in (path, path.with_name(f"{path.name}.pub")):
        try:
            text = file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text.startswith(("ssh-", "sk-ssh-")):
            return " ".join(text.split()[:2])
    raise BadInputError([f"{path}: no public key here or in {path.name}.pub"])


def sign_with_ssh(statement: bytes, key: Path) -> bytes:
    """The detached signature over `statement`. Raises StorqualError with what ssh-keygen says when it does not."""
    with tempfile.TemporaryDirectory(prefix="storqual-signoff-") as folder:
        file = Path(folder) / "statement"
        file.write_bytes(statement)
        argv = ["ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(file)]
        try:
            # in this process' session: it asks for a passphrase, or for a token's PIN, at the user's terminal
            ended = child.run(argv, timeout=_PATIENCE_S, capture_output=True, text=True, errors="replace")
        except (OSError, SubprocessError) as problem:
            raise StorqualError(f"{key}: ssh-keygen did not sign: {problem}") from None
        made = file.with_name("statement.sig")
        if ended.returncode != 0 or not made.is_file():
            reason = (ended.stderr.strip() or ended.stdout.strip() or f"status {ended.returncode}").splitlines()[-1]
            raise StorqualError(f"{key}: ssh-keygen did not sign: {reason}")
        return made.read_bytes()


def check_ssh_signature(statement: bytes, signature: bytes, key: TrustedKey) -> None:
    """Raise ValueError unless `signature` is one of `key` over `statement` and as ssh-keygen writes it."""
    if not _is_as_written(signature, key):
        raise ValueError("it was changed since ssh-keygen wrote it")
    with tempfile.TemporaryDirectory(prefix="storqual-verify-") as folder:
        signers, detached = Path(folder) / "signers", Path(folder) / "signature"
        signers.write_text(f'signer namespaces="{NAMESPACE}" {key.public}\n', encoding="ascii")
        detached.write_bytes(signature)
        argv = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", "signer", "-f", str(signers)]
        ended = run([*argv, "-s", str(detached)], send=statement)
    if ended.rc != 0:
        raise ValueError(f"it was not signed with the key of {key.name}, or was changed since")


def _is_as_written(signature: bytes, key: TrustedKey) -> bool:
    """Whether a signature holds what ssh-keygen writes for that key, and no byte more (OpenSSH, PROTOCOL.sshsig).

    ssh-keygen itself passes over the reserved field, and over bits and spaces that the armour can carry.
    """
    try:
        lines = signature.decode("ascii").split("\n")
        blob = base64.b64decode("".join(lines[1:-2]), validate=True)
    except (UnicodeDecodeError, binascii.Error, ValueError):
        return False
    text = base64.b64encode(blob).decode()
    wrapped = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
    kind = key.public.split()[0].encode()
    # a token adds its flags and its counter, which it signs as well
    signed = _string(kind) + _string(bytes(64)) + (bytes(5) if kind.startswith(b"sk-") else b"")
    fields = (key_blob(key.public), NAMESPACE.encode(), b"", b"sha512", signed)
    expected = _SSHSIG + b"".join(map(_string, fields))
    prefix = len(expected) - len(signed) + len(_string(kind)) + 4
    return lines == [_BEGIN, *wrapped, _END, ""] and len(blob) == len(expected) and blob[:prefix] == expected[:prefix]


def _string(data: bytes) -> bytes:
    """A string of SSH (RFC 4251, section 5)."""
    return len(data).to_bytes(4, "big") + data
