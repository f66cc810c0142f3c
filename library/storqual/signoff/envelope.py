# SPDX-License-Identifier: Apache-2.0
"""DSSE envelopes with Ed25519, by securesystemslib: sealed with a private key, opened with a trusted public one."""

from __future__ import annotations

import base64
import binascii
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

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

from storqual.inputs.policy import KEY_TYPES, TrustedKey, fingerprint, key_blob
from storqual.run.layout import dump_json
from storqual.signoff.statement import PAYLOAD_TYPE
from storqual_core.kit.command import run
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.kit.regular_file import read_regular

_LARGEST_KEY = 1 << 16


def load_private_key(path: Path, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    """An Ed25519 private key, in OpenSSH's form or as PEM; `passphrase` is asked for only where the key has one.

    Raises BadInputError for a file that holds none, or a passphrase that does not fit.
    """
    expected = "an Ed25519 private key (ssh-keygen -t ed25519)"
    try:
        data = read_regular(path, _LARGEST_KEY)
    except BadInputError as problem:
        raise BadInputError([f"{told}; expected {expected}" for told in problem.problems]) from None
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
        said = (str(problem).splitlines() or ["not readable"])[0]
        raise BadInputError([f"{path}: this is not a usable key ({said}); expected {expected}"]) from None
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
        if len(envelope.signatures) != 1 or any(one.unrecognized_fields for one in envelope.signatures.values()):
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
        ended = run(argv, timeout=_PATIENCE_S)
        made = file.with_name("statement.sig")
        if ended.rc != 0 or not made.is_file():
            said = (ended.stderr.strip() or ended.stdout.strip() or f"status {ended.rc}").splitlines()[-1]
            raise StorqualError(f"{key}: ssh-keygen did not sign: {said}")
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
    known = len(expected) - len(signed) + len(_string(kind)) + 4
    return lines == [_BEGIN, *wrapped, _END, ""] and len(blob) == len(expected) and blob[:known] == expected[:known]


def _string(data: bytes) -> bytes:
    """A string of SSH (RFC 4251, section 5)."""
    return len(data).to_bytes(4, "big") + data
