# SPDX-License-Identifier: Apache-2.0
"""The reservation of a bench, beside its lock: who, where, why, until, and a number that only grows.

A reservation that has lapsed does not stop what its owner left running, and an owner that was suspended does not know
that it lapsed. So every command carries the number of its reservation (in the environment variable STORQUAL_LEASE),
and what writes refuses an older one.

`lease.json` says who has the bench and whether it is out of service; the time of the file `lease.<number>` is that of
the last renewal, and it exists as long as the number counts: a shell can renew and ask without starting a Python.
`queue/` has a file for each who waits; its time says when that one was last there.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

from .durable import checked_name, fsync_folder, make_folder, replace_file, replace_json
from .errors import EXIT_BENCH_LOST, StorqualError

VARIABLE = "STORQUAL_LEASE"
"""`<number>@<state folder>` of the reservation under which a command is given."""
LAPSE_S = 600.0
"""So long after its last renewal a reservation may be taken."""
WAITING_S = 180.0
"""Who waits and was not there for so long has given up, or was killed."""
_SCHEMA = "storqual.lease/1"
_LARGEST = 1000
"""Characters of a reason."""


@dataclass(frozen=True)
class Owner:
    """Who has, or wants, a bench: `who` on which machine (`where`), why, since and until (ISO, UTC), for which run.

    A person's reservation (`run` empty) ends when its time is over; a campaign's is renewed, and lapses `lapse_s`
    seconds after its last renewal.
    """

    who: str
    where: str
    why: str
    until: str
    run: str = ""
    since: str = ""
    lapse_s: float = LAPSE_S

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Owner:
        """Raises KeyError, TypeError and ValueError for anything else."""
        texts = {entry.name: str(body[entry.name])[:_LARGEST] for entry in fields(cls) if entry.name != "lapse_s"}
        datetime.fromisoformat(texts["until"])
        return cls(**texts, lapse_s=float(body.get("lapse_s", LAPSE_S)))

    def describe(self) -> str:
        return f"{self.who} on {self.where} until {self.until} ({self.why or 'no reason given'})"

    def is_same(self, other: Owner) -> bool:
        """Whether it is one campaign that goes on, or one person."""
        return (self.who, self.where, self.run) == (other.who, other.where, other.run)


@dataclass(frozen=True)
class Out:
    """Why a bench is out of service, who said so when (ISO, UTC), and until when it is, if that is known."""

    why: str
    who: str
    since: str
    until: str = ""

    def describe(self) -> str:
        until = f" until {self.until}" if self.until else ""
        return f"out of service since {self.since}{until}: {self.why} ({self.who})"


@dataclass(frozen=True)
class Lease:
    """What is known of a bench's reservation now; `owner` is None where nobody has it, or its time is over.

    `lapsed` is the owner whose time is over and whom nobody has followed; `former` is what the owner took the bench
    from, in words; `waiting` are those who wait, the next one first.
    """

    number: int = 0
    owner: Owner | None = None
    lapsed: Owner | None = None
    former: str = ""
    out: Out | None = None
    waiting: tuple[tuple[str, Owner], ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        body = asdict(self)
        body["waiting"] = [{"ticket": ticket, **asdict(owner)} for ticket, owner in self.waiting]
        return body


class ReservedError(StorqualError):
    """Somebody else has the bench, or waits for it longer.

    `place` is that in the queue, 0 for one not in it; `number` that of the reservation which is waited for.
    """

    exit_code = 4

    def __init__(self, message: str, place: int = 0, number: int = 0) -> None:
        self.place, self.number = place, number
        super().__init__(message)


class LeaseLostError(StorqualError):
    """A command of a reservation that counts no longer."""

    exit_code = 4


class OutOfServiceError(StorqualError):
    """A bench that is out of service."""

    exit_code = EXIT_BENCH_LOST


def given_number(state_dir: Path) -> int:
    """The number of the reservation under which this process was started; 0 without one for this bench."""
    number, _, folder = os.environ.get(VARIABLE, "").partition("@")
    return int(number) if folder == str(state_dir) and re.fullmatch("[0-9]{1,18}", number) else 0


def _boot_time() -> float:
    with suppress(OSError, ValueError), Path("/proc/stat").open(encoding="ascii") as stat:
        return float(next(line.split()[1] for line in stat if line.startswith("btime ")))
    return 0.0


class LeaseBook:
    """The reservations of one bench, in a folder on it or in one that control nodes share.

    `name` is the bench's in messages. Times are those of the machine on which this runs.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "the bench",
        clock: Callable[[], float] = time.time,
        boot_time: Callable[[], float] = _boot_time,
    ) -> None:
        self.folder, self._name, self._clock, self._boot_time = folder, name, clock, boot_time
        self._file = folder / "lease.json"
        self._queue = folder / "queue"

    def read(self) -> Lease:
        """Raises StorqualError for a file that cannot be understood: somebody may have the bench."""
        body = self._body()
        number = int(body.get("number", 0))
        owner = self._owner(body.get("owner"))
        in_force = owner is not None and self._in_force(number, owner)
        waiting = tuple((path.stem, waiter) for path, waiter in self._waiting())
        return Lease(
            number,
            owner if in_force else None,
            None if in_force else owner,
            str(body.get("former") or ""),
            self._out(body.get("out")),
            waiting,
        )

    def reserve(self, wanted: Owner, *, ticket: str = "", take: bool = False) -> Lease:
        """Have the bench for `wanted`; its number is new. With a `ticket`, be in the queue where it is not free.

        `take` takes it from whoever has it, also out of service: only a person does. Raises ReservedError with who,
        where, why and until, OutOfServiceError.
        """
        with self._locked():
            lease = self.read()
            if lease.out is not None and not take:
                raise OutOfServiceError(f"{self._name} is {lease.out.describe()}")
            owner, former = lease.owner, ""
            if owner is not None and take and not owner.is_same(wanted):
                former = owner.describe()
            elif owner is not None and not self._goes_on(owner, wanted):
                place = self._line_up(ticket, wanted)
                sentence = f"{self._name} is reserved by {owner.describe()}{_queued(place)}"
                raise ReservedError(sentence, place, lease.number)
            elif owner is None and not take and lease.waiting and lease.waiting[0][0] != ticket:
                place = self._line_up(ticket, wanted)
                waits = f"{self._name} is waited for by {lease.waiting[0][1].describe()}"
                raise ReservedError(f"{waits}{_queued(place)}", place)
            number = max(lease.number + 1, int(self._clock()))
            made = replace(wanted, since=self._stamp())
            # the old number counts no longer before the new one does
            self._forget_number(lease.number)
            self._write(number, made, former, lease.out)
            (self.folder / f"lease.{number}").touch()
            fsync_folder(self.folder)
            self.leave(ticket)
            return replace(self.read(), number=number, owner=made, lapsed=lease.lapsed)

    def renew(self, number: int, until: str = "") -> None:
        """Raises LeaseLostError."""
        with self._locked():
            owner = self._counting(number)
            if until:
                body = self._body()
                self._write(number, replace(owner, until=until), str(body.get("former") or ""), self.read().out)
            os.utime(str(self.folder / f"lease.{number}"))

    def release(self, number: int) -> None:
        """Give the bench back; the number stays the last one. Nothing when another one counts."""
        with self._locked(), suppress(LeaseLostError):
            self._counting(number)
            self._forget_number(number)
            self._write(number, None, "", self.read().out)

    def leave(self, ticket: str) -> None:
        """Wait no longer."""
        if ticket:
            (self._queue / f"{checked_name(ticket, 'ticket')}.json").unlink(missing_ok=True)

    def take_out(self, out: Out) -> None:
        """Put the bench out of service; who has it keeps it until he gives it back."""
        with self._locked():
            body = self._body()
            self._write(
                int(body.get("number", 0)), self._owner(body.get("owner")), str(body.get("former") or ""), out
            )

    def put_back(self) -> Out | None:
        """Have the bench in service again; what it was out for."""
        with self._locked():
            body, out = self._body(), self.read().out
            self._write(
                int(body.get("number", 0)), self._owner(body.get("owner")), str(body.get("former") or ""), None
            )
            return out

    def refuse_others(self, number: int) -> None:
        """Raise unless a command under reservation `number` (0: under none) may write.

        LeaseLostError for a number that counts no longer; ReservedError where it has none and somebody has the bench;
        OutOfServiceError.
        """
        if number:
            self._counting(number)
            return
        if not self._file.exists():
            return
        lease = self.read()
        if lease.owner is not None:
            raise ReservedError(f"{self._name} is reserved by {lease.owner.describe()}")
        if lease.out is not None:
            raise OutOfServiceError(f"{self._name} is {lease.out.describe()}")

    def _counting(self, number: int) -> Owner:
        body = self._body()
        owner = self._owner(body.get("owner"))
        if int(body.get("number", 0)) == number and owner is not None:
            return owner
        has = f"{owner.describe()} has it" if owner else "nobody has it"
        raise LeaseLostError(f"reservation {number} of {self._name} counts no longer: {has}")

    @staticmethod
    def _goes_on(owner: Owner, wanted: Owner) -> bool:
        """Whether the owner's own campaign, or one that he begins on a bench that he keeps for himself, goes on."""
        return owner.is_same(wanted) or (not owner.run and (owner.who, owner.where) == (wanted.who, wanted.where))

    def _in_force(self, number: int, owner: Owner) -> bool:
        now = self._clock()
        if not owner.run:
            return now < datetime.fromisoformat(owner.until).timestamp()
        try:
            renewed = (self.folder / f"lease.{number}").stat().st_mtime
        except OSError:
            return False
        boot = self._boot_time()
        # no renewal reaches a bench that is down, and a clock that was set tells no age
        since = renewed if boot <= renewed <= now else min(max(boot, renewed), now)
        return now - since < owner.lapse_s

    def _waiting(self) -> Iterator[tuple[Path, Owner]]:
        """Those who wait, in the order in which they came; who gave up is removed."""
        for path in sorted(self._queue.glob("*.json")):
            try:
                seen = path.stat().st_mtime
                owner = Owner.of(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue
            # nobody reaches the queue of a bench that is down
            if abs(self._clock() - max(seen, self._boot_time())) < WAITING_S:
                yield path, owner

    def _line_up(self, ticket: str, wanted: Owner) -> int:
        """The place of the ticket in the queue, at whose end it is put where it is not in it; 0 without a ticket."""
        if not ticket:
            return 0
        own = self._queue / f"{checked_name(ticket, 'ticket')}.json"
        make_folder(self._queue)
        if own.exists():
            os.utime(str(own))
        else:
            replace_file(own, json.dumps(asdict(wanted)), durable=False)
        # of those who were not there for long
        present = [path for path, _ in self._waiting()]
        for path in self._queue.glob("*.json"):
            if path not in present:
                path.unlink(missing_ok=True)
        return present.index(own) + 1 if own in present else 0

    def ticket(self) -> str:
        """A new ticket, behind all that were drawn before."""
        with self._locked():
            body = self._body()
            number = int(body.get("tickets", 0)) + 1
            replace_json(self._file, {"schema": _SCHEMA, **body, "tickets": number})
            return f"{number:08d}"

    def _forget_number(self, number: int) -> None:
        (self.folder / f"lease.{number}").unlink(missing_ok=True)

    def _write(self, number: int, owner: Owner | None, former: str, out: Out | None) -> None:
        body = {
            "schema": _SCHEMA,
            "tickets": int(self._body().get("tickets", 0)),
            "number": number,
            "owner": asdict(owner) if owner else None,
            "former": former,
            "out": asdict(out) if out else None,
        }
        replace_json(self._file, body)

    def _body(self) -> dict[str, Any]:
        try:
            body = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as problem:
            raise self._unreadable(problem) from problem
        if not isinstance(body, dict) or body.get("schema") != _SCHEMA or not isinstance(body.get("number", 0), int):
            raise self._unreadable(f"found no {_SCHEMA}")
        return body

    def _owner(self, body: Any) -> Owner | None:  # noqa: ANN401 - any JSON
        try:
            return None if body is None else Owner.of(body)
        except (KeyError, TypeError, ValueError) as problem:
            raise self._unreadable(repr(problem)) from problem

    def _out(self, body: Any) -> Out | None:  # noqa: ANN401 - any JSON
        try:
            out = None if body is None else Out(**{entry.name: str(body[entry.name]) for entry in fields(Out)})
            until = datetime.fromisoformat(out.until).timestamp() if out is not None and out.until else None
        except (KeyError, TypeError, ValueError) as problem:
            raise self._unreadable(repr(problem)) from problem
        return None if until is not None and self._clock() >= until else out

    def _unreadable(self, problem: object) -> StorqualError:
        remedy = "somebody may have the bench; look at it, and remove it where nobody has"
        return StorqualError(f"{self._file} cannot be read ({problem}): {remedy}")

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self._clock(), timezone.utc).isoformat(timespec="seconds")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_folder(self.folder)
        handle = os.open(str(self.folder / "lease.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _queued(place: int) -> str:
    return f"; place {place} in the queue" if place else ""
