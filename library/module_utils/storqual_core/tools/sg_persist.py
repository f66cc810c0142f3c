# SPDX-License-Identifier: Apache-2.0
"""sg_persist (sg3_utils): who is registered with a logical unit, and who holds a reservation of it (SPC-5, 5.13).

Only the reading half, `--in`: nothing is ever registered, reserved or cleared. Read from the program's documentation
and public outputs; its text is the same in 1.33 to 1.48.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line
from .sg3 import ask, succeeded

_TIMEOUT = 60.0
_NOT_KNOWN, _CONFLICT = (5, 9), 24
_KEYS = re.compile(
    r"PR generation=0x[0-9a-f]+, (?:(?P<none>there are NO)|(?P<count>\d{1,6})) registered reservation key"
)
_KEY = re.compile(r"^\s*(0x[0-9a-f]{1,16})\s*$")
_HELD = re.compile(r"PR generation=0x[0-9a-f]+, (?:(?P<none>there is NO reservation held)|Reservation follows:)")
_NAMED_KEY = re.compile(r"^\s*Key\s*=\s*(0x[0-9a-f]{1,16})\s*$")
_TYPE = re.compile(r"\bscope[:=].*?\btype[:=]\s*(?P<type>.+?)\s*$")
_STATUS = re.compile(r"PR generation=0x[0-9a-f]+\s*$", re.MULTILINE)
_HOLDER, _NO_HOLDER = "<< Reservation holder >>", "not reservation holder"
_ISCSI = re.compile(
    r"\biSCSI (?:name(?: and session id)?|world wide unique port id): (?P<name>\S+?)(?:,i,0x[0-9a-fA-F]+)?\s*$"
)
_SAS = re.compile(r"\bSAS address: (?P<name>0x[0-9a-f]{16})")
_FC = re.compile(r"\bFCP-2 World Wide Name:")
_BYTES = re.compile(r"^\s*(?:[0-9a-f]+\s+)?(?P<bytes>(?:[0-9a-f]{2}[ -]+){7}[0-9a-f]{2})\b")


@dataclass(frozen=True)
class Registrant:
    """A registration: key, port of the initiator (WWPN or iSCSI name; empty: not told), whether it holds."""

    key: str
    initiator: str = ""
    holder: bool = False
    kind: str = ""


@dataclass(frozen=True)
class Reservations:
    """Registrations of a logical unit and the type of its reservation, empty without one.

    `conflict`: the unit did not even answer, because another initiator holds it (RESERVE of SPC-2).
    """

    registrants: tuple[Registrant, ...] = ()
    kind: str = ""
    conflict: bool = False


def parse_keys(text: str) -> tuple[str, ...]:
    """`--read-keys`: the keys, one for each registration. Raises ToolError when they are not as many as it says."""
    head = _KEYS.search(text)
    if head is None:
        raise ToolError(f"sg_persist printed no keys: {first_line(text)}")
    rest = text[head.end() :].splitlines()[1:]
    keys = tuple(match.group(1) for match in map(_KEY.match, rest) if match)
    if len(keys) != int(head.group("count") or 0):
        raise ToolError(f"sg_persist says that {head.group('count') or 'no'} keys follow, and prints {len(keys)}")
    return keys


def parse_reservation(text: str) -> Registrant | None:
    """`--read-reservation`: key and type; None when nobody holds one. Raises ToolError."""
    head = _HELD.search(text)
    if head is None:
        raise ToolError(f"sg_persist printed no reservation: {first_line(text)}")
    if head.group("none"):
        return None
    lines = text[head.end() :].splitlines()
    key = next((match.group(1) for match in map(_NAMED_KEY.match, lines) if match), "")
    kind = next((match.group("type") for match in map(_TYPE.search, lines) if match), "")
    if not key or not kind:
        raise ToolError("sg_persist says that there is a reservation, and not which")
    return Registrant(key, holder=True, kind=kind)


def parse_status(text: str) -> tuple[Registrant, ...]:
    """`--read-full-status`: each registration with the port that made it. Raises ToolError."""
    head = _STATUS.search(text)
    if head is None:
        raise ToolError(f"sg_persist printed no status of registrations: {first_line(text)}")
    entries: list[Registrant] = []
    answers: list[bool] = []
    in_name = False
    for line in text[head.end() :].splitlines():
        key, name, kind = _NAMED_KEY.match(line), _ISCSI.search(line) or _SAS.search(line), _TYPE.search(line)
        if key:
            entries.append(Registrant(key.group(1)))
            answers.append(False)
        elif not entries:
            continue
        elif _HOLDER in line or _NO_HOLDER in line:
            entries[-1], answers[-1] = replace(entries[-1], holder=_HOLDER in line), True
        elif kind:
            entries[-1] = replace(entries[-1], kind=kind.group("type"))
        elif name:
            entries[-1] = replace(entries[-1], initiator=name.group("name"))
        elif in_name and (value := _BYTES.match(line)):
            entries[-1] = replace(entries[-1], initiator=printed_wwn(re.sub(r"[ -]", "", value.group("bytes"))))
        in_name = bool(_FC.search(line))
    if not all(answers):
        raise ToolError("sg_persist prints a registration, and not whether it holds the reservation")
    return tuple(entries)


def _ask(runner: Runner, what: str, device: str) -> Completed:
    return ask(runner, ["sg_persist", "--no-inquiry", "--in", f"--read-{what}", device], timeout=_TIMEOUT)


def read_reservations(runner: Runner, device: str) -> Reservations:
    """Who is registered with a logical unit; nobody with one that knows no persistent reservations.

    A target that does not tell who registered leaves the initiators empty. Raises ToolError.
    """
    ended = _ask(runner, "keys", device)
    if ended.rc == _CONFLICT:
        return Reservations(conflict=True)
    if ended.rc in _NOT_KNOWN:
        return Reservations()
    what = f"reservations of {device}"
    keys = parse_keys(succeeded(ended, what).stdout)
    if not keys:
        return Reservations()
    held = parse_reservation(succeeded(_ask(runner, "reservation", device), what).stdout)
    ended = _ask(runner, "full-status", device)
    if ended.rc in _NOT_KNOWN:
        registrants = tuple(Registrant(key, holder=held is not None and held.key == key) for key in keys)
    else:
        registrants = parse_status(succeeded(ended, what).stdout)
        if sorted(each.key for each in registrants) != sorted(keys):
            raise ToolError(f"the keys of {device} changed while they were read, or are told in two ways")
    return Reservations(registrants, held.kind if held else "")
