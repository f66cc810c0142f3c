# SPDX-License-Identifier: Apache-2.0
"""Check a sign-off: every file as it was signed, everybody who must sign, a release or not; no network, no bench.

The terms are the verifier's: who must sign a run and what it must have been measured on, by whose policy.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.inputs import load_gate
from storqual.inputs.policy import PolicyRequirement, Trust, TrustedKey, load_trust
from storqual.judge.outcome import required_roles, with_waivers
from storqual.judge.question import optional_input
from storqual.run import Run
from storqual.run.evidence import rules_of
from storqual.run.layout import opened
from storqual.signoff.annex import AnnexNote, annex_notes
from storqual.signoff.findings import Examined, examine, release_findings
from storqual.signoff.manifest import RULES, ManifestEntry, look
from storqual.signoff.signature import CheckedSignature, Signature, check_signature
from storqual.signoff.statement import kinds_of
from storqual.witness import check_witness
from storqual_core.kit.errors import BadInputError, StorqualError

_ATTEMPTS = 3
"""Somebody may sign, or add a note, while a run is verified."""
OPTION = "--require-role"
_MEASURED_ON = {"virtual": "emulated hardware", "local": "files"}


@dataclass(frozen=True)
class Terms:
    """What makes a run a release: roles that must sign, and what speaks against it whoever signs.

    `policy` names whose roles they are: the verifier's file, the option, or nobody's but the run's own gate.
    `of_verifier` is whether anybody but the run says who must sign.
    """

    roles: tuple[str, ...]
    policy: str
    of_verifier: bool
    problems: tuple[str, ...]


def terms_of(run: Run, trusted: Path, trust: Trust, require_roles: Sequence[str] = ()) -> Terms:
    """The terms of the verifier, who has the file `trusted` and may name further roles, for `run`.

    What the run's own gate requires counts too, but a gate that asks for less than the verifier is a problem: whoever
    can write a run can rewrite its gate. Raises BadInputError for a gate that cannot be read.
    """
    gate_roles = required_roles(run)
    drop = run.arms["candidate"].drop
    fitting = [requirement for requirement in trust.require if requirement.fits(drop, run.suite.name, run.benches)]
    policy_roles = dict.fromkeys(require_roles, OPTION)
    policy_roles |= {role: trusted.name for requirement in fitting for role in requirement.roles}
    problems = []
    if trust.require and not fitting:
        problems.append(f"{trusted.name}: nothing under `require` fits drop {drop}, suite {run.suite.name}")
    for by in dict.fromkeys(policy_roles.values()):
        lacking = [role for role, who in policy_roles.items() if who == by and role not in gate_roles]
        if lacking:
            demand = f"{by} requires a signature as {' and '.join(lacking)}"
            gate = f"inputs/gate.yml: the run's own gate requires {' and '.join(gate_roles)} only, {demand}"
            enough = ", ".join(dict.fromkeys((*gate_roles, *lacking)))
            remedy = f"set `signatures: [{enough}]` in gate.yml beside the inventory and qualify again"
            problems.append(f"{gate}; the gate of a run cannot be changed: {remedy}, or require less in {by}")
    software = [
        f"{bench} is {_MEASURED_ON.get(kind, kind)}" for bench, kind in kinds_of(run).items() if kind != "hardware"
    ]
    if software:
        problems += [f"{by} requires hardware: {', '.join(software)}" for by in _hardware(run, trusted, fitting)]
    by = " and ".join(dict.fromkeys(policy_roles.values()))
    return Terms(
        roles=tuple(dict.fromkeys((*policy_roles, *gate_roles))),
        policy=by or _own_policy(run),
        of_verifier=bool(policy_roles) or bool(trust.require),
        problems=tuple(problems),
    )


def method_only(run: Run) -> str:
    """Why a run says nothing of hardware, naming what it was measured on; empty when it does."""
    kinds = sorted({_MEASURED_ON.get(kind, kind) for kind in kinds_of(run).values() if kind != "hardware"})
    return f"it was measured on {' and '.join(kinds)}" if kinds else ""


def _own_policy(run: Run) -> str:
    """What a run says itself of who must sign, where the verifier says nothing."""
    gate = optional_input(run, "gate")
    if gate is not None and load_gate(gate).signatures:
        return "the run's own gate alone"
    gate_text = "no gate policy" if gate is None else "a gate policy without `signatures`"
    more = "for more, list roles under `signatures` in gate.yml beside the inventory"
    return f"the lab has {gate_text}, so one signature suffices; {more}"


def _hardware(run: Run, trusted: Path, fitting: Sequence[PolicyRequirement]) -> Iterator[str]:
    """Whose policy takes no run that software measured."""
    if any(requirement.hardware for requirement in fitting):
        yield trusted.name
    gate = optional_input(run, "gate")
    if gate is not None and load_gate(gate).hardware:
        yield "inputs/gate.yml"


@dataclass(frozen=True)
class Verification:
    """What was found: `damage` speaks against the run or a signature, `missing` are roles that must still sign.

    It is valid when there is no problem, and a release when nothing is `withheld` besides: reasons why signatures
    that hold are no release. `files` is how many files the manifest covers, `rules` by which they were compared,
    `evidence` by which the run was held to its evidence,
    `waivers` the failures that somebody accepted, `accepted` by which waivers, `annex` what was added after signing,
    `notes` the signed notes among it, `co_signers` who signed in a role that nobody asks for.
    """

    run: str
    candidate: str
    kinds: dict[str, str]
    as_of: str
    required: tuple[str, ...]
    policy: str
    rules: str
    evidence: str
    witness: str
    signatures: tuple[Signature, ...]
    waivers: tuple[str, ...]
    accepted: str
    files: int
    annex: tuple[ManifestEntry, ...]
    notes: tuple[AnnexNote, ...]
    co_signers: tuple[str, ...]
    damage: tuple[str, ...]
    missing: tuple[str, ...]
    withheld: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against the sign-off, each naming its file where it has one."""
        if not self.signatures and not self.files:
            return (*self.damage, f"the run is unsigned: it needs {' and '.join(self.missing) or 'a signature'}")
        return (*self.damage, *(f"there is no valid signature as {role}" for role in self.missing))

    @property
    def outcome(self) -> str:
        """What the run was signed as; empty when nobody's signature counts."""
        return next((signature.outcome for signature in self.signatures if not signature.problem), "")

    @property
    def exit_code(self) -> int:
        """0: a release. 1: not valid. 2: the signatures hold, and it is no release."""
        return 1 if self.problems else 2 if self.withheld else 0

    @property
    def result(self) -> str:
        """In one word or two: released, valid (and no release), not valid."""
        return ("released", "not valid", "valid, not released")[self.exit_code]

    @property
    def summary(self) -> str:
        """What came of it, with the waivers that it rests on: `released with 2 waivers: ...`."""
        return f"{self.result} {self.accepted}".strip() if not self.problems else self.result

    def to_json(self) -> dict[str, Any]:
        names = ("file", "role", "name", "key", "signed_at", "outcome", "problem")
        return {
            "run": self.run,
            "candidate": self.candidate,
            "result": self.result,
            "told": self.summary,
            "exit_code": self.exit_code,
            "valid": not self.problems,
            "released": self.exit_code == 0,
            "outcome": self.outcome,
            "waivers": list(self.waivers),
            "benches": dict(self.kinds),
            "withheld": list(self.withheld),
            "as_of": self.as_of,
            "policy": self.policy,
            "required": list(self.required),
            "missing": list(self.missing),
            "signatures": [{name: getattr(signature, name) for name in names} for signature in self.signatures],
            "rules": self.rules,
            "evidence": self.evidence,
            "witness": self.witness,
            "files": self.files,
            "annex": [entry.to_json() for entry in self.annex],
            "notes": [note.to_json() for note in self.notes],
            "co_signers": list(self.co_signers),
            "problems": list(self.problems),
        }


def verify_run(
    path: Path,
    trusted: Path,
    *,
    as_of: datetime | None = None,
    require_roles: Sequence[str] = (),
    allow_virtual: bool = False,
    witness: str | None = None,
) -> Verification:
    """Verify the sign-off of the run directory `path` by the file `trusted`, as of a time (now, without it).

    `require_roles` must sign besides those that the file asks for; `allow_virtual` takes a run for a release that was
    measured on emulated hardware or on files; `witness` is what the run's witness kept (see `check_witness`). Every
    problem is told, each naming its file. Raises BadInputError when
    there is no such directory or the trusted keys cannot be read; whatever else is wrong with the directory is a
    problem and not an exception.
    """
    if not path.is_dir():
        raise BadInputError([f"{path}: no such run directory"])
    trust = load_trust(trusted)
    moment = (as_of or datetime.now(UTC)).astimezone(UTC)
    with opened(path) as folder:
        for _ in range(_ATTEMPTS):
            examined = examine(folder)
            made = _verified(examined, trusted, trust, moment, require_roles, allow_virtual, witness)
            made = replace(made, damage=tuple(text.replace(str(folder), str(path)) for text in made.damage))
            if look(folder) == examined.listing:
                return made
    # somebody wrote to it each time; what was read may belong to no state that it ever had
    return replace(made, damage=(*made.damage, "the run was changed while it was verified; verify it again"))


def _verified(
    examined: Examined,
    trusted: Path,
    trust: Trust,
    moment: datetime,
    require_roles: Sequence[str],
    allow_virtual: bool,
    witness: str | None,
) -> Verification:
    folder, run, problems = examined.folder, examined.run, list(examined.problems)
    terms = Terms((), "", of_verifier=False, problems=())
    if run is not None:
        try:
            terms = terms_of(run, trusted, trust, require_roles)
        except StorqualError as problem:
            problems += [line.removeprefix(f"{folder}/") for line in str(problem).splitlines()]
    keys = {key.id: key for key in trust.keys}
    checked = check_signatures(examined, keys, moment)
    problems += terms.problems
    problems += [] if witness is None else check_witness(folder, witness)
    signatures = [entry.signature for entry in checked]
    problems += [f"{signature.file}: {signature.problem}" for signature in signatures if signature.problem]
    valid = [entry for entry in checked if not entry.signature.problem]
    signers = [entry.signature for entry in valid]
    problems += release_findings(examined, [entry.judgement for entry in valid])
    # what is odd there was told, and is not opened
    notes = () if examined.listing.odd else annex_notes(folder, keys, moment)
    problems += [f"{note.file}: {note.problem}" for note in notes if note.problem]
    problems += _same_person(signers) + _other_outcome(signers)
    return Verification(
        run=folder.resolve().name if run is None else run.name,
        candidate="" if run is None else run.arms["candidate"].drop,
        kinds={} if run is None else kinds_of(run),
        as_of=moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        required=terms.roles,
        policy=terms.policy,
        rules="" if examined.manifest is None else RULES,
        evidence="" if run is None else rules_of(run),
        witness=witness or "",
        signatures=tuple(signatures),
        waivers=_waivers(valid),
        accepted=with_waivers(waiver for entry in valid for waiver in entry.waivers),
        files=0 if examined.manifest is None else len(examined.manifest.files),
        annex=tuple(examined.listing.annex.values()),
        notes=notes,
        co_signers=tuple(f"{signer.name} as {signer.role}" for signer in signers if signer.role not in terms.roles),
        damage=tuple(dict.fromkeys(problems)),
        missing=tuple(role for role in terms.roles if role not in {signer.role for signer in signers}),
        withheld=() if run is None else _withheld(run, trusted, terms, allow_virtual=allow_virtual),
    )


def check_signatures(examined: Examined, keys: Mapping[str, TrustedKey], moment: datetime) -> list[CheckedSignature]:
    """Every signature of a run; `keys` are trusted, by fingerprint."""
    return [
        check_signature(examined.folder, named, keys, moment, digest=examined.digest, run=examined.run)
        for named in examined.signatures
    ]


def _withheld(run: Run, trusted: Path, terms: Terms, *, allow_virtual: bool) -> tuple[str, ...]:
    """Why signatures that hold are no release."""
    reasons = []
    software = method_only(run)
    if software and not allow_virtual:
        reasons.append(f"method only: {software}; --allow-virtual accepts it")
    if not terms.of_verifier:
        policy = f"{trusted.name} has no `require`"
        reasons.append(f"only the run itself says who must sign: {policy}, and there is no --require-role")
    return tuple(reasons)


def _waivers(valid: Sequence[CheckedSignature]) -> tuple[str, ...]:
    """The failures that somebody accepted, by the statements that count."""
    waivers = (waiver for checked in valid for waiver in checked.waivers)
    return tuple(
        dict.fromkeys(
            "{criterion} on {bench}: {reference} by {owner}, through {expiry}".format(**waiver) for waiver in waivers
        )
    )


def _same_person(signatures: Iterable[Signature]) -> list[str]:
    """Two signatures are worth two only from two people."""
    role_of: dict[str, str] = {}
    problems = []
    for signature in signatures:
        if signature.name in role_of:
            roles = f"{role_of[signature.name]} and as {signature.role}"
            problems.append(f"{signature.file}: {signature.name} signed as {roles}; two people must sign")
        role_of.setdefault(signature.name, signature.role)
    return problems


def _other_outcome(signatures: Iterable[Signature]) -> list[str]:
    file_of = {signature.outcome: signature.file for signature in signatures}
    if len(file_of) < 2:
        return []
    return [f"{file}: it says {outcome}, other signatures state another outcome" for outcome, file in file_of.items()]
