# SPDX-License-Identifier: Apache-2.0
"""A place of labgrid as a part of a bench's reservation.

It stays acquired until somebody releases it. So the reservation says who may use a bench, and the place is acquired
under its number; `labgrid.json` beside it says so, and a place that is not in it is not released.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.files import parse_json
from storqual.inputs.labgrid import LabgridPlace
from storqual_core.kit.command import run
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LeaseBook, LeaseLostError, OutOfServiceError, ReservedError

_CALL_S = 60.0
_WAIT_S = 20.0
"""labgrid forgets a reservation that was not asked for within 60 s."""
_NOBODY = "None"


@dataclass(frozen=True)
class PlaceBook:
    """Acquires a place for reservation `number` of `folder`; it is asked as other books are, see `reserve`."""

    place: LabgridPlace
    folder: Path
    number: int

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["act"] == "ticket":
            return {"ticket": _value("token", self._client("reserve", f"name={self.place.place}"))}
        if request["act"] == "leave":
            return {"left": self._client("cancel-reservation", str(request["ticket"]))}
        try:
            # who waits for hours keeps what he has
            LeaseBook(self.folder).renew(self.number)
            self._acquire(take=bool(request.get("take")))
        except (LeaseLostError, ReservedError, OutOfServiceError) as problem:
            waits = isinstance(problem, ReservedError)
            return {"refused": str(problem), "exit_code": problem.exit_code, "waits": waits}
        return {}

    def look(self, ticket: str, _number: int) -> bool:
        """Whether labgrid has allocated the place meanwhile; to ask keeps the ticket."""
        LeaseBook(self.folder).renew(self.number)
        with suppress(subprocess.TimeoutExpired):
            words = [*self.place.argv, "wait", ticket]
            return child.run(words, timeout=_WAIT_S, capture_output=True).returncode == 0
        return False

    def release(self) -> None:
        """Release the place where it was acquired for this reservation, and is ours still. Raises StorqualError."""
        if acquired_for(self.folder).get("number") == self.number:
            if _value("acquired", self._client("show")) == _me():
                self._client("release")
            _record(self.folder).unlink(missing_ok=True)

    def _acquire(self, *, take: bool) -> None:
        """Raises ReservedError with who holds it, OutOfServiceError for a place that is of no use."""
        name, shown = f"place {self.place.place} of labgrid", self._client("show")
        holder, acquired = self._holder(shown), _value("acquired", shown) != _NOBODY
        other = holder not in ("", _me())
        if other and not take:
            raise ReservedError(f"{name} is held by {holder}")
        if other and acquired:
            self._client("release", "--kick")
        # what a campaign acquired that was killed is ours as well
        if other or not acquired or acquired_for(self.folder).get("place") == self.place.place:
            body = {"place": self.place.place, "coordinator": self.place.coordinator, "number": self.number}
            replace_file(_record(self.folder), json.dumps(body))
        if other or not acquired:
            try:
                self._client("acquire")
            except StorqualError as problem:
                _record(self.folder).unlink(missing_ok=True)
                if (holder := self._holder(self._client("show"))) not in ("", _me()):
                    raise ReservedError(f"{name} is held by {holder}") from None
                raise OutOfServiceError(f"{name} is of no use: {problem}") from None
        if missing := missing_resources(self._client("show")):
            self.release()
            raise OutOfServiceError(f"{name} is of no use: {missing}; look at its exporter")

    def _holder(self, shown: str) -> str:
        """Who has acquired the place, or for whom it is kept, as labgrid names him; empty for nobody."""
        holder = _value("acquired", shown)
        if holder != _NOBODY:
            # a colleague may allow others to use what he has
            return _me() if _me() in _value("allowed", shown, "").split(", ") else holder
        token = _value("reservation", shown, "")
        rest = self._client("reservations").partition(f"Reservation '{token}':")[2] if token else ""
        return _value("owner", rest, "")

    def _client(self, *words: str) -> str:
        ended = run([*self.place.argv, *words], timeout=_CALL_S)
        if ended.rc:
            raise StorqualError(f"`labgrid-client {words[0]}` of {self.place.place}: {ended.last_words()}")
        return ended.stdout


def acquired_for(folder: Path) -> dict[str, Any]:
    """`place`, `coordinator` and the `number` of the reservation for which it was acquired; empty where none was."""
    with suppress(OSError, ValueError, TypeError):
        return dict(parse_json(_record(folder).read_bytes(), 100))
    return {}


def release_place(folder: Path, number: int) -> None:
    """Release what was acquired for that reservation; nothing where nothing was. Raises StorqualError."""
    if known := acquired_for(folder):
        PlaceBook(LabgridPlace(place=known["place"], coordinator=known["coordinator"]), folder, number).release()


def _record(folder: Path) -> Path:
    return folder / "labgrid.json"


def _me() -> str:
    """How labgrid names this user on this machine."""
    host, user = os.environ.get("LG_HOSTNAME"), os.environ.get("LG_USERNAME")
    return f"{host or socket.gethostname()}/{user or getpass.getuser()}"


def _value(key: str, shown: str, default: str | None = None) -> str:
    """What labgrid-client prints behind the first `key:`. Raises StorqualError without a default."""
    read = re.search(rf"^ *{key}: (.*)$", shown, re.MULTILINE)
    if read is None and default is None:
        raise StorqualError(f"labgrid-client says nothing of {key!r}")
    return read.group(1).strip() if read is not None else str(default)


def missing_resources(shown: str) -> str:
    """Which resources of an acquired place are not there; empty where all are."""
    away = re.findall(r"^Orphaned resource '[^'\n]*' \((.*)\)$", shown, re.MULTILINE)
    there = re.split(r"^Acquired resource '[^'\n]*' \((.*)\):$", shown, flags=re.MULTILINE)[1:]
    away += [path for path, text in zip(there[::2], there[1::2], strict=True) if "'avail': True" not in text]
    return f"{', '.join(away)} is not there" if away else "" if there else "it has no resource"
