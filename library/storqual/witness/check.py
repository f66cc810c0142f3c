# SPDX-License-Identifier: Apache-2.0
"""A run against its witness: a run that was rewritten as a whole is not what was told while it was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from storqual.witness.batches import Batch, answers_of, batches_of
from storqual.witness.places import read_back
from storqual_core.kit.errors import BadInputError, StorqualError

_LINE = re.compile(r"storqual run=(\S+) batch=(\S+) sha256=([0-9a-f]{64})(?:\s|\Z)")
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_PUBLIC_KEY = b"-----BEGIN PUBLIC KEY-----"
LATEST = timedelta(hours=1)
"""A batch is told when it is collected, and one that could not be told with the next one."""
_CLOCKS = timedelta(minutes=2)
"""How far two clocks may be apart."""


def check_witness(run: Path, witness: str) -> list[str]:
    """What in a run is not as its witness was told; empty when every batch is.

    `witness` is a file with the lines that a syslog server or another machine kept, `ssh://…` to read them there, or
    a file (PEM) with what the answers in the run are checked by: certificates of the time authority, or public keys
    of the log and of the lab. Raises BadInputError for a witness that cannot be read; a run that cannot be read is a
    sentence.
    """
    try:
        batches = batches_of(run)
    except (StorqualError, OSError) as problem:
        return [str(problem).removeprefix(f"{run}/")]
    if not batches:
        return ["the run has no finished batch, so the witness has recorded nothing of it"]
    if witness.startswith("ssh://"):
        try:
            return _by_lines(batches, read_back(witness))
        except StorqualError as problem:
            raise BadInputError([str(problem)]) from None
    try:
        data = Path(witness).read_bytes()
    except OSError as problem:
        expected = "lines of a log, certificates of a time authority, or public keys of Rekor and of the lab"
        raise BadInputError([f"{witness}: cannot be read ({problem.strerror}), expected {expected}"]) from None
    if _CERTIFICATE in data:
        return _by_answers(run, batches, "the time authority", _by_times(data))
    if _PUBLIC_KEY in data:
        return _by_answers(run, batches, "the log", _by_entries(data))
    return _by_lines(batches, data.decode("utf-8", "replace"))


def _by_lines(batches: Mapping[str, Batch], text: str) -> list[str]:
    name = next(iter(batches.values())).run
    told: defaultdict[str, set[str]] = defaultdict(set)
    for match in _LINE.finditer(text):
        if match.group(1) == name:
            told[match.group(2)].add(match.group(3))
    problems = []
    for batch in batches.values():
        known = told.pop(batch.name, None)
        if known is None:
            problems.append(f"{batch.word} {batch.name}: the witness has no record of it")
        elif known != {batch.sha256}:
            problems.append(
                f"{batch.word} {batch.name}: the witness recorded another digest, so the run was changed afterwards"
            )
    word = next(iter(batches.values())).word
    return problems + [f"{word} {one}: the witness has a record of it, but the run does not have it" for one in told]


def _by_times(certificates: bytes) -> Callable[[bytes, bytes], datetime]:
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


def _by_entries(keys: bytes) -> Callable[[bytes, bytes], datetime]:
    """When an entry of the log says that it took a digest; a ValueError when it does not."""
    from storqual.witness.rekor import logged_at, read_keys  # noqa: PLC0415 - loads OpenSSL: asked for by few

    try:
        known = read_keys(keys)
    except ValueError as problem:
        raise BadInputError([f"found no keys ({problem}), expected those of the log and of the lab"]) from None
    return lambda answer, digest: logged_at(answer, digest, known)


def _by_answers(
    run: Path, batches: Mapping[str, Batch], who: str, signed: Callable[[bytes, bytes], datetime]
) -> list[str]:
    """Answers are in the run itself; a rewritten one can only get answers of a later time."""
    problems = []
    try:
        answers = answers_of(run)
    except ValueError as problem:
        return [f"events.jsonl: an answer of the witness cannot be read ({problem})"]
    for batch in batches.values():
        answer = answers.get(batch.name)
        if not answer:
            problems.append(f"{batch.word} {batch.name}: the run has no answer of {who} about it")
            continue
        try:
            moment = signed(answer, bytes.fromhex(batch.sha256))
            over = datetime.fromisoformat(batch.time)
            late = not over - _CLOCKS <= moment <= over + LATEST
        except (ValueError, TypeError, OverflowError) as problem:
            problems.append(f"{batch.word} {batch.name}: {who} did not sign this ({problem})")
            continue
        if late:
            problems.append(
                f"{batch.word} {batch.name}: it ended at {batch.time}, and was recorded at {moment.isoformat()}"
            )
    return problems
