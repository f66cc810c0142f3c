# SPDX-License-Identifier: Apache-2.0
r"""What a console and netconsole said, line by line with the time: how it is kept, read, and what of it matters.

A line of a recording is a time in UTC, a mark and bytes: `|` a line that the bench wrote, `~` one that came by
netconsole, `+` what was added to it later, `-` a note of the recorder. Bytes are kept as they came, but for the end
of the line; shown, they are text.
"""

import re
import socket
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from storqual.base.text import terminal_text
from storqual_core.host.kernel_log import classify

LOST = "did not come by netconsole: "
"""What the note begins with that says how many messages of the kernel are missing."""
_PORT = 6666
"""Where a kernel sends to unless it was told another one; frames of a virtual bench for others are not read."""
_REORDERED = 32
"""A number so far behind the last one was overtaken on its way."""
_US = 1_000_000
# [release,]level,number,microseconds,flags[,more];text
_EXTENDED = re.compile(rb"(?:[^,;\s]{1,64},)?[0-9]{1,4},([0-9]{1,20}),([0-9]{1,20}),[^;\n]{1,200};(.*)", re.DOTALL)


def datagram_of(frame: bytes) -> bytes:
    """What an Ethernet frame carries over IPv4 and UDP to netconsole's port; empty for any other frame."""
    packet = frame[14:]
    if frame[12:14] != b"\x08\x00" or len(packet) < 28 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_UDP:
        return b""
    udp = packet[4 * (packet[0] & 15) :]
    port, length = int.from_bytes(udp[2:4]), int.from_bytes(udp[4:6])
    # a kernel sends pieces that need not be cut on the way
    whole = not int.from_bytes(packet[6:8]) & 0x3FFF
    return udp[8:length] if port == _PORT and whole else b""


class NetconsoleText:
    """The text of datagrams in the order in which they came.

    Of the extended form also which messages did not come. They are no proof of a loss: a kernel sends none below its
    log level, and counts them.
    """

    def __init__(self) -> None:
        self._number, self._us = -1, 0

    def take(self, datagram: bytes) -> tuple[str, bytes]:
        """What is to be noted ahead of it, and its lines, each with its end."""
        match = _EXTENDED.fullmatch(datagram)
        note = "" if match is None else self._missing(int(match[1]), int(match[2]))
        # the time as the kernel writes it where it sends lines
        stamp = b"" if match is None else b"[%5d.%06d] " % divmod(int(match[2]), _US)
        text = (datagram if match is None else match[3]).rstrip(b"\n")
        return note, stamp + text + b"\n" if text else b""

    def _missing(self, number: int, us: int) -> str:
        last, boots = self._number, us + _US < self._us
        if not boots and last - _REORDERED < number <= last:
            return ""
        self._number, self._us = number, us
        missing = 0 if boots or last < 0 else number - last - 1
        return f"{LOST}{missing} messages ahead of number {number}" if missing > 0 else ""


SAID, NET, ADDED, NOTE = "|", "~", "+", "-"
BEGINS, ENDS = "recording begins: ", "recording ends: "
GAP = "gap: "
"""What the note begins with that says from when on nothing was heard."""
EXPECTED, NO_LONGER = "expected until ", "no longer expected"
"""What the notes begin with that open and close the time in which a panic is the test's own."""
_LONGEST = 4096
_LINE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([|~+-]) (.*)", re.DOTALL)

# colours, cursor moves and titles of boot loader and init
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_PANIC = re.compile(r"Kernel panic - not syncing")
_PANIC_END = re.compile(r"---\[ end Kernel panic")
# what the kernel prints ahead of a panic and belongs to it
_TROUBLE = re.compile(
    r"BUG:|Oops|general protection fault|Unable to handle kernel|VFS: Cannot open root|sysrq: |Call Trace:"
)
_BOOT = re.compile(r"---\[ end Kernel panic|\] Linux version \d")
_BEFORE, _AFTER = 60, 80


def plain_console(text: str) -> str:
    """Console text without escape sequences, one clean line each."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    # a bare return means that the line was drawn again: what stands at the end is what was seen last
    return "\n".join(line.rsplit("\r", 1)[-1] for line in text.rstrip("\r").split("\n"))


def panic_text(text: str) -> str:
    """The last kernel panic in console text with the trouble that led to it; "" when there is none."""
    lines = text.split("\n")
    panics = [number for number, line in enumerate(lines) if _PANIC.search(line) and not _PANIC_END.search(line)]
    if not panics:
        return ""
    at = panics[-1]
    first = at
    for number in range(at, max(-1, at - _BEFORE), -1):
        if number < at and _BOOT.search(lines[number]):
            break  # trouble of the boot before
        if _TROUBLE.search(lines[number]):
            first = number
    last = next(
        (number for number in range(at, min(len(lines), at + _AFTER)) if _PANIC_END.search(lines[number])),
        min(len(lines), at + _AFTER) - 1,
    )
    return "\n".join(lines[first : last + 1]).strip()


_PART = re.compile(r"\A\w+#(\d+) Part(\d+)\r?\n")


def joined_dumps(texts: Iterable[str]) -> str:
    """What pstore kept of a log in the order in which it was written: the last part of a dump has the number one."""
    parts = []
    for number, text in enumerate(texts):
        head = _PART.match(text)
        # whole logs stand behind parts, in their own order
        order = (int(head[1]), -int(head[2]), 0) if head else (1 << 30, 0, number)
        parts.append((order, text[head.end() :] if head else text))
    return "\n".join(text.rstrip("\n") for _, text in sorted(parts))


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """A line with the time of its first byte; `mark` is `SAID`, `NET`, or `NOTE` for one of the recorder's own."""

    at: str
    mark: str
    data: bytes

    @property
    def text(self) -> str:
        """The line as a person saw it; what could act on a terminal is written out."""
        return terminal_text(plain_console(self.data.decode("utf-8", "replace")))


class LineStamper:
    """Cuts what a console says into lines of a recording; `at` is the time of what is taken."""

    def __init__(self, mark: str = SAID) -> None:
        self._mark, self._rest = mark, b""
        self._begun = False

    def take(self, data: bytes, at: str) -> bytes:
        """The recording of all lines that are whole now; the rest is kept back."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        recording = b""
        for line in whole:
            recording += self._line(line, at)
            self._begun = False
        while len(self._rest) > _LONGEST:
            recording += self._line(self._rest[:_LONGEST], at)
            self._rest = self._rest[_LONGEST:]
            self._begun = True
        return recording

    def rest(self, at: str) -> bytes:
        """What was kept back, for a line that does not end: a prompt, or the last thing that was said."""
        if not self._rest:
            return b""
        recording, self._rest = self._line(self._rest, at), b""
        self._begun = True
        return recording

    def note(self, text: str, at: str) -> bytes:
        """A line of the recorder's own; what was kept back stands before it."""
        before, self._begun = self.rest(at), False
        return before + f"{at} {NOTE} {terminal_text(text)}\n".encode()

    def _line(self, data: bytes, at: str) -> bytes:
        """In pieces, so that no line of a recording is longer than its reader takes."""
        pieces = b""
        for begin in range(0, max(1, len(data)), _LONGEST):
            mark = ADDED if self._begun else self._mark
            pieces += f"{at} {mark} ".encode() + data[begin : begin + _LONGEST] + b"\n"
            self._begun = True
        return pieces


def read_recording(data: bytes) -> Iterator[ConsoleLine]:
    """The lines of a recording; one that is torn or damaged is taken as it stands, with the time before it."""
    last: ConsoleLine | None = None
    at = ""
    for line in data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n"):
        match = _LINE.fullmatch(line)
        at, mark, message = (match[1].decode(), match[2].decode(), match[3]) if match else (at, SAID, line)
        if mark == ADDED and last is not None and last.mark != NOTE:
            last = replace(last, data=last.data + message)
            continue
        if last is not None:
            yield last
        last = ConsoleLine(at, SAID if mark == ADDED else mark, message)
    if last is not None and (data or last.data):
        yield last


def said_text(data: bytes, by: str = SAID) -> str:
    """What the bench said in a recording on its console, or by netconsole, as clean text."""
    lines = (line.data for line in read_recording(data) if line.mark == by)
    return plain_console(b"\n".join(lines).decode("utf-8", "replace"))


@dataclass(frozen=True)
class ConsoleTrouble:
    """A panic, or another fault that the kernel found in itself, with at most 40 lines of it.

    `kind` is `panic` or one of the kernel log's; `drivers` are those that the lines name, the likeliest first;
    `expected` says for what it was provoked, empty where nobody did.
    """

    at: str
    kind: str
    headline: str
    drivers: tuple[str, ...]
    lines: tuple[str, ...]
    expected: str = ""


MOST_LINES = 40
PANIC = "panic"
_SERIOUS = ("kernel_bug", "hung_task")
_WORTH = re.compile(
    r"BUG|Oops|panic|INFO: |watchdog|rcu|protection fault|unable to handle|Call Trace|lockup|blocked for",
    re.IGNORECASE,
)
_FAR = 150
"""Lines between two that belong to one trouble."""
_ENDS = 30
"""Lines that are shown of a trouble that no line ends."""
_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[[^\]]{1,12}\])? ?")
_REGISTERS = re.compile(
    r"^(?:RAX|RDX|RBP|RSP|R\d\d|FS|CS|CR\d|DR\d|PKRU|EAX|ESI|DS|Code|Modules linked in|pc :|sp :|x\d+ ?:|Stack:)"
    r"|^ \? |^\s*\?"
)
_MODULE = re.compile(r"\+0x[0-9a-f]+/0x[0-9a-f]+ \[([A-Za-z0-9_]+)")
_LAYERS = frozenset(
    {"scsi_mod", "sd_mod", "libata", "dm_mod", "md_mod", "nvme_core", "scsi_transport_sas", "scsi_transport_fc"}
)
"""Modules that stand between a driver and what it is asked for; they are named after the drivers."""


def console_troubles(
    lines: Sequence[ConsoleLine], drivers: Collection[str] = (), by: str = SAID
) -> list[ConsoleTrouble]:
    """All troubles of a console or of netconsole, in order; `drivers` are the bench's, known by their names too."""
    texts = [line.text if line.mark == by else "" for line in lines]
    windows = list(_windows(lines))
    troubles: list[ConsoleTrouble] = []
    for first, last in _groups(texts):
        excerpt = texts[first : last + 1]
        panic = next((text for text in excerpt if _PANIC.search(text) and not _PANIC_END.search(text)), "")
        kind = PANIC if panic else next(filter(None, map(_serious, excerpt)))
        headline = _unstamped(panic or excerpt[0])
        at = lines[first].at
        named = named_drivers(excerpt, drivers)
        expected = next((why for since, until, why in windows if since <= at <= until), "")
        troubles.append(ConsoleTrouble(at, kind, headline, named, _that_matter(excerpt), expected))
    return troubles


def _windows(lines: Iterable[ConsoleLine]) -> Iterator[tuple[str, str, str]]:
    """Since when, until when, and why a panic was expected."""
    opened: tuple[str, str, str] | None = None
    for line in lines:
        if line.mark != NOTE:
            continue
        if opened is not None and line.text.startswith((NO_LONGER, EXPECTED)):
            yield opened[0], min(opened[1], line.at), opened[2]
            opened = None
        if line.text.startswith(EXPECTED):
            until, _, why = line.text.removeprefix(EXPECTED).partition(": ")
            opened = line.at, until, why
    if opened is not None:
        yield opened


def _serious(text: str) -> str:
    if _PANIC.search(text) and not _PANIC_END.search(text):
        return PANIC
    kind = classify(text) if _WORTH.search(text) else None
    return kind if kind in _SERIOUS else ""


def _groups(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last line of each trouble: to the end of its panic, to the next boot, or some lines further."""
    number = 0
    while number < len(texts):
        if not _serious(texts[number]):
            number += 1
            continue
        first = last = number
        end = -1
        for at in range(first + 1, min(len(texts), first + _LONGEST)):
            if _PANIC_END.search(texts[at]):
                end = at
            elif _BOOT.search(texts[at]):
                end = min(last + _ENDS, at - 1)
            elif _serious(texts[at]):
                last = at
            if end >= 0 or at > last + _FAR:
                break
        end = min(last + _ENDS, len(texts) - 1) if end < 0 else end
        yield first, end
        number = end + 1


def _unstamped(text: str) -> str:
    return _STAMP.sub("", text, count=1).strip()


def named_drivers(texts: Iterable[str], drivers: Collection[str]) -> tuple[str, ...]:
    """Modules of the frames of a trace in their order, then drivers of the bench that are only spoken of."""
    listed = list(texts)
    modules = [name for text in listed for name in _MODULE.findall(text)]
    spoken = [
        name for text in listed if not _REGISTERS.match(_unstamped(text)) for name in drivers if _speaks(name, text)
    ]
    ordered = dict.fromkeys([*modules, *spoken])
    return tuple(sorted(ordered, key=lambda name: (name in _LAYERS, name not in modules)))


def _speaks(driver: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(driver)}(?:_cm)?\d*\b", text) is not None


def _that_matter(texts: Sequence[str]) -> tuple[str, ...]:
    """At most 40 lines: without registers and doubtful frames, and then without a part of the middle."""
    kept = [text for text in texts if text.strip()]
    if len(kept) > MOST_LINES:
        kept = [text for text in kept if not _REGISTERS.match(_unstamped(text))]
    if len(kept) > MOST_LINES:
        ahead, behind = MOST_LINES - 11, 10
        kept = [*kept[:ahead], f"... {len(kept) - ahead - behind} lines ...", *kept[-behind:]]
    return tuple(kept)


def last_lines_before(lines: Sequence[ConsoleLine], at: str) -> tuple[str, ...]:
    """The last 40 lines that were said until `at`: what is there of a bench that fell silent."""
    ways = [[line.text for line in lines if line.mark == by and line.at <= at] for by in (SAID, NET)]
    return tuple([text for text in ways[0] or ways[1] if text.strip()][-MOST_LINES:])


def lost_messages(lines: Iterable[ConsoleLine]) -> int:
    """How many messages of the kernel did not come by netconsole."""
    notes = (
        line.text.removeprefix(LOST).split() for line in lines if line.mark == NOTE and line.text.startswith(LOST)
    )
    return sum(int(words[0]) for words in notes if words and words[0].isascii() and words[0].isdecimal())


def gaps(lines: Iterable[ConsoleLine]) -> list[ConsoleLine]:
    """The notes of the recorder that nothing was heard for a while."""
    return [line for line in lines if line.mark == NOTE and line.text.startswith(GAP)]


def utc_stamp(seconds: float) -> str:
    """A time since 1970 as lines of a recording have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
