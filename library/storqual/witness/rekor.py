# SPDX-License-Identifier: Apache-2.0
"""Sigstore's Rekor (API v1): a digest becomes an entry of a log, and the entry is checked without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from storqual.witness.merkle import leaf_hash, root_of
from storqual_core.kit.errors import StorqualError

ENTRIES = "/api/v1/log/entries"
_PUBLIC_KEYS = re.compile(rb"-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----")
_CHECKPOINT = re.compile(r"[^\n]+\n([0-9]{1,19})\n([A-Za-z0-9+/=]+)\n(?:[^\n]+\n)*")
_SIGNED = re.compile(r"^— \S+ ([A-Za-z0-9+/=]+)$", re.MULTILINE)

_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Key = EllipticCurvePublicKey | Ed25519PublicKey


class _Answer(BaseModel):
    """What a log says: names and types are exact, and what a later release adds is passed over."""

    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel)


class _Hash(_Answer):
    algorithm: Literal["sha256"]
    value: _Digest


class _Data(_Answer):
    hash: _Hash


class _PublicKey(_Answer):
    content: str


class _Signature(_Answer):
    content: str
    public_key: _PublicKey


class _Spec(_Answer):
    data: _Data
    signature: _Signature


class _Record(_Answer):
    """What stands in the log."""

    api_version: Literal["0.0.1"]
    kind: Literal["hashedrekord"]
    spec: _Spec


class _Proof(_Answer):
    hashes: tuple[_Digest, ...] = Field(max_length=64)
    log_index: _Count
    root_hash: _Digest
    tree_size: _Count
    checkpoint: str = ""


class _Verification(_Answer):
    signed_entry_timestamp: str
    inclusion_proof: _Proof | None = None


class Entry(_Answer):
    """An entry as the log returns it; `body` is its record, in base64."""

    body: str
    integrated_time: _Count
    log_id: _Digest = Field(alias="logID")
    log_index: _Count
    verification: _Verification

    def record(self) -> bytes:
        """What stands in the log. Raises ValueError."""
        return base64.b64decode(self.body, validate=True)

    def promised(self) -> bytes:
        """What the signed entry timestamp signs: JSON in canonical form (RFC 8785)."""
        signed = {
            "body": self.body,
            "integratedTime": self.integrated_time,
            "logID": self.log_id,
            "logIndex": self.log_index,
        }
        return json.dumps(signed, separators=(",", ":")).encode()


_ENTRIES = TypeAdapter(dict[Annotated[str, Field(pattern=r"^([0-9a-f]{16})?[0-9a-f]{64}$", strict=True)], Entry])
_RECORD = TypeAdapter(_Record)


def proposed(digest: bytes, file: Path) -> bytes:
    """An entry that asks the log for a record of `digest`, signed with the lab's private key (PEM) in `file`.

    The key is ECDSA on P-256: a log that sees only a digest cannot check a plain Ed25519 signature. Raises
    StorqualError.
    """
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except OSError as problem:
        raise StorqualError(f"{file}: the key of the witness cannot be read ({problem.strerror})") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise StorqualError(f"{file}: expected an ECDSA private key on P-256, as PEM, without a passphrase")
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signature = {
        "content": base64.b64encode(key.sign(digest, ECDSA(Prehashed(SHA256())))).decode(),
        "publicKey": {"content": base64.b64encode(public).decode()},
    }
    data = {"hash": {"algorithm": "sha256", "value": digest.hex()}}
    spec = {"data": data, "signature": signature}
    return json.dumps({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": spec}).encode()


def read_entry(answer: bytes, digest: bytes) -> tuple[str, Entry, _Signature]:
    """The entry of `digest` in an answer, its UUID, and the lab's signature. Raises ValueError when it is none."""
    try:
        ((uuid, entry),) = _ENTRIES.validate_json(answer).items()
        record = _RECORD.validate_json(entry.record())
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        # the first name is the log's own word for the entry, and may be anything
        where = "".join(f"{name}: " for name in first["loc"][1:])
        raise ValueError(f"found no entry of a log ({where}{first['msg']})") from None
    except ValueError:
        raise ValueError("found no entry of a log: expected one entry, its body in base64") from None
    if record.spec.data.hash.value != digest.hex():
        raise ValueError(f"the entry is of another digest, {record.spec.data.hash.value}")
    return uuid, entry, record.spec.signature


def read_keys(pem: bytes) -> dict[str, Key]:
    """Public keys by their name in a log, the SHA-256 of their DER form. Raises ValueError."""
    keys = {}
    for found in _PUBLIC_KEYS.findall(pem):
        key = _key(found)
        keys[_name(key)] = key
    if not keys:
        raise ValueError("no whole PEM block")
    return keys


def logged_at(answer: bytes, digest: bytes, keys: Mapping[str, Key]) -> datetime:
    """When a log took `digest`. `keys` has the verifier's keys: of the log, and of the lab that asked for the entry.

    The log must have signed its promise (the signed entry timestamp). Where it gave a proof of inclusion, that must
    lead to the root that it names, and to that of the checkpoint, which the log must have signed. Raises ValueError
    with what is wrong.
    """
    uuid, entry, signature = read_entry(answer, digest)
    lab = _key(base64.b64decode(signature.public_key.content))
    if _name(lab) not in keys:
        raise ValueError(f"the entry is signed with the key {_name(lab)}, which is not among those given")
    _check(lab, base64.b64decode(signature.content), digest, "the lab's signature does not fit", digested=True)
    log = keys.get(entry.log_id)
    if log is None:
        raise ValueError(f"the entry is of the log {entry.log_id}, whose key is not among those given")
    promise = base64.b64decode(entry.verification.signed_entry_timestamp)
    _check(log, promise, entry.promised(), "the signed entry timestamp is not of this log and entry")
    leaf = leaf_hash(entry.record())
    if uuid[-64:] != leaf.hex():
        raise ValueError("the UUID is of another entry")
    if entry.verification.inclusion_proof is not None:
        _check_inclusion(entry.verification.inclusion_proof, leaf, log)
    try:
        return datetime.fromtimestamp(entry.integrated_time, UTC)
    except (OverflowError, OSError) as problem:
        raise ValueError(f"{entry.integrated_time} is no time ({problem})") from None


def _check_inclusion(proof: _Proof, leaf: bytes, log: Key) -> None:
    root = root_of(leaf, proof.log_index, proof.tree_size, [bytes.fromhex(one) for one in proof.hashes])
    if root.hex() != proof.root_hash:
        raise ValueError("the proof of inclusion does not lead to the root that it names")
    if not proof.checkpoint:
        return
    text, _, signatures = proof.checkpoint.rpartition("\n\n")
    match = _CHECKPOINT.fullmatch(f"{text}\n")
    if not match or int(match[1]) != proof.tree_size or base64.b64decode(match[2]) != root:
        raise ValueError("the checkpoint is not of the tree that the proof of inclusion leads to")
    for line in _SIGNED.findall(signatures):
        try:
            # four bytes name the key; whose it is, its signature shows
            _check(log, base64.b64decode(line)[4:], f"{text}\n".encode(), "")
        except ValueError:
            continue
        return
    raise ValueError("the checkpoint is not signed by this log")


def _key(pem: bytes) -> Key:
    with suppress(ValueError, UnsupportedAlgorithm):
        key = load_pem_public_key(pem)
        if isinstance(key, EllipticCurvePublicKey | Ed25519PublicKey):
            return key
    raise ValueError("expected a public key of ECDSA or Ed25519, as PEM")


def _name(key: Key) -> str:
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _check(key: Key, signature: bytes, signed: bytes, problem: str, *, digested: bool = False) -> None:
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, signed)
        else:
            key.verify(signature, signed, ECDSA(Prehashed(SHA256()) if digested else SHA256()))
    except InvalidSignature:
        raise ValueError(problem) from None
