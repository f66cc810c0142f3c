# SPDX-License-Identifier: Apache-2.0
"""DSSE envelopes with Ed25519, by securesystemslib: sealed with a private key, opened with a trusted public one."""

from __future__ import annotations

import json
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

from storqual.model.trusted_keys import TrustedKey, fingerprint
from storqual.signoff.statement import PAYLOAD_TYPE
from storqual.store.layout import dump_json
from storqual_core.errors import BadInputError

__all__ = ["load_private_key", "open_envelope", "public_line", "read_payload", "seal"]

_LARGEST_KEY = 1 << 16


def load_private_key(path: Path, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    """An Ed25519 private key, in OpenSSH's form or as PEM; `passphrase` is asked for only where the key has one.

    Raises BadInputError for a file that holds none, or a passphrase that does not fit.
    """
    expected = "an Ed25519 private key (ssh-keygen -t ed25519)"
    try:
        data = path.read_bytes()[:_LARGEST_KEY]
    except OSError as problem:
        raise BadInputError([f"{path}: found no readable file ({problem.strerror}), expected {expected}"]) from None
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
        raise BadInputError([f"{path}: found no usable key ({said}), expected {expected}"]) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInputError([f"{path}: found a key of another kind ({type(key).__name__}), expected {expected}"])
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
    """The statement in an envelope, not yet believed. Raises ValueError for bytes that are no envelope of ours.

    Bytes that storqual would write otherwise are refused too: the spare bits of base64 must not carry anything.
    """
    return _parse(data).payload


def open_envelope(data: bytes, key: TrustedKey) -> bytes:
    """The statement in an envelope that `key` signed. Raises ValueError when it did not."""
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
            raise ValueError("it is not as it was written")
    except (FormatError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError(f"it is no signed envelope ({problem!r})") from None
    return envelope


def _dump(envelope: Envelope) -> bytes:
    return dump_json(envelope.to_dict(), ascii_only=True)
