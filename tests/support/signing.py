# SPDX-License-Identifier: Apache-2.0
"""People with keys, and a run that they sign: what tests of sign-off share."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from storqual.signoff.sign import Signed, SignRequest, sign_run

NOW = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
TRUSTED = "keys: [{name: Pat, role: technician, expires: 2035-12-31, public: ssh-ed25519 "
TRUSTED += "AAAAC3NzaC1lZDI1NTE5AAAAIHW9mwCTXohxjesMhr2ymZ9qabziuZ0Q9i1F7QUovZ9O}]\n"
"""Trusted keys with one person; nobody must sign."""
REQUIRED = "require: [{roles: [technician, release-manager]}]\n"
"""What such a file has more where two people must sign."""


@dataclass(frozen=True)
class Person:
    """Somebody with a key, and the line of the trusted keys file about them."""

    name: str
    key: Path
    public: str
    role: str
    expires: str

    def entry(self) -> str:
        return (
            f"  - {{name: {self.name}, role: [{self.role}], expires: {self.expires}, from: 2026-01-01,\n"
            f'     public: "{self.public}"}}\n'
        )


def make_person(
    folder: Path, name: str, role: str, *, expires: str = "2027-12-31", passphrase: str = "", pem: bool = False
) -> Person:
    """A person with a new key in `folder`, in OpenSSH's form or as PEM."""
    private = Ed25519PrivateKey.generate()
    form = PrivateFormat.PKCS8 if pem else PrivateFormat.OpenSSH
    locked = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path = folder / name.lower()
    path.write_bytes(private.private_bytes(Encoding.PEM, form, locked))
    path.chmod(0o600)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    path.with_name(f"{path.name}.pub").write_text(f"{public} {name}@lab\n", encoding="ascii")
    return Person(name, path, public, role, expires)


def write_keys(folder: Path, *people: Person) -> Path:
    path = folder / "keys.yml"
    path.write_text("keys:\n" + "".join(person.entry() for person in people), encoding="utf-8")
    return path


def sign(run: Path, person: Person, keys: Path, **more: Any) -> Signed:
    """Sign `run` as `person` would."""
    asked = {"passphrase": lambda: "", "now": NOW, **more}
    return sign_run(SignRequest(run=run, key=person.key, trusted=keys, **asked))
