# SPDX-License-Identifier: Apache-2.0
"""Signatures of people by `ssh-keygen -Y`: with a key in a file, in an agent, or on a security token."""

from __future__ import annotations

import base64
import binascii
import tempfile
from pathlib import Path

from storqual.model.trusted_keys import TrustedKey
from storqual_core.command import run
from storqual_core.errors import BadInputError, StorqualError

__all__ = ["NAMESPACE", "check_ssh_signature", "read_public_key", "sign_with_ssh"]

NAMESPACE = "storqual-signoff"
"""What the signatures are for: one made for e-mail or for git does not count."""

_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_WIDTH = 70
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
    raise BadInputError([f"{path}: found no public key there or in {path.name}.pub, expected one of ssh-keygen"])


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
    if not _canonical(signature):
        raise ValueError("it is not as ssh-keygen wrote it")
    with tempfile.TemporaryDirectory(prefix="storqual-verify-") as folder:
        signers, detached = Path(folder) / "signers", Path(folder) / "signature"
        signers.write_text(f'signer namespaces="{NAMESPACE}" {key.public}\n', encoding="ascii")
        detached.write_bytes(signature)
        argv = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", "signer", "-f", str(signers)]
        ended = run([*argv, "-s", str(detached)], send=statement)
    if ended.rc != 0:
        raise ValueError(f"it was not signed with the key of {key.name}, or was changed since")


def _canonical(signature: bytes) -> bool:
    """Whether the armour holds nothing but the signature: spare bits and white space must not carry anything."""
    try:
        lines = signature.decode("ascii").split("\n")
        blob = base64.b64decode("".join(lines[1:-2]), validate=True)
    except (UnicodeDecodeError, binascii.Error, ValueError):
        return False
    text = base64.b64encode(blob).decode()
    wrapped = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
    return lines == [_BEGIN, *wrapped, _END, ""]
