# SPDX-License-Identifier: Apache-2.0
"""Trusted keys: read by the one loader, every mistake with its line."""

import base64
import subprocess
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.inputs import load_gate, load_trust
from storqual.inputs.policy import fingerprint, key_blob
from storqual_core.kit.errors import BadInputError


def public(number: int = 0, kind: bytes = b"ssh-ed25519", more: bytes = b"") -> str:
    """A public key line with 32 bytes of `number`."""
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (kind, bytes([number]) * 32)) + more
    return f"{kind.decode()} {base64.b64encode(blob).decode()}"


def write(folder: Path, text: str) -> Path:
    path = folder / "keys.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_key_has_a_name_roles_and_days(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "keys:\n  - {name: Pat, role: technician, from: 2026-01-01, expires: 2027-12-31,\n"
        f'     public: "{public()} pat@lab"}}\n',
    )
    (key,) = load_trust(path).keys
    assert (key.name, key.role, key.public) == ("Pat", ("technician",), public())
    assert (key.valid_from, key.expires) == (date(2026, 1, 1), date(2027, 12, 31))


def test_the_fingerprint_is_the_one_that_ssh_keygen_shows(tmp_path: Path) -> None:
    file = tmp_path / "key.pub"
    file.write_text(public(7) + "\n")
    shown = subprocess.run(["ssh-keygen", "-lf", str(file)], capture_output=True, text=True, check=True).stdout
    assert shown.split()[1] == fingerprint(public(7))


def test_a_key_of_a_security_token_is_one(tmp_path: Path) -> None:
    application = (4).to_bytes(4, "big") + b"ssh:"
    assert key_blob(public(1, b"sk-ssh-ed25519@openssh.com", application))


@pytest.mark.parametrize(
    "line",
    [
        "ssh-rsa AAAAB3NzaC1yc2E=",
        "ssh-ed25519",
        "ssh-ed25519 %%%",
        public()[:-8],
        "ssh-ed25519 " + public(0, b"ssh-dss").split()[1],
        "",
    ],
)
def test_what_is_no_ed25519_key_is_refused(line: str, tmp_path: Path) -> None:
    """Another kind, a torn one, one that says it is something else."""
    path = write(tmp_path, f'keys:\n  - {{name: Pat, role: technician, public: "{line}", expires: 2027-12-31}}\n')
    with pytest.raises(BadInputError, match=r"keys.yml:2: found .*expected an Ed25519 public key"):
        load_trust(path)


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "keys:\n"
        f'  - {{name: Pat, role: ../x, public: "{public()}", expires: 2027-12-31}}\n'
        f'  - {{name: Rene, roles: technician, public: "{public(1)}"}}\n',
    )
    with pytest.raises(BadInputError) as caught:
        load_trust(path)
    said = str(caught.value)
    assert "keys.yml:2: found '../x' in keys[0].role, expected a role such as technician or release-manager" in said
    assert "keys.yml:3: key 'expires' (the last day on which it is valid) is missing" in said
    assert "did you mean 'role'?" in said


def test_one_key_is_not_two_people(tmp_path: Path) -> None:
    entry = '  - {{name: {name}, role: technician, public: "{key}", expires: 2027-12-31}}\n'
    path = write(
        tmp_path, "keys:\n" + entry.format(name="Pat", key=public()) + entry.format(name="Rene", key=public())
    )
    with pytest.raises(BadInputError, match="this is also the key of Pat"):
        load_trust(path)


def test_the_example_lab_has_a_key_for_each_role_that_its_gate_asks_for() -> None:
    lab = Path(__file__).resolve().parents[4] / "inventories" / "example_lab"
    roles = {role for key in load_trust(lab / "keys.yml").keys for role in key.role}
    assert set(load_gate(lab / "gate.yml").signatures) <= roles


@given(st.binary(max_size=80))
def test_any_bytes_are_a_key_or_a_value_error(data: bytes) -> None:
    line = f"ssh-ed25519 {base64.b64encode(data).decode()}"
    fields = data[:4] == b"\0\0\0\x0b" and data[4:19] == b"ssh-ed25519\0\0\0\x20" and len(data) >= 51
    if fields and len(data) == 51:
        assert key_blob(line) == data
    elif not fields:
        with pytest.raises(ValueError, match="Ed25519"):
            key_blob(line)


@pytest.mark.parametrize("other", ["pat lee", "Pat Lee ", "Pat  Lee", "\uff30at Lee"])
def test_a_person_has_one_name(other: str, tmp_path: Path) -> None:
    """Else two signatures of one person would be those of two."""
    people = zip(("Pat Lee", other), ("technician", "release-manager"), (public(), public(1)), strict=True)
    entries = "".join(f'- {{name: "{n}", role: {r}, public: "{p}", expires: 2027-12-31}}\n' for n, r, p in people)
    with pytest.raises(BadInputError, match=r"keys.yml:3: this is 'Pat Lee' written otherwise"):
        load_trust(write(tmp_path, f"keys:\n{entries}"))
