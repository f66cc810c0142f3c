# SPDX-License-Identifier: Apache-2.0
"""Trusted keys: whose signature counts under a run, in which role, and until when."""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from storqual.model.fields import Day, ManyOf, Role, Text
from storqual.model.shape import Shape, raise_all, shaped
from storqual.model.yaml_file import read_yaml

__all__ = ["TrustedKey", "fingerprint", "key_blob", "load_trusted_keys"]

KEY_TYPES = ("ssh-ed25519", "sk-ssh-ed25519@openssh.com")
"""Ed25519 in a file or an agent, and on a security token."""

_EXPECTED = "an Ed25519 public key as `ssh-keygen -t ed25519` writes it: `ssh-ed25519 AAAA…`"


def key_blob(line: str) -> bytes:
    """The binary key of an OpenSSH public key line. Raises ValueError for anything but an Ed25519 key."""
    words = line.split()
    if len(words) < 2 or words[0] not in KEY_TYPES:
        raise ValueError(_EXPECTED)
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(_EXPECTED) from None
    fields = _fields(blob)
    if fields[:1] != [words[0].encode()] or len(fields) < 2 or len(fields[1]) != 32:
        raise ValueError(_EXPECTED)
    return blob


def _fields(blob: bytes) -> list[bytes]:
    """The strings of an SSH key (RFC 4251, section 5: four bytes of length, then the bytes); [] when it is torn."""
    found = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length:
            return []
        found.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return found


def fingerprint(line: str) -> str:
    """`SHA256:…` of a public key line, as `ssh-keygen -l` prints it. Raises ValueError."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key_blob(line)).digest()).decode().rstrip("=")


def _public(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(_EXPECTED)  # noqa: TRY004 - pydantic gathers ValueError only
    # the comment behind the key is its owner's, not ours
    kind, key, *_ = [*value.split(), "", ""]
    key_blob(f"{kind} {key}")
    return f"{kind} {key}"


class TrustedKey(Shape):
    """One person's key. It counts from the day `from` (always, without it) through the day `expires`."""

    name: Text = Field(description="whose key it is")
    role: ManyOf[Role] = Field(description="technician, release-manager, or what the gate's policy names")
    public: Annotated[str, BeforeValidator(_public)]
    valid_from: Day | None = Field(default=None, alias="from")
    expires: Day = Field(description="the last day on which it counts")

    @property
    def id(self) -> str:
        """Its fingerprint."""
        return fingerprint(self.public)


class _Keys(Shape):
    """The file: a list under `keys`."""

    keys: tuple[TrustedKey, ...] = Field(strict=False, min_length=1)


def load_trusted_keys(path: Path) -> tuple[TrustedKey, ...]:
    """Read trusted keys; an expired one is no error here, whoever checks a signature says so.

    Raises BadInputError with every problem; one key must not stand there twice, or two people could be one.
    """
    document = read_yaml(path)
    file, problems = shaped(_Keys, document)
    seen: dict[str, str] = {}
    for number, key in enumerate(file.keys if file is not None else ()):
        if key.id in seen:
            place = ("keys", number, "public")
            problems.append(document.problem(place, f"the key of {seen[key.id]} a second time", "each key once"))
        seen.setdefault(key.id, key.name)
    raise_all(problems)
    return file.keys if file is not None else ()
