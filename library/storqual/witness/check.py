# SPDX-License-Identifier: Apache-2.0
"""A run against its witness: a run that was rewritten as a whole is not what was told while it was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from storqual.inputs.places import WITNESS_KINDS, witness_kind
from storqual.run.layout import RUN_FILE, read_run_json
from storqual.witness.milestones import Milestone, answers_of, excuses_of, milestones_of, witness_places
from storqual.witness.places import read_back
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.kit.regular_file import read_regular

LATEST = timedelta(hours=1)
"""What is over is told when it is collected, and what could not be told with what comes next."""
_CLOCKS = timedelta(minutes=2)
"""How far two clocks may be apart."""
_KINDS = tuple(dict.fromkeys(WITNESS_KINDS.values()))
_LARGEST_LOG = 64 << 20
"""Bytes: 10,000 batches are told in 2 MB, and a log may have lines of other programs."""
_FEWER = "keep what is storqual's of a longer log: grep 'storqual run='"
_FORMS = "syslog:FILE, ssh:FILE or ssh://HOST/PATH, rfc3161:CERTIFICATES"
_TAG = re.compile(r"storqual run=(\S*)")
_LINE = re.compile(r"storqual run=(\S+) batch=(\S+) sha256=([0-9a-f]{64})[ \t\r]*")
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_PEM = re.compile(r"-----(?:BEGIN|END) ")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def check_witness(run: Path, witness: str) -> list[str]:
    """What in a run is not as its witness was told; empty when everything is.

    `witness` says the kind and where it is: `syslog:FILE` with the lines that a syslog server kept, `ssh:FILE` with
    those of a file on another machine, or `ssh://…` to read them there, `rfc3161:FILE` with the certificates (PEM) of
    the time authority that signed the answers in the run. Without a kind it is the one that run.json says. Nothing is
    concluded from what is in the file. Raises BadInputError for a witness that cannot be read or is a mixture; a run
    that cannot be read is a sentence.
    """
    try:
        places = witness_places(read_run_json(run))
        milestones = milestones_of(run)
        excuses = excuses_of(run)
    except (StorqualError, OSError) as problem:
        return [str(problem).removeprefix(f"{run}/")]
    planned = sorted({witness_kind(place) for place in places.values()})
    kind, where = _kind_of(witness, planned)
    if planned and kind not in planned:
        return [f"{RUN_FILE}: the witness of this run is {' and '.join(planned)}, and not {kind} as {witness} says"]
    if not milestones:
        return ["the run has no finished batch, so the witness has recorded nothing of it"]
    if kind == "rfc3161":
        signed = _verifier(_certificates(where, _text(where)))
        return list(_by_answers(run, milestones, excuses, signed))
    return list(_by_lines(milestones, excuses, where, _text(where)))


def _kind_of(witness: str, planned: list[str]) -> tuple[str, str]:
    """The kind of a witness and where it is. Raises BadInputError where nobody says a kind."""
    if witness.startswith("ssh://"):
        return "ssh", witness
    kind, colon, where = witness.partition(":")
    if colon and kind in _KINDS:
        return kind, where
    if len(planned) != 1:
        said = f"this run has witnesses of several kinds ({', '.join(planned)})" if planned else "run.json names none"
        raise BadInputError([f"--witness {witness}: {said}; say which kind this is: {_FORMS}"])
    return planned[0], witness


def _text(where: str) -> str:
    """What the witness kept. Raises BadInputError."""
    if where.startswith("ssh://"):
        try:
            return read_back(where)
        except StorqualError as problem:
            raise BadInputError([str(problem)]) from None
    try:
        return read_regular(Path(where), _LARGEST_LOG, _FEWER).decode("utf-8", "replace")
    except BadInputError as problem:
        raise BadInputError([f"{told}, expected {_FORMS}" for told in problem.problems]) from None


def _by_lines(
    milestones: Mapping[str, Milestone], excuses: Mapping[str, str], where: str, text: str
) -> Iterable[str]:
    name = next(iter(milestones.values())).run
    kept: defaultdict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(text.split("\n"), start=1):
        if _PEM.search(line):
            raise BadInputError([f"{where}:{number}: found a certificate or a key, expected lines of a log only"])
        runs = _TAG.findall(line)
        if not runs:
            # a syslog server keeps lines of other programs in the same file
            continue
        match = _LINE.fullmatch(line, line.index("storqual run="))
        if match is None:
            # of another run it is for those who verify that one; a line that was cut off may be of this one
            if any(name.startswith(one) for one in runs):
                yield f"{where}:{number}: is a line of storqual that cannot be read: {line[:200]!r}"
        elif match.group(1) == name:
            kept[match.group(2)].add(match.group(3))
    for milestone in milestones.values():
        known = kept.pop(milestone.name, set())
        if not known:
            yield f"{milestone.label}: the witness has no record of it{_excuse(excuses, milestone)}"
        elif len(known) > 1:
            yield f"{milestone.label}: the witness recorded {len(known)} digests, which contradict each other"
        elif known != {milestone.sha256}:
            yield f"{milestone.label}: the witness recorded another digest, so the run was changed afterwards"
    word = next(iter(milestones.values())).word
    for one in kept:
        label = f"{word if '/' not in one else 'event'} {one}"
        yield f"{label}: the witness has a record of it, but the run does not have it"


def _excuse(excuses: Mapping[str, str], milestone: Milestone) -> str:
    reason = excuses.get(milestone.name)
    return f" (the run says that it could not be told: {reason})" if reason else ""


def _certificates(where: str, text: str) -> bytes:
    """A file of certificates (PEM) and nothing else but comments. Raises BadInputError for a mixture."""
    inside = False
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if line == (_END if inside else _BEGIN):
            inside = not inside
        elif not (_BASE64.fullmatch(line) if inside else not line or line.startswith("#")) or _TAG.search(line):
            found = f"found {line[:80]!r}, expected certificates (PEM) and nothing else"
            raise BadInputError([f"{where}:{number}: {found}"])
    return text.encode()


def _verifier(certificates: bytes) -> Callable[[bytes, bytes], datetime]:
    """When an answer of the time authority says that it was asked about a digest; a ValueError when it does not."""
    try:
        from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415 - asked for by few
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response  # noqa: PLC0415
    except ImportError:
        raise BadInputError(["a time authority needs storqual with its extra: storqual[witness]"]) from None
    try:
        roots = load_pem_x509_certificates(certificates)
    except ValueError as problem:
        raise BadInputError([f"found no certificates ({problem}), expected those of the time authority"]) from None
    verifier = VerifierBuilder(roots=list(roots)).build()

    def signed(answer: bytes, digest: bytes) -> datetime:
        try:
            response = decode_timestamp_response(answer)
            verifier.verify_message(response, digest)
        except (VerificationError, TypeError) as problem:
            raise ValueError(str(problem)) from None
        return response.tst_info.gen_time.astimezone(UTC)

    return signed


def _by_answers(
    run: Path,
    milestones: Mapping[str, Milestone],
    excuses: Mapping[str, str],
    signed: Callable[[bytes, bytes], datetime],
) -> Iterable[str]:
    """Answers are in the run itself; a rewritten one can only get answers of a later time."""
    try:
        answers = answers_of(run)
    except ValueError as problem:
        yield f"events.jsonl: an answer of the witness cannot be read ({problem})"
        return
    for milestone in milestones.values():
        kept = [answer for answer in answers.pop(milestone.name, []) if answer]
        if not kept:
            excuse = _excuse(excuses, milestone)
            yield f"{milestone.label}: the run has no answer of the time authority about it{excuse}"
            continue
        problems = [_answer_problem(milestone, answer, signed) for answer in kept]
        if all(problems):
            yield f"{milestone.label}: {problems[0]}"
    for one in answers:
        yield f"{one}: the run has an answer of the time authority about it, but does not have it"


def _answer_problem(milestone: Milestone, answer: bytes, signed: Callable[[bytes, bytes], datetime]) -> str:
    """Why an answer does not speak for a milestone; empty when it does."""
    try:
        moment = signed(answer, bytes.fromhex(milestone.sha256))
        over = datetime.fromisoformat(milestone.time)
        late = not over - _CLOCKS <= moment <= over + LATEST
    except (ValueError, TypeError, OverflowError) as problem:
        return f"the time authority did not sign this ({problem})"
    return f"it ended at {milestone.time}, and was recorded at {moment.isoformat()}" if late else ""
