# SPDX-License-Identifier: Apache-2.0
"""Check a sign-off: is every file as it was signed, and did everybody sign who must? No network, no bench."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from storqual.inputs.policy import TrustedKey, load_trusted_keys
from storqual.judge.outcome import required_roles
from storqual.run import read_run, sha256_of
from storqual.run.published import run_findings
from storqual.signoff.envelope import check_ssh_signature, open_envelope, read_payload
from storqual.signoff.manifest import MANIFEST, Named, manifest_differences, named_signatures, parse_manifest
from storqual.signoff.statement import parse_statement
from storqual_core.kit.errors import BadInputError, StorqualError


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


@dataclass(frozen=True)
class Verification:
    """What was found: `damage` speaks against the run or a signature, `missing` are roles that must still sign.

    It is valid when there is no problem. `files` is how many files the manifest covers.
    """

    run: str
    as_of: str
    required: tuple[str, ...]
    signatures: tuple[Signature, ...]
    files: int
    damage: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against the sign-off, each naming its file where it has one."""
        if not self.signatures and not self.files:
            return (*self.damage, f"the run is unsigned: it needs {' and '.join(self.missing) or 'a signature'}")
        return (*self.damage, *(f"there is no valid signature as {role}" for role in self.missing))

    @property
    def outcome(self) -> str:
        """What the run was signed as; empty when nobody's signature counts."""
        return next((one.outcome for one in self.signatures if not one.problem), "")

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        names = ("file", "role", "name", "key", "signed_at", "outcome", "problem")
        return {
            "run": self.run,
            "valid": not self.problems,
            "outcome": self.outcome,
            "as_of": self.as_of,
            "required": list(self.required),
            "missing": list(self.missing),
            "signatures": [{name: getattr(one, name) for name in names} for one in self.signatures],
            "files": self.files,
            "problems": list(self.problems),
        }


def verify_run(path: Path, trusted: Path, *, as_of: datetime | None = None) -> Verification:
    """Verify the sign-off of the run directory `path` by the keys of `trusted`, as of a time (now, without it).

    Every problem is told, each naming its file. Raises BadInputError when there is no such directory or the trusted
    keys cannot be read; whatever else is wrong with the directory is a problem and not an exception.
    """
    if not path.is_dir():
        raise BadInputError([f"{path}: found no folder, expected a run directory"])
    keys = {key.id: key for key in load_trusted_keys(trusted)}
    moment = (as_of or datetime.now(UTC)).astimezone(UTC)
    names = sorted(entry.name for entry in path.iterdir() if entry.name.startswith("signoff"))
    manifest, listed, problems = _manifest(path) if names else ("", 0, [])
    found, strange = named_signatures(names)
    problems += strange
    name, required, wrong = _policy(path)
    problems += wrong
    problems += run_findings(path)
    signatures = tuple(_signature(path, one, keys, moment, manifest=manifest, run=name) for one in found)
    problems += [f"{one.file}: {one.problem}" for one in signatures if one.problem]
    valid = [one for one in signatures if not one.problem]
    problems += _same_person(valid)
    return Verification(
        run=name or path.resolve().name,
        as_of=moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        required=required,
        signatures=signatures,
        files=listed,
        damage=tuple(dict.fromkeys(problems)),
        missing=tuple(role for role in required if role not in {one.role for one in valid}),
    )


def validity_problem(key: TrustedKey, day: date) -> str:
    """Why a key does not count on that day; empty when it does."""
    if day > key.expires:
        return f"the key of {key.name} expired on {key.expires.isoformat()}"
    if key.valid_from is not None and day < key.valid_from:
        return f"the key of {key.name} counts from {key.valid_from.isoformat()} only"
    return ""


def _manifest(path: Path) -> tuple[str, int, list[str]]:
    """Digest of the manifest, how many files it covers, and what in the directory differs from it."""
    try:
        data = (path / MANIFEST).read_bytes()
    except OSError:
        return "", 0, [f"{MANIFEST}: is missing"]
    try:
        entries = parse_manifest(data)
    except ValueError as problem:
        return sha256_of(data), 0, [f"{MANIFEST}: was changed: {problem}"]
    return sha256_of(data), len(entries), manifest_differences(path, entries)


def _policy(path: Path) -> tuple[str, tuple[str, ...], list[str]]:
    """The run's own name and the roles that its frozen gate asks for."""
    try:
        run = read_run(path)
        return run.name, required_roles(run), []
    except (StorqualError, KeyError, TypeError, ValueError, AttributeError) as problem:
        # run.json or the gate is damaged; the manifest names it as well
        return "", (), [line.removeprefix(f"{path}/") for line in str(problem).splitlines()]


def _signature(
    path: Path, named: Named, keys: Mapping[str, TrustedKey], moment: datetime, *, manifest: str, run: str
) -> Signature:
    role, name, key, signed_at, outcome = named.role, "", "", "", ""
    try:
        data = (path / named.file).read_bytes()
        said = parse_statement(read_payload(data) if named.detached is None else data)
        signer, outcome = said["signer"], said["outcome"]
        role, name, key, signed_at = signer.role, signer.name, signer.key, signer.signed_at
        trusted = _trusted(keys, signer.key)
        if named.detached is None:
            open_envelope(data, trusted)
        else:
            _check_detached(data, path / named.detached, trusted)
        # from here on the statement is what this person said
        problem = _of_signer(said, named, trusted, moment) or _of_run(said, path, manifest=manifest, run=run)
        problem = problem or _expired_waiver(said["waivers"], moment.date())
    except (OSError, ValueError, KeyError, TypeError, StorqualError) as broken:
        problem = str(broken)
    return Signature(named.file, role, name, key, signed_at, outcome, problem)


def _trusted(keys: Mapping[str, TrustedKey], name: str) -> TrustedKey:
    """The trusted key of that fingerprint. Raises ValueError."""
    found = keys.get(name)
    if found is None:
        raise ValueError(f"it is signed with the key {name}, which is not trusted")
    return found


def _check_detached(statement: bytes, file: Path, key: TrustedKey) -> None:
    """Raise ValueError, naming the signature's own file, when it is not one of `key` over `statement`."""
    try:
        check_ssh_signature(statement, file.read_bytes(), key)
    except ValueError as problem:
        raise ValueError(f"{problem} (its signature is {file.name})") from None


def _of_signer(said: Mapping[str, Any], named: Named, key: TrustedKey, moment: datetime) -> str:
    """Whether this person could sign as that, at that time."""
    signer = said["signer"]
    if signer.role != named.role:
        return f"it was renamed: it is a signature as {signer.role}"
    if signer.role not in key.role:
        return f"{key.name} signed as {signer.role}, but is trusted as {', '.join(key.role)} only"
    if signer.name != key.name:
        return f"it names {signer.name}, but the key is that of {key.name}"
    signed = datetime.fromisoformat(signer.signed_at)
    if signed.tzinfo is None or signed > moment:
        return f"it says that it was signed at {signer.signed_at}, which is not before {moment.isoformat()}"
    late = validity_problem(key, moment.date())
    if late and not validity_problem(key, signed.date()):
        return f"{late}; if it was known to be signed before, verify with --as-of"
    return validity_problem(key, signed.date()) or late


def _of_run(said: Mapping[str, Any], path: Path, *, manifest: str, run: str) -> str:
    """Whether it is about this run, as it is now."""
    if run and said["run"] != run:
        return f"it is about the run {said['run']}"
    if said["subjects"].get(MANIFEST) != manifest:
        return f"it is about another manifest: {MANIFEST} was changed"
    judgement = said["judgement"]
    file = path / judgement["path"]
    if not file.resolve().is_relative_to(path.resolve()):
        return f"its judgement {judgement['path']} is outside the run"
    if not file.is_file():
        return f"the judgement that it is about is missing: {judgement['path']}"
    if sha256_of(file.read_bytes()) != judgement["sha256"]:
        return f"the judgement that it is about was changed: {judgement['path']}"
    return ""


def _expired_waiver(waivers: Iterable[Mapping[str, Any]], today: date) -> str:
    """The first waiver that the signature rests on and that counts no more."""
    for waiver in waivers:
        if today > date.fromisoformat(str(waiver["expiry"])):
            return (
                f"it rests on waiver {waiver['reference']} for {waiver['criterion']}, which expired on "
                f"{waiver['expiry']}"
            )
    return ""


def _same_person(signatures: Iterable[Signature]) -> list[str]:
    """Two signatures are worth two only from two people."""
    seen: dict[str, str] = {}
    problems = []
    for one in signatures:
        if one.name in seen:
            both = f"{one.name} signed as {seen[one.name]} and as {one.role}, expected two people"
            problems.append(f"{one.file}: {both}")
        seen.setdefault(one.name, one.role)
    return problems
