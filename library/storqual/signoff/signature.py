# SPDX-License-Identifier: Apache-2.0
"""One signature: of a trusted key, by somebody who could sign as that, saying what the files of its run say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from storqual.inputs.policy import TrustedKey
from storqual.run import Run, sha256_of
from storqual.run.files import DAMAGE, parse_line, read_bytes
from storqual.run.layout import ANNEX, MANIFEST
from storqual.signoff.beside import Named, named_signatures, signature_names
from storqual.signoff.envelope import check_ssh_signature, open_envelope, read_payload
from storqual.signoff.statement import parse_statement, statement_difference

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
class Checked:
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


def signatures_told(path: Path) -> list[str]:
    """Who says to have signed a run, a line each, for people who read its report; nothing of it is checked here."""
    lines = []
    for named in named_signatures(signature_names(path))[0]:
        try:
            data = read_bytes(path, named.file)
            said = parse_statement(read_payload(data) if named.detached is None else data)
        except DAMAGE:
            lines.append(f"{named.file} cannot be read")
            continue
        signer = said["signer"]
        waived = f", {len(said['waivers'])} failures waived" if said["waivers"] else ""
        told = f"{signer.name} as {signer.role}, {signer.signed_at}, key {signer.key}"
        lines.append(f"{told}: {said['outcome']}{waived}, manifest SHA-256 {said['subjects'].get(MANIFEST, '')}")
    return lines


def check_signature(
    path: Path, named: Named, keys: Mapping[str, TrustedKey], moment: datetime, *, digest: str, run: Run | None
) -> Checked:
    """Check one signature under the run directory `path`, whose manifest has the SHA-256 `digest`.

    `keys` are trusted, by fingerprint. `run` is None where the directory holds none that can be read.
    """
    role, name, key, signed_at, outcome = named.role, "", "", "", ""
    waivers: tuple[Mapping[str, Any], ...] = ()
    judgement = ("", "", date.min)
    try:
        data = read_bytes(path, named.file)
        said = parse_statement(read_payload(data) if named.detached is None else data)
        signer, outcome = said["signer"], said["outcome"]
        role, name, key, signed_at = signer.role, signer.name, signer.key, signer.signed_at
        trusted = _trusted(keys, signer.key)
        if named.detached is None:
            open_envelope(data, trusted)
        else:
            _check_detached(data, path, named.detached, trusted)
        # from here on the statement is what this person said
        waivers = tuple(said["waivers"])
        problem = _of_signer(said, named, trusted, moment) or _of_run(said, path, digest=digest, run=run)
        problem = problem or _expired_waiver(waivers, moment.date())
        named_by = said["judgement"]
        judgement = (named_by["path"], named_by["sha256"], datetime.fromisoformat(signed_at).astimezone(UTC).date())
    except DAMAGE as broken:
        problem = str(broken)
    return Checked(Signature(named.file, role, name, key, signed_at, outcome, problem), waivers, judgement)


def _trusted(keys: Mapping[str, TrustedKey], name: str) -> TrustedKey:
    """The trusted key of that fingerprint. Raises ValueError."""
    found = keys.get(name)
    if found is None:
        raise ValueError(f"it is signed with the key {name}, which is not trusted")
    return found


def _check_detached(statement: bytes, path: Path, name: str, key: TrustedKey) -> None:
    """Raise ValueError, naming the signature's own file, when it is not one of `key` over `statement`."""
    try:
        check_ssh_signature(statement, read_bytes(path, name), key)
    except ValueError as problem:
        raise ValueError(f"{problem} (its signature is {name})") from None


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
        return f"{late}; if it is known to have been signed before, verify with --as-of"
    return validity_problem(key, signed.date()) or late


def _of_run(said: Mapping[str, Any], path: Path, *, digest: str, run: Run | None) -> str:
    """Whether it is a release of this run, as it is now, and says nothing that its files do not say."""
    if run is not None and said["run"] != run.name:
        return f"it is about the run {said['run']}"
    if said["subjects"].get(MANIFEST) != digest:
        return f"it is about another manifest: {MANIFEST} was changed"
    judgement = said["judgement"]
    if not _JUDGEMENT.match(judgement["path"]):
        return f"its judgement {judgement['path']} is not where judgements of a run are"
    file = path / judgement["path"]
    if not file.is_file():
        return f"the judgement that it is about is missing: {judgement['path']}"
    data = read_bytes(path, judgement["path"])
    if sha256_of(data) != judgement["sha256"]:
        return f"the judgement that it is about was changed: {judgement['path']}"
    verdict = parse_line(data, judgement["path"])
    if said["outcome"] not in _RELEASABLE or verdict["exit_code"] != 0:
        return f"it says {said['outcome']}, and the judgement says {verdict['outcome']}, which is not a release"
    differs = "" if run is None else statement_difference(said, run, verdict)
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
