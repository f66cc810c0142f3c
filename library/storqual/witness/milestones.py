# SPDX-License-Identifier: Apache-2.0
"""What a witness is told of a run, each as one digest: batches, trials, programs, ends, and what was published."""

import base64
import hashlib
import re
import shlex
import socket
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from storqual.base.web import web_answer
from storqual.inputs.inventory import WITNESS_KINDS, witness_kind, witness_problem
from storqual.run.event_kinds import FINISHED
from storqual.run.events import append_event, iter_events
from storqual.run.files import file_digest, read_lines
from storqual.run.layout import BATCHES, RUN_FILE, SAMPLES, TURNS, read_run_json, sha256_of
from storqual.run.records import Event
from storqual_core.kit.command import run
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError, StorqualError

WITNESSED, NOT_WITNESSED = "witnessed", "not_witnessed"
_OF_RUN = {"closed": "end of the run", "published": "publication"}
"""Events of the run as a whole, and the word for what each stands for."""
_STRANGE = "the run names it, and your inventory does not; if it is yours: storqual publish RUN --witness ADDRESS"
_STORED_ID = re.compile(rb'^\{"schema":"[^"]*","id":"([^"]+)/[0-9]+"')


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something that a witness is told: its time (UTC, ISO 8601), its SHA-256, and the word that people have for it.

    `bench` is where a batch, a trial or a program ended; it is empty for what is of the whole run, whose `name` is
    `events/closed-1` and the like: no batch has a slash in its name.
    """

    run: str
    bench: str
    name: str
    time: str
    sha256: str
    word: str = "batch"

    def line(self) -> str:
        return f"storqual run={self.run} batch={self.name} sha256={self.sha256}"

    @property
    def label(self) -> str:
        return f"{self.word} {self.name}"


def milestones_of(run: Path) -> dict[str, Milestone]:
    """What a witness is told of a run, by name. Raises StorqualError for a directory that cannot be read.

    The digest of a batch is of its file, of the lines of its samples, which name their evidence by digest, and of the
    event that ended it, which carries the digest of the events before it. Of a trial it is of its record, which names
    the bench's stream by digest, and of its event; of an end and of a publication it is of their event.
    """
    samples: dict[str, hashlib._Hash] = {}
    for _, line in read_lines(run, SAMPLES):
        match = _STORED_ID.match(line)
        name = match.group(1).decode("utf-8", "replace") if match else ""
        samples.setdefault(name, hashlib.sha256()).update(line + b"\n")
    name = str(read_run_json(run).get("run"))
    counted: Counter[str] = Counter()
    milestones: dict[str, Milestone] = {}
    for event in iter_events(run):
        if event.kind in FINISHED:
            batch = event.text(FINISHED[event.kind])
            measured = samples[batch].hexdigest() if batch in samples else "none"
            parts: tuple[str, ...] = (name, batch, _file_digest(run, event, batch), measured, event.sha256)
            word = event.text("turn_kind") or "batch"
        elif event.kind in _OF_RUN:
            counted[event.kind] += 1
            batch = f"events/{event.kind}-{counted[event.kind]}"
            parts, word = (name, batch, event.sha256), _OF_RUN[event.kind]
        else:
            continue
        digest = sha256_of(" ".join(parts).encode())
        bench = str(event.bench or "")
        milestones[batch] = Milestone(name, bench, batch, event.time, digest, word)
    return milestones


def _file_digest(run: Path, event: Event, name: str) -> str:
    file = f"{TURNS if event.kind == 'turn_finished' else BATCHES}/{name}.json"
    return file_digest(run, file) if "/" not in name and (run / file).is_file() else "none"


def notify_witness(run: Path, own: Collection[str], bench: str | None = None) -> list[str]:
    """Tell the witness of `bench`, or of every bench, what it was not told; what went wrong, as sentences.

    The place is `storqual_witness` of the bench, as it was planned; without one nothing is told. Nor is one that is
    not among `own`, which this user's inventory or command line names: the run may be a stranger's, and it would be
    told with this user's SSH key. What is of the whole run each place is told once. What was told is an event, with
    the place's answer where it gives one. A witness that cannot be reached stops no campaign: the event says so, and
    it is told with what comes next.
    """
    planned = witness_addresses(read_run_json(run))
    addresses = {name: address for name, address in planned.items() if address in own}
    strange = {address for name, address in planned.items() if address not in own and bench in (None, name)}
    wrong = [f"{address}: this witness is not told: {_STRANGE}" for address in sorted(strange)]
    if not addresses or (bench is not None and bench not in addresses):
        return wrong
    first: dict[str, str] = {}
    for name, address in addresses.items():
        first.setdefault(address, name)
    sent = {(event.bench, event.text("block")) for event in iter_events(run) if event.kind == WITNESSED}
    for milestone in milestones_of(run).values():
        for where in [milestone.bench] if milestone.bench else first.values():
            of_bench = where in addresses and (bench is None or addresses[bench] == addresses[where])
            if not of_bench or (where, milestone.name) in sent:
                continue
            if milestone.bench and bench not in (None, where):
                continue
            problem = _tell(run, where, addresses[where], milestone)
            if problem:
                wrong.append(f"the digest of {milestone.label} did not reach the witness: {problem}")
    return wrong


def _tell(run: Path, bench: str, address: str, milestone: Milestone) -> str:
    """Tell one place; why that failed, empty when it did not."""
    fields = {"bench": bench, "block": milestone.name, "place": address, "sha256": milestone.sha256}
    try:
        answer = tell(address, milestone.line(), bytes.fromhex(milestone.sha256))
    except StorqualError as problem:
        append_event(run, NOT_WITNESSED, {**fields, "reason": str(problem)})
        return str(problem)
    append_event(run, WITNESSED, {**fields, "answer": base64.b64encode(answer).decode()})
    return ""


def witness_addresses(document: Mapping[str, Any]) -> dict[str, str]:
    """The witness of each bench that has one, as run.json says it."""
    benches = document.get("benches")
    entries = benches.items() if isinstance(benches, Mapping) else ()
    return {
        str(name): str(entry["witness"])
        for name, entry in entries
        if isinstance(entry, Mapping) and entry.get("witness")
    }


def answers_of(run: Path) -> dict[str, list[bytes]]:
    """What witnesses answered, by the name of what they were told. Raises ValueError for what is no base64."""
    answers: dict[str, list[bytes]] = {}
    for event in iter_events(run):
        if event.kind == WITNESSED:
            answer = base64.b64decode(event.text("answer"), validate=True)
            answers.setdefault(event.text("block"), []).append(answer)
    return answers


def excuses_of(run: Path) -> dict[str, str]:
    """Why a witness was not told, by the name of what it was to be told."""
    return {event.text("block"): event.text("reason") for event in iter_events(run) if event.kind == NOT_WITNESSED}


_PATIENCE_S = 10.0
_NOTICE = 13 * 8 + 5
"""Facility 13 (log audit), severity 5 (notice), as RFC 5424 counts them."""
_MOST = 1 << 16
"""Bytes of an answer, with its certificates."""


def tell(address: str, line: str, digest: bytes) -> bytes:
    """Tell a place one line (syslog, a file) or one SHA-256 (a time authority); its answer, empty for none.

    Raises StorqualError when the place cannot be reached or refuses.
    """
    # a name with the end of a line in it would write lines of its own, into whatever file the place is
    problem = witness_problem(address) or ("" if _LINE.fullmatch(line) else "this line is none that a witness keeps")
    if problem:
        raise StorqualError(f"{address}: {problem}")
    parts = urlsplit(address)
    if parts.scheme == "syslog":
        return _syslog(parts, line)
    if parts.scheme == "ssh":
        return _append(parts, line)
    return _timestamp(address.removeprefix("rfc3161+"), digest)


def read_back(address: str) -> str:
    """The lines of a file on another machine. Raises StorqualError."""
    parts = urlsplit(address)
    ended = run([*_ssh(parts), f"cat -- {shlex.quote(parts.path)}"], timeout=6 * _PATIENCE_S)
    if ended.rc != 0:
        raise StorqualError(f"{address}: could not be read: {ended.stderr.strip() or ended.rc}")
    return ended.stdout


def _syslog(parts: SplitResult, line: str) -> bytes:
    """One message by TCP, framed by counting its bytes (RFC 6587): no text can end it early."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    message = f"<{_NOTICE}>1 {time} {socket.gethostname() or '-'} storqual - - - {line}".encode()
    try:
        with socket.create_connection((parts.hostname, parts.port or 514), timeout=_PATIENCE_S) as connection:
            connection.sendall(b"%d %s" % (len(message), message))
            connection.shutdown(socket.SHUT_WR)
            # a server that closes has taken everything; one that resets has not
            while connection.recv(4096):
                pass
    except OSError as problem:
        raise StorqualError(f"{parts.hostname}: the syslog server did not accept it ({problem})") from None
    return b""


def _append(parts: SplitResult, line: str) -> bytes:
    """One line at the end of a file, which the account there may be unable to do anything else with."""
    command = f"cat >> {shlex.quote(parts.path)} && sync -- {shlex.quote(parts.path)}"
    ended = run([*_ssh(parts), command], timeout=3 * _PATIENCE_S, send=f"{line}\n".encode())
    if ended.rc != 0:
        raise StorqualError(f"{parts.hostname}: the line was not appended: {ended.stderr.strip() or ended.rc}")
    return b""


def _ssh(parts: SplitResult) -> list[str]:
    host = f"{parts.username}@{parts.hostname}" if parts.username else str(parts.hostname)
    port = ["-p", str(parts.port)] if parts.port else []
    return ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_PATIENCE_S:g}", *port, "--", host]


def _timestamp(url: str, digest: bytes) -> bytes:
    """The authority's answer over the SHA-256 of `digest`, as it came; it was granted."""
    try:
        from rfc3161_client import (  # noqa: PLC0415 - an extra that most labs do without
            HashAlgorithm,
            TimestampRequestBuilder,
            decode_timestamp_response,
        )
    except ImportError:
        raise StorqualError("a time authority needs storqual with its extra: storqual[witness]") from None
    question = TimestampRequestBuilder().data(digest).hash_algorithm(HashAlgorithm.SHA256).build().as_bytes()
    request = urllib.request.Request(url, question, {"Content-Type": "application/timestamp-query"})  # noqa: S310 - http or https by `witness_problem`
    try:
        answer = web_answer(request, limit_s=3 * _PATIENCE_S)
        status = decode_timestamp_response(answer).status
    except (OSError, ValueError) as problem:
        raise StorqualError(f"{url}: no timestamp ({problem})") from None
    if status != 0:
        raise StorqualError(f"{url}: the timestamp was not granted (status {status})")
    return answer


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
        addresses = witness_addresses(read_run_json(run))
        milestones = milestones_of(run)
        excuses = excuses_of(run)
    except (StorqualError, OSError) as problem:
        return [str(problem).removeprefix(f"{run}/")]
    planned = sorted({witness_kind(address) for address in addresses.values()})
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
        kinds = ", ".join(planned)
        reason = f"this run has witnesses of several kinds ({kinds})" if planned else "run.json names none"
        raise BadInputError([f"--witness {witness}: {reason}; say which kind this is: {_FORMS}"])
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
        raise BadInputError([f"{text}, expected {_FORMS}" for text in problem.problems]) from None


def _by_lines(
    milestones: Mapping[str, Milestone], excuses: Mapping[str, str], where: str, text: str
) -> Iterable[str]:
    name = next(iter(milestones.values())).run
    recorded: defaultdict[str, set[str]] = defaultdict(set)
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
            if any(name.startswith(run_name) for run_name in runs):
                yield f"{where}:{number}: is a line of storqual that cannot be read: {line[:200]!r}"
        elif match.group(1) == name:
            recorded[match.group(2)].add(match.group(3))
    for milestone in milestones.values():
        digests = recorded.pop(milestone.name, set())
        if not digests:
            yield f"{milestone.label}: the witness has no record of it{_excuse(excuses, milestone)}"
        elif len(digests) > 1:
            yield f"{milestone.label}: the witness recorded {len(digests)} digests, which contradict each other"
        elif digests != {milestone.sha256}:
            yield f"{milestone.label}: the witness recorded another digest, so the run was changed afterwards"
    word = next(iter(milestones.values())).word
    for name in recorded:
        label = f"{word if '/' not in name else 'event'} {name}"
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
            reason = f"found {line[:80]!r}, expected certificates (PEM) and nothing else"
            raise BadInputError([f"{where}:{number}: {reason}"])
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
        received = [answer for answer in answers.pop(milestone.name, []) if answer]
        if not received:
            excuse = _excuse(excuses, milestone)
            yield f"{milestone.label}: the run has no answer of the time authority about it{excuse}"
            continue
        problems = [_answer_problem(milestone, answer, signed) for answer in received]
        if all(problems):
            yield f"{milestone.label}: {problems[0]}"
    for label in answers:
        yield f"{label}: the run has an answer of the time authority about it, but does not have it"


def _answer_problem(milestone: Milestone, answer: bytes, signed: Callable[[bytes, bytes], datetime]) -> str:
    """Why an answer does not speak for a milestone; empty when it does."""
    try:
        moment = signed(answer, bytes.fromhex(milestone.sha256))
        over = datetime.fromisoformat(milestone.time)
        late = not over - _CLOCKS <= moment <= over + LATEST
    except (ValueError, TypeError, OverflowError) as problem:
        return f"the time authority did not sign this ({problem})"
    return f"it ended at {milestone.time}, and was recorded at {moment.isoformat()}" if late else ""
