# SPDX-License-Identifier: Apache-2.0
"""Sign a run: check that it may be signed and by whom, write the manifest, then the signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.inputs.policy import TrustedKey, fingerprint, load_trust
from storqual.judge.outcome import used_waivers, with_waivers
from storqual.robustness.follows import trial_findings
from storqual.run import Run, is_signed, read_run, sha256_of, write_bytes
from storqual.run.files import read_bytes, read_text
from storqual.signoff.beside import clear_leftovers, envelope_name, statement_name
from storqual.signoff.envelope import load_private_key, public_line, read_public_key, seal, sign_with_ssh
from storqual.signoff.exports import export_findings
from storqual.signoff.judgement import Judgement, acceptable_judgement
from storqual.signoff.manifest import MANIFEST, dump_manifest, list_files
from storqual.signoff.signature import validity_problem
from storqual.signoff.statement import Signer, dump_statement, make_statement
from storqual.signoff.verify import Terms, terms_of, verify_run
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class SignRequest:
    """What is asked: the run, the key (a file), trusted keys, the role where a key has several.

    `ssh` signs with `ssh-keygen -Y`, for keys in an agent or on a token; `passphrase` is asked for a key with one.
    """

    run: Path
    key: Path
    trusted: Path
    passphrase: Callable[[], str]
    role: str | None = None
    waivers: Path | None = None
    ssh: bool = False
    now: datetime | None = None


@dataclass(frozen=True)
class Signed:
    """A signature that was written, and the roles that have not signed yet, and who says which roles must.

    `waivers` counts the failures that are accepted; `told` is the outcome with the waivers that accept them.
    """

    run: str
    outcome: str
    role: str
    name: str
    key: str
    files: tuple[str, ...]
    missing: tuple[str, ...]
    policy: str
    waivers: int
    told: str

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "run": self.run,
            "outcome": self.outcome,
            "role": self.role,
            "name": self.name,
            "key": self.key,
            "files": list(self.files),
            "missing": list(self.missing),
            "policy": self.policy,
            "waivers": self.waivers,
            "told": self.told,
        }


def sign_run(request: SignRequest) -> Signed:
    """Sign; nothing is written when anything speaks against it.

    Raises BadInputError with every reason: an unknown, expired or wrong-role key, a second signature of one person, a
    run that changed since the first signature, a verdict that does not pass (see `acceptable_judgement`).
    """
    run = read_run(request.run)
    now = (request.now or datetime.now(UTC)).astimezone(UTC)
    private = None if request.ssh else load_private_key(request.key, request.passphrase)
    line = read_public_key(request.key) if private is None else public_line(private)
    trust = load_trust(request.trusted)
    terms = terms_of(run, request.trusted, trust)
    who, role = _who(run, line, request, trust.keys, terms, now)
    clear_leftovers(run.path)
    before = _earlier(run, request.trusted, who, role, now)
    judgement = acceptable_judgement(run, request.waivers, now)
    _check_report(run, judgement, request.waivers)
    problems = [f"{run.path / told}; write it again: storqual publish {run.path}" for told in export_findings(run)]
    problems += [f"{run.path / told}" for told in trial_findings(run)]
    if problems:
        raise BadInputError(problems)
    # a further signature is about what the first one is about, by the rules of its time
    signed = is_signed(run.path)
    manifest = read_bytes(run.path, MANIFEST) if signed else dump_manifest(run.name, list_files(run.path))
    signer = Signer(who.name, role, who.id, now.isoformat(timespec="seconds").replace("+00:00", "Z"))
    statement = dump_statement(
        make_statement(
            run,
            judgement.verdict,
            signer,
            manifest=sha256_of(manifest),
            judgement={"path": judgement.path, "sha256": judgement.sha256},
        )
    )
    if private is not None:
        files = {envelope_name(role): seal(statement, private)}
    else:
        name = statement_name(role)
        # the signature first: with the statement there it counts
        files = {f"{name}.sig": sign_with_ssh(statement, request.key), name: statement}
    write_bytes(run.path / MANIFEST, manifest)
    for name, data in files.items():
        write_bytes(run.path / name, data)
    return Signed(
        run=run.name,
        outcome=str(judgement.verdict["outcome"]),
        role=role,
        name=who.name,
        key=who.id,
        files=tuple(files),
        missing=tuple(one for one in terms.roles if one != role and one not in before),
        policy=terms.policy,
        waivers=sum(bool(entry["waiver"]) for entry in judgement.verdict["criteria"]),
        told=f"{judgement.verdict['outcome']} {with_waivers(used_waivers(judgement.verdict['criteria']))}".strip(),
    )


def _who(
    run: Run, line: str, request: SignRequest, trusted: Sequence[TrustedKey], terms: Terms, now: datetime
) -> tuple[TrustedKey, str]:
    """Whose key it is, and the role to sign in; one that nobody asks for is a co-signer's. Raises BadInputError."""
    found = fingerprint(line)
    who = next((key for key in trusted if key.id == found), None)
    if who is None:
        unknown = f"key {found} is not listed in {request.trusted}; add it there"
        raise BadInputError([f"{request.key}: {unknown}"])
    problem = validity_problem(who, now.date())
    if problem:
        raise BadInputError([f"{request.key}: {problem}"])
    if terms.problems:
        raise BadInputError([f"{run.name}: {told}" for told in terms.problems])
    problem = _role_problem(who, request, terms)
    if problem:
        raise BadInputError([problem])
    return who, request.role or next(role for role in who.role if role in terms.roles)


def _role_problem(who: TrustedKey, request: SignRequest, terms: Terms) -> str:
    """Why this person cannot sign in that role, and in which file that can be changed; empty when they can."""
    own, asked, role = ", ".join(who.role), ", ".join(terms.roles), request.role
    fitting = [one for one in who.role if one in terms.roles]
    if role is not None and role not in who.role:
        remedy = f"add {role} to `role` of that key there, or sign as {own}"
        return f"{request.trusted}: the key of {who.name} is listed as {own}, not as {role}; {remedy}"
    if role is not None:
        # one that nobody asks for is that of a co-signer, who counts for no other
        return ""
    if not fitting:
        needed = f"the run needs a signature as {asked} ({terms.policy})"
        remedy = "add the role to that key's `role`, sign with the key of somebody who has it, or co-sign with --role"
        return f"{request.trusted}: the key of {who.name} is listed as {own}, and {needed}; {remedy}"
    if len(fitting) > 1:
        choice = " or ".join(f"--role {one}" for one in fitting)
        return f"{request.trusted}: the key of {who.name} is listed as {own}; choose one with {choice}"
    return ""


def _earlier(run: Run, trusted: Path, who: TrustedKey, role: str, now: datetime) -> dict[str, str]:
    """Names by role of those who signed before. Raises BadInputError when their signatures no longer hold."""
    if not is_signed(run.path):
        return {}
    found = verify_run(run.path, trusted, as_of=now)
    problems = list(found.damage)
    names = {one.role: one.name for one in found.signatures if not one.problem}
    if role in names:
        problems.append(f"{run.name}: {names[role]} has already signed as {role}")
    elif who.name in names.values():
        problems.append(f"{run.name}: {who.name} has already signed; another person must sign as {role}")
    if problems:
        raise BadInputError(problems)
    return names


def _check_report(run: Run, judgement: Judgement, waivers: Path | None) -> None:
    """A report is what people read before they sign: it must tell the judgement that is signed. Raises BadInputError.

    A run that somebody signed keeps the report that was signed with it.
    """
    report = run.path / "report.html"
    if not report.is_file() or is_signed(run.path):
        return
    if judgement.sha256 not in read_text(run.path, report.name):
        accepted = f" --waivers {waivers}" if waivers is not None else ""
        remedy = f"write it again: storqual publish {run.path}{accepted}"
        raise BadInputError([f"{report}: this report is of another verdict than the one to sign; {remedy}"])
