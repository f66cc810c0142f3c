# SPDX-License-Identifier: Apache-2.0
"""Gate policy and waivers: what a decision needs, and which failures somebody has accepted, until when."""

import base64
import binascii
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from storqual.inputs.fields import Day, Loss, ManyOf, Name, Role, Text, written
from storqual.inputs.find import beside_inventory
from storqual.inputs.shape import Shape, did_you_mean, raise_all, shaped, shown, sound
from storqual.inputs.yaml_file import Document, read_yaml
from storqual_core.host.kernel_log import KINDS, repetition_problem
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_percent


def _days(value: object) -> object:
    text = str(value).strip().lower().removesuffix("days").removesuffix("day").removesuffix("d").strip()
    if isinstance(value, bool) or not re.fullmatch("[0-9]{1,5}", text):
        raise ValueError("a number of days such as 90d")
    return int(text)


def _each_once(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Somebody signs in each role; a role named twice would look like two signatures and be one."""
    if len(set(roles)) < len(roles):
        raise ValueError("each role once")
    return roles


def _log_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"kinds of log findings: {', '.join(KINDS)}")
    return kinds


_LONGEST_REFERENCE = 100
"""Characters of a reference that a gate compares: three repetitions without a bound take a moment on them."""


def _expression(value: str) -> str:
    problem = repetition_problem([value], _LONGEST_REFERENCE, _LONGEST_REFERENCE**3)
    if problem:
        raise ValueError(f"a regular expression such as [A-Z]+-[0-9]+ ({problem})")
    return value


_COUNT = {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^\\s*[0-9]{1,5}\\s*([dD][aAyYsS]*)?\\s*$"}]}
Days = Annotated[int, BeforeValidator(_days), written("number of days", "90d", **_COUNT)]


DEFAULT_ROLES = ("release-manager",)
"""Who signs where the gate says nothing."""


class WaiverRules(Shape):
    """What waivers a gate takes; one that breaks a rule is refused before anything is judged by it."""

    max_days: Days | None = Field(default=None, description="a waiver may expire at most this many days ahead")
    max_loss: Loss | None = Field(default=None, description="each waiver states `max_loss`, and at most this")
    owners: ManyOf[Text] = Field(default=(), description="patterns of the owners that a waiver may have")
    reference: Annotated[Text, AfterValidator(_expression)] | None = Field(
        default=None, description="a regular expression that the whole reference must match"
    )


class Gate(Shape):
    """Which criteria a decision needs; `required` and `informative` are patterns of ids and override the suite."""

    name: Name = "default"
    description: Text | None = None
    required: ManyOf[Text] = ()
    informative: ManyOf[Text] = ()
    required_log_findings: Annotated[ManyOf[Text], AfterValidator(_log_kinds)] = Field(
        default=(), description="kinds of log findings that count even where their rule only warns, as `unclassified`"
    )
    marginal_passes: bool = True
    baseline_max_age_days: Days | None = Field(default=None, alias="baseline_max_age")
    signatures: Annotated[ManyOf[Role], AfterValidator(_each_once)] = ()
    hardware: Literal["required"] | None = Field(
        default=None, description="a run on emulated hardware or on files is no release"
    )
    waivers: WaiverRules = WaiverRules()


class Waiver(Shape):
    """One accepted failure. Scope fields are patterns; a field left out means any."""

    adapter: Text = "*"
    bench: Text = "*"
    drop: Text = "*"
    suite: Text = "*"
    point: Text = "*"
    criterion: Text = Field(description="the criterion's id")
    owner: Text = Field(description="who is responsible for it")
    reason: Text = Field(description="why it is accepted")
    reference: Text = Field(description="ticket or document")
    expiry: Day = Field(description="the last day on which it is valid")
    max_loss: Loss | None = Field(
        default=None,
        description="the largest loss that is accepted; a failure without one in percent is not accepted",
    )


class WaiversFile(Shape):
    """The file: a list under `waivers`."""

    waivers: tuple[Waiver, ...] = Field(default=(), strict=False)


def load_gate(path: Path) -> Gate:
    """Read a gate policy. Raises BadInputError with every problem."""
    gate, problems = read_gate(path)
    raise_all(problems)
    return gate or Gate()


def read_gate(path: Path) -> tuple[Gate | None, list[str]]:
    return shaped(Gate, read_yaml(path))


def load_waivers(path: Path, gate: Gate | None = None, today: date | None = None) -> tuple[Waiver, ...]:
    """Read waivers, as `gate` takes them `today`; an expired one is no error here, the judge says so.

    Raises BadInputError with every problem.
    """
    waivers, problems = read_waivers(path, gate, today)
    raise_all(problems)
    return waivers


def read_waivers(
    path: Path, gate: Gate | None = None, today: date | None = None
) -> tuple[tuple[Waiver, ...], list[str]]:
    """Waivers and all problems with them, those with the rules of `gate` for `today` (a day of UTC) included."""
    document = read_yaml(path)
    if document.data is not None and not isinstance(document.data, dict):
        document = Document(document.name, {"waivers": document.data}, _below(document), document.problems)
    file, problems = shaped(WaiversFile, document)
    if file is None:
        return (), problems
    if gate is not None and today is not None:
        problems += _refused(document, file.waivers, gate, today)
    return file.waivers, problems


def _refused(document: Document, waivers: Sequence[Waiver], gate: Gate, today: date) -> Iterator[str]:
    rules = gate.waivers
    for number, waiver in enumerate(waivers):

        def wrong(key: str, value: object, expected: str, number: int = number) -> str:
            keys = ("waivers", number, key)
            return document.about(keys, f"waivers[{number}].{key} is {value}; gate {gate.name} allows {expected}")

        ahead = (waiver.expiry - today).days
        if rules.max_days is not None and ahead > rules.max_days:
            yield wrong("expiry", f"{waiver.expiry}, {ahead} days ahead", f"at most {rules.max_days} days")
        if rules.max_loss is not None and (waiver.max_loss is None or waiver.max_loss > rules.max_loss):
            loss = "missing" if waiver.max_loss is None else format_percent(waiver.max_loss)
            yield wrong("max_loss", loss, f"at most {format_percent(rules.max_loss)}")
        if rules.owners and not any(fnmatchcase(waiver.owner, pattern) for pattern in rules.owners):
            yield wrong("owner", shown(waiver.owner), f"owners that match {' or '.join(rules.owners)}")
        fits = rules.reference is None or re.fullmatch(rules.reference, waiver.reference[: _LONGEST_REFERENCE + 1])
        if not fits or (rules.reference is not None and len(waiver.reference) > _LONGEST_REFERENCE):
            yield wrong("reference", shown(waiver.reference), f"references that match {rules.reference}")


def _below(document: Document) -> dict[tuple[str | int, ...], int]:
    """The lines of a bare list as if it stood under `waivers`."""
    return {("waivers", *keys): line for keys, line in document.lines.items()}


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
    strings = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length:
            return []
        strings.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return strings


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

    name: Text = Field(description="the person whose key it is")
    role: ManyOf[Role] = Field(description="technician, release-manager, or another role of the gate policy")
    public: Annotated[
        str,
        BeforeValidator(_public),
        written("public key", "ssh-ed25519 AAAA…", type="string", pattern="ssh-ed25519"),
    ]
    valid_from: Day | None = Field(default=None, alias="from")
    expires: Day = Field(description="the last day on which it is valid")

    @property
    def id(self) -> str:
        return fingerprint(self.public)


class PolicyRequirement(Shape):
    """Who must sign runs that fit. Scope fields are patterns; one left out means any. All that fit count together."""

    drop: Text = Field(default="*", description="the candidate's drop")
    suite: Text = "*"
    bench: Text = Field(default="*", description="a bench that the run was measured on")
    roles: Annotated[ManyOf[Role], AfterValidator(_each_once)] = Field(min_length=1)
    hardware: Literal["required"] | None = Field(
        default=None, description="a run on emulated hardware or on files is no release"
    )

    def fits(self, drop: str, suite: str, benches: Iterable[str]) -> bool:
        named = fnmatchcase(drop, self.drop) and fnmatchcase(suite, self.suite)
        return named and any(fnmatchcase(bench, self.bench) for bench in benches)


class Trust(Shape):
    """The verifier's file: `keys` that count, and under `require` who must sign which runs."""

    keys: tuple[TrustedKey, ...] = Field(strict=False, min_length=1)
    require: tuple[PolicyRequirement, ...] = Field(default=(), strict=False)


def load_trust(path: Path) -> Trust:
    """Read whose signature counts and who must sign; an expired key is no error here, whoever checks says so.

    Raises BadInputError with every problem; one key must not stand there twice, or two people could be one.
    """
    document = read_yaml(path)
    file, problems = shaped(Trust, document)
    seen, people = dict[str, str](), dict[str, str]()
    for number, key in enumerate(file.keys if file is not None else ()):
        if key.id in seen:
            sentence = f"this is also the key of {seen[key.id]}; each key may be listed once"
            problems.append(document.about(("keys", number, "public"), sentence))
        seen.setdefault(key.id, key.name)
        # two signatures are worth two only from two people
        person = " ".join(unicodedata.normalize("NFKC", key.name).casefold().split())
        if people.setdefault(person, key.name) != key.name:
            sentence = f"this is {shown(people[person])} written otherwise; write a person's name in one way"
            problems.append(document.about(("keys", number, "name"), sentence))
    raise_all(problems)
    if file is None:
        raise BadInputError([f"{path}: this file has no list of trusted keys under `keys`"])
    return file


KEYS = "keys.yml"
_VARIABLE = "STORQUAL_KEYS"


def signature_warnings(
    inventories: Sequence[Path], gate: Path | None, drop: str, suite: str, benches: Sequence[str]
) -> Iterator[str]:
    """What to change before a campaign so that its run can be signed; nothing where no trusted keys are known."""
    keys = _keys(inventories)
    trust = _trust(keys)
    if trust is None:
        return
    signers = (load_gate(gate).signatures if gate is not None else ()) or DEFAULT_ROLES
    wanted = dict.fromkeys(role for rule in trust.require if rule.fits(drop, suite, benches) for role in rule.roles)
    lacking = [role for role in wanted if role not in signers]
    if lacking:
        has = f"{gate} asks for" if gate is not None else "without a gate policy the run asks for"
        problem = f"{keys} requires a signature as {' and '.join(lacking)}, and {has} {' and '.join(signers)} only"
        roles = ", ".join(dict.fromkeys((*signers, *lacking)))
        where = gate or "gate.yml beside the inventory"
        yield f"nobody could sign this run: {problem}; set `signatures: [{roles}]` in {where} before it is measured"


def role_warnings(inventories: Sequence[Path], gate: Gate, path: Path) -> Iterator[str]:
    """Roles that a gate asks for and none of the trusted keys that are known here has."""
    keys = _keys(inventories)
    trust = _trust(keys)
    there = dict.fromkeys(role for key in trust.keys for role in key.role) if trust is not None else {}
    for role in gate.signatures if there else ():
        if role not in there:
            problem = (
                f"a signature as {role} is asked for, and no key in {keys} has that role{did_you_mean(role, there)}"
            )
            yield read_yaml(path).about(("signatures",), problem)


def _keys(inventories: Sequence[Path]) -> Path:
    return Path(os.environ.get(_VARIABLE) or beside_inventory(KEYS, inventories) or KEYS)


def _trust(keys: Path) -> Trust | None:
    """A file of trusted keys; None for one that is not there or cannot be read, which signing tells."""
    try:
        return sound(Trust, read_yaml(keys).data) if keys.is_file() else None
    except BadInputError:
        return None
