# SPDX-License-Identifier: Apache-2.0
"""Sign a run: check that it may be signed and by whom, write the manifest, then the signature."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.inputs.policy import TrustedKey, fingerprint, load_trust
from storqual.judge.outcome import used_waivers, with_waivers
from storqual.run import Run, read_run, sha256_of, write_bytes
from storqual.run.evidence import PUBLISHED
from storqual.run.layout import MANIFEST, locked
from storqual.signoff.findings import Examined, Judgement, acceptable_judgement, examine, release_findings
from storqual.signoff.manifest import clear_leftovers, dump_manifest, envelope_name, look, statement_name
from storqual.signoff.signature import (
    load_private_key,
    public_line,
    read_public_key,
    seal,
    sign_with_ssh,
    validity_problem,
)
from storqual.signoff.statement import Signer, dump_statement, make_statement
from storqual.signoff.verify import Terms, check_signatures, terms_of
from storqual_core.kit.errors import BadInputError

_ATTEMPTS = 2


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
        return asdict(self)


def sign_run(request: SignRequest) -> Signed:
    """Sign; nothing is written when anything speaks against it.

    From the first look to the signature the run is one open folder, which no other writer of this product touches.
    It is listed, judged and listed again: what is signed is what was judged, or nothing.

    Raises BadInputError with every reason: an unknown, expired or wrong-role key, a second signature of one person, a
    run that changed since the first signature, whatever `verify_run` would find wrong with it, a verdict that does
    not pass (see `acceptable_judgement`).
    """
    with locked(request.run, signed=True) as folder:
        return _sign(request, folder)


def _sign(request: SignRequest, folder: Path) -> Signed:
    run = read_run(folder)
    now = (request.now or datetime.now(UTC)).astimezone(UTC)
    private = None if request.ssh else load_private_key(request.key, request.passphrase)
    line = read_public_key(request.key) if private is None else public_line(private)
    trust = load_trust(request.trusted)
    terms = terms_of(run, request.trusted, trust)
    who, role = _who(run, line, request, trust.keys, terms, now)
    clear_leftovers(folder)
    for _ in range(_ATTEMPTS):
        examined = examine(folder)
        before, judgement = _to_sign(examined, request.waivers, trust.keys, who, role, now)
        # writing a judgement that waivers made pass is a change as well, and is there the second time
        if look(folder) == examined.listing:
            break
    else:
        raise BadInputError([f"{folder}: the run was changed while it was judged; nothing was signed: sign it again"])
    # a further signature is about what the first one is about
    manifest = dump_manifest(run.name, examined.listing.manifest)
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
    for name, data in {MANIFEST: manifest, **files}.items():
        write_bytes(folder / name, data)
    return Signed(
        run=run.name,
        outcome=str(judgement.verdict["outcome"]),
        role=role,
        name=who.name,
        key=who.id,
        files=tuple(files),
        missing=tuple(name for name in terms.roles if name not in (role, *before)),
        policy=terms.policy,
        waivers=sum(bool(entry["waiver"]) for entry in judgement.verdict["criteria"]),
        told=f"{judgement.verdict['outcome']} {with_waivers(used_waivers(judgement.verdict['criteria']))}".strip(),
    )


def _to_sign(
    examined: Examined, waivers: Path | None, trusted: Sequence[TrustedKey], who: TrustedKey, role: str, now: datetime
) -> tuple[dict[str, str], Judgement]:
    """Names by role of those who signed before, and the judgement to sign.

    Raises BadInputError for whatever a verification of the signed run would find, and for a second signature.
    """
    keys = {key.id: key for key in trusted}
    problems = list(examined.problems)
    earlier = check_signatures(examined, keys, now)
    signatures = [checked.signature for checked in earlier]
    problems += [f"{signature.file}: {signature.problem}" for signature in signatures if signature.problem]
    names = {signature.role: signature.name for signature in signatures if not signature.problem}
    if role in names:
        problems.append(f"{names[role]} has already signed as {role}")
    elif who.name in names.values():
        problems.append(f"{who.name} has already signed; another person must sign as {role}")
    _refuse(examined.folder, problems)
    assert examined.judged is not None  # noqa: S101 - without a problem the run was judged
    judgement = acceptable_judgement(examined.judged, waivers, now)
    signed = [(judgement.path, judgement.sha256, now.date()), *(checked.judgement for checked in earlier)]
    _refuse(examined.folder, release_findings(examined, signed), waivers)
    return names, judgement


def _refuse(run: Path, problems: Sequence[str], waivers: Path | None = None) -> None:
    """Raise BadInputError with what speaks against signing, and with what mends files that are made from others."""
    if not problems:
        return
    lines = [f"{run}/{problem}" for problem in problems]
    if any(problem.partition(": ")[0] in PUBLISHED for problem in problems):
        again = f"storqual publish {run}" + (f" --waivers {waivers}" if waivers is not None else "")
        lines.append(f"{run}: verdict, report and exports are written again by: {again}")
    raise BadInputError(lines)


def _who(
    run: Run, line: str, request: SignRequest, trusted: Sequence[TrustedKey], terms: Terms, now: datetime
) -> tuple[TrustedKey, str]:
    """Whose key it is, and the role to sign in; one that nobody asks for is a co-signer's. Raises BadInputError."""
    key_id = fingerprint(line)
    who = next((key for key in trusted if key.id == key_id), None)
    if who is None:
        unknown = f"key {key_id} is not listed in {request.trusted}; add it there"
        raise BadInputError([f"{request.key}: {unknown}"])
    problem = validity_problem(who, now.date())
    if problem:
        raise BadInputError([f"{request.key}: {problem}"])
    if terms.problems:
        raise BadInputError([f"{run.name}: {text}" for text in terms.problems])
    problem = _role_problem(who, request, terms)
    if problem:
        raise BadInputError([problem])
    return who, request.role or next(role for role in who.role if role in terms.roles)


def _role_problem(who: TrustedKey, request: SignRequest, terms: Terms) -> str:
    """Why this person cannot sign in that role, and in which file that can be changed; empty when they can."""
    key_roles, required, role = ", ".join(who.role), ", ".join(terms.roles), request.role
    fitting = [name for name in who.role if name in terms.roles]
    if role is not None and role not in who.role:
        remedy = f"add {role} to `role` of that key there, or sign as {key_roles}"
        return f"{request.trusted}: the key of {who.name} is listed as {key_roles}, not as {role}; {remedy}"
    if envelope_name(role or "") == MANIFEST:
        return f"--role {role}: a signature in this role would have the name of the manifest; choose another role"
    if role is not None:
        # one that nobody asks for is that of a co-signer, who counts for no other
        return ""
    if not fitting:
        needed = f"the run needs a signature as {required} ({terms.policy})"
        remedy = "add the role to that key's `role`, sign with the key of somebody who has it, or co-sign with --role"
        return f"{request.trusted}: the key of {who.name} is listed as {key_roles}, and {needed}; {remedy}"
    if len(fitting) > 1:
        choice = " or ".join(f"--role {name}" for name in fitting)
        return f"{request.trusted}: the key of {who.name} is listed as {key_roles}; choose one with {choice}"
    return ""
