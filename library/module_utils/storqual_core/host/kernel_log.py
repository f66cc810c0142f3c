# SPDX-License-Identifier: Apache-2.0
"""The kernel's log around a launch: markers, the records between them, and rules that sort its lines into findings.

A line is of the first kind of which a rule fits, most telling first; a bench's own rules come before the shipped
ones. What a network driver says, or USB, graphics and the like, is no trouble of an adapter here. Lines of no kind
are kept as log, they are no finding. A stamp of dmesg or syslog in front of a line is no part of it, and a line that
fits no rule as it is written is read again in one spelling (`timed-out` is `timed out`).

The last kind, unclassified, is a net below the rules: a storage driver or layer uses a word of trouble. It is shown
and is no reason to doubt a launch, unless the gate policy requires it.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain, product
from typing import Any, Iterable, Mapping, Pattern, Sequence, Tuple

from ..data import read_table

try:
    from re import _parser  # type: ignore[attr-defined] # Python 3.11
except ImportError:
    import sre_parse as _parser

KINDS: Mapping[str, str] = {
    "kernel_bug": "the kernel found a fault in itself",
    "memory_short": "the kernel ran out of memory",
    "hung_task": "a task waited too long",
    "aer": "PCI Express or machine-check error",
    "file_system_error": "a file system reported an error",
    "adapter_reset": "an adapter or link was reset",
    "task_abort": "commands were aborted",
    "timeout": "commands timed out",
    "medium_error": "a drive could not read or write its medium",
    "sense_error": "a drive reported an error",
    "device_removed": "a device went away",
    "md_degraded": "an array lost a member or is not whole",
    "path_failed": "a path to a drive failed",
    "link_event": "a link or a port went down or up",
    "adapter_fault": "an adapter reported a fault of its own",
    "io_error": "I/O failed",
    "unclassified": "a storage driver or layer reported trouble that no rule knows",
}
"""Kinds of findings with their meaning, the most serious first."""

SEVERITIES = ("error", "warning", "none")
"""error: a reason to doubt a launch; warning: shown only; none: an ordinary line, whatever other rules match.

A rule of kind unclassified and severity none only says that the words of a line are no trouble (`timeout set to 30
seconds`): it hides no line that another rule knows.
"""

UNCLASSIFIED = "unclassified"

_MOST = 200
_LONGEST = 400
_MOST_TRIES = 1 << 17
"""Ways in which the repetitions between two `.*` of a bench's own rule may share a line of 2 KiB among them."""
_UNBOUNDED = 1 << 12
_MOST_COUNTED = 40
"""Repetitions, and the power of two of ways, beyond which no more are counted."""


@dataclass(frozen=True)
class LogRule:
    """Lines that match `pattern` (a regular expression, without regard to case) are of `kind`; `example` is one.

    `driver` prints them, in the kernel versions `kernels` (`4.9-`, `-5.13`; empty: all that are known); `source` says
    where that is known from.
    """

    kind: str
    pattern: str
    example: str
    driver: str = ""
    severity: str = "error"
    kernels: str = ""
    source: str = ""


class LinePatterns:
    """Regular expressions, of which one must fit a line.

    Each is cut at every `.*` outside of brackets, and its parts are searched one behind the other. To search it as a
    whole would take the square of a line, because each place where it begins to fit is tried with the whole rest.
    One is searched, and compiled, only where a line has a text that it needs: most lines need no search at all.
    Raises re.error.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._sequences = [parts for pattern in patterns for parts in cut_pattern(pattern)]
        self._compiled: dict[int, list[Pattern[str]]] = {}
        by_text: dict[str, list[int]] = {}
        self._always: list[int] = []
        for number, parts in enumerate(self._sequences):
            needed = max((_needed(_parser.parse(part)) for part in parts), key=_telling)
            for text in needed:
                by_text.setdefault(text, []).append(number)
            self._always += [] if needed else [number]
        self._by_text = list(by_text.items())

    def fits(self, line: str) -> bool:
        folded = line.casefold()
        numbers = {*self._always}.union(*[indices for text, indices in self._by_text if text in folded])
        return any(_in_order(self._parts(number), line) for number in numbers)

    def _parts(self, number: int) -> list[Pattern[str]]:
        if number not in self._compiled:
            self._compiled[number] = [re.compile(part, re.IGNORECASE) for part in self._sequences[number]]
        return self._compiled[number]


def _in_order(parts: Sequence[Pattern[str]], line: str) -> bool:
    behind = 0
    for part in parts:
        match = part.search(line, behind)
        if match is None:
            return False
        behind = match.end()
    return True


def _needed(tree: Any) -> tuple[str, ...]:  # noqa: ANN401 - of a module without types
    """Texts of which one is, but for its case, in every line that a parsed expression fits; empty for any line."""
    groups: list[tuple[str, ...]] = [()]
    text = ""
    for operation, argument in tree:
        name = str(operation)
        if name == "LITERAL":
            text += chr(argument).casefold()
            continue
        if name in {"AT", "ASSERT", "ASSERT_NOT"}:
            continue
        groups.append((text,))
        text = ""
        if name in {"SUBPATTERN", "ATOMIC_GROUP"}:
            groups.append(_needed(argument[-1] if name == "SUBPATTERN" else argument))
        elif name.endswith("REPEAT") and argument[0]:
            groups.append(_needed(argument[2]))
        elif name == "BRANCH":
            branches = [_needed(branch) for branch in argument[1]]
            groups.append(tuple(chain.from_iterable(branches)) if all(branches) else ())
    groups.append((text,))
    return max((texts for texts in groups if all(texts)), key=_telling)


def _telling(texts: tuple[str, ...]) -> tuple[int, int]:
    """How few lines have one of these texts: the longer the shortest, the fewer."""
    return min(map(len, texts), default=0), -len(texts)


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\.\*\??|.", re.DOTALL)


def cut_pattern(pattern: str) -> list[list[str]]:
    """The alternatives of a pattern, each as its parts between `.*`; what is in brackets stays whole."""
    alternatives, depth = [[""]], 0
    for piece in _PIECE.findall(pattern):
        depth += (piece == "(") - (piece == ")")
        if depth == 0 and piece == "|":
            alternatives.append([""])
        elif depth == 0 and piece.startswith(".*"):
            alternatives[-1].append("")
        else:
            alternatives[-1][-1] += piece
    return alternatives


def repetition_problem(parts: Iterable[str], longest: int = _UNBOUNDED, most: int = _MOST_TRIES) -> str:
    """Why regular expressions are none, or may take longer than a text of `longest` characters calls for.

    Empty when none of them takes more than `most` ways to share a text among its repetitions.
    """
    try:
        tries = [_tries(_parser.parse(part), longest) for part in parts]
    except (re.error, RecursionError, OverflowError) as problem:
        return str(problem)
    if 0 in tries:
        return "found a repetition within another one; write it without"
    return "its repetitions can take too long; bound them, such as \\d{1,9}" if max(tries) > most else ""


def _tries(tree: Any, longest: int, *, inside: bool = False) -> int:  # noqa: ANN401 - of a module without types
    """In how many ways a parsed expression can share what it fits; 0 where a repetition can do so each time anew.

    A repetition does so in as many ways as it has lengths, alternatives unless they begin with different letters.
    """
    ways = 1
    for operation, argument in tree:
        name = str(operation)
        if name.endswith("REPEAT"):
            fewest, most, inner = argument
            varies = fewest != most
            ways *= 0 if varies and inside else max(2, min(most, longest)) if varies else 1
            ways *= _tries(inner, longest, inside=inside or (varies and most > 1)) ** min(most, _MOST_COUNTED)
        elif name == "BRANCH":
            counted = [_tries(branch, longest, inside=inside) for branch in argument[1]]
            firsts = [part[0] for part in argument[1] if len(part)]
            begins = {chr(letter).casefold() for kind, letter in firsts if str(kind) == "LITERAL"}
            apart = len(begins) == len(counted)
            ways *= 0 if not all(counted) or (inside and not apart) else max(counted) if apart else sum(counted)
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
            ways *= _tries(argument[-1], longest, inside=inside)
        elif name == "ATOMIC_GROUP":
            ways *= _tries(argument, longest, inside=inside)
        elif name == "GROUPREF_EXISTS":
            ways = 0
        ways = min(ways, 1 << _MOST_COUNTED)
    return ways


@lru_cache(maxsize=1)
def shipped_rules() -> tuple[LogRule, ...]:
    """The rules of `data/kernel_log.json`. Raises StorqualError where it is not shipped."""
    return tuple(LogRule(**row) for row in read_table("kernel_log")["rules"])


def read_rules(entries: object, where: str, problems: list[str]) -> tuple[LogRule, ...]:
    """A bench's own rules from lists and mappings; everything that is wrong with them is added to `problems`."""
    if entries is None:
        return ()
    if not isinstance(entries, Sequence) or isinstance(entries, str) or len(entries) > _MOST:
        problems.append(f"{where}: found no list of at most {_MOST} rules")
        return ()
    rules = []
    for number, entry in enumerate(entries):
        place = f"{where}[{number}]"
        if not isinstance(entry, Mapping):
            problems.append(f"{place}: found {str(entry)[:60]!r}, expected a mapping")
            continue
        wrong = _wrong(entry)
        problems += [f"{place}: {problem}" for problem in wrong]
        if not wrong:
            rules.append(LogRule(**{str(name): str(value) for name, value in entry.items()}))
    return tuple(rules)


def _wrong(entry: Mapping[object, object]) -> list[str]:
    """What is wrong with one rule; its example must be one."""
    known = {each.name for each in fields(LogRule)}
    problems = [f"found {name!r}, expected one of {', '.join(sorted(known))}" for name in entry if name not in known]
    problems += [f"no {name} is given" for name in ("kind", "pattern", "example", "source") if not entry.get(name)]
    problems += [f"{name}: found no text" for name, value in entry.items() if not isinstance(value, str)]
    if problems:
        return problems
    if entry["kind"] not in KINDS:
        problems.append(f"kind: found {entry['kind']!r}, expected one of {', '.join(KINDS)}")
    if entry.get("severity", "error") not in SEVERITIES:
        problems.append(f"severity: found {entry['severity']!r}, expected one of {', '.join(SEVERITIES)}")
    pattern = str(entry["pattern"])
    if len(pattern) > _LONGEST:
        return [*problems, f"pattern: found {len(pattern)} characters, expected at most {_LONGEST}"]
    wrong = repetition_problem(chain.from_iterable(cut_pattern(pattern)))
    if wrong:
        return [*problems, f"pattern: {wrong}"]
    try:
        fits = LinePatterns([pattern]).fits(str(entry["example"]))
    except (re.error, RecursionError, OverflowError) as problem:
        return [*problems, f"pattern: {problem}"]
    return problems if fits else [*problems, "the example does not fit the pattern"]


MARKER = "storqual: "
_EVIDENCE_LINES = 5
_LONGEST_END = 1024
"""Characters. The kernel cuts what it is given to fewer (LOG_LINE_MAX, PRINTKRB_RECORD_MAX in kernel/printk), so a
line of two such ends is no record; a rule may cost the square of what it looks at."""
_OF_ANY_DRIVER = ("kernel_bug", "memory_short", "hung_task", "aer")
_OTHERS = re.compile(
    r"^(?:e100(?:0e?)?|igb|igbvf|igc|ixgbe\w*|i40e|iavf|ice|mlx[45]_\w+|bnx2x?|bnxt_en|tg3|r816[89]|r8152|be2net|cxgb\d?|"
    r"qede?|qlcnic|netxen_nic|sfc|enic|vmxnet3|virtio_net|atlantic|forcedeth|sky2|ena|hns3|nfp|mana|hv_netvsc|ionic|"
    r"stmmac\w*|hinic\w*|liquidio\w*|octeon\w*|txgbe|ngbe|ath\d+k\w*|mt7\w+|rtw\w*|brcm\w+|rdma_\w+|infiniband)\b"
    r"|^\S+ [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]:? (?:eth\d|en[opsx]\w|wl[opsx]\w)"
    r"|^NETDEV WATCHDOG\b|^(?:eth\d+|en[opsx]\w+|bond\d+|br\d+|virbr\d+|wl[opsx]\w+|wlan\d+)\b"
    r"|^(?:usb|xhci_hcd|[eou]hci\S*|hub|i2c\S*|i915|amdgpu|radeon|nouveau|nvidia|\[drm\S*|snd_\w+|iwlwifi|Bluetooth"
    r"|mei_me|ipmi\w*|IPMI|thunderbolt|tpm\w*|kvm\S*|ACPI|PM|nfs|RPC|audit|(?:Kernel )?command line|CIFS|(?:lib)?ceph"
    r"|ast|mgag200|i801_smbus|ucsi\w*|hid\S*|uvcvideo|ccp)[ :]"
    # a program that writes to the log: `systemd[1]: `; the drivers of MegaRAID and bfa count their cards so
    r"|^(?!mega|bfad)[a-z][\w.@-]*\[\d+\]: ",
    re.IGNORECASE,
)
# `[   12.345678] `, `[Wed Oct 16 01:13:11 2024] `, `[Oct16 01:13] `, `[  +0,000102] `,
# `Oct 16 01:13:11 host kernel: `, `2024-10-16T01:13:11,123456+02:00 `, `kernel: [   12.345678] `, `<4>`, `[  T123]`;
# months in any language
_SECONDS = r"\[(?: *\+? *\d+[.,]\d{3,6}(?: <[ +]*\d+[.,]\d{6}>)?"
_STAMP = re.compile(
    r"^\s*(?:<\d{1,3}>)?(?:[^\W\d]{3,4}\.? [ \d]?\d \d\d:\d\d:\d\d(?:[.,]\d+)? +(?:\S+ )?(?:kern\.\w+ )?kernel: "
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\s(?:\S+ kernel: )?)?(?:<\d{1,3}>)?"
    rf"(?:{_SECONDS}| *[TC]\d+|(?:[A-Z][a-z]{{2}} )?[A-Z][a-z]{{2}} ?[ \d]\d [\d:]{{5,8}}(?: \d{{4}})?"
    r"|[^\W\d]{2,3}\.?,? [ \d]?\d\.? [^\W\d]{3,4}\.? \d{4},? \d\d:\d\d:\d\d)\] ?){0,2}"
    rf"(?:(?:\S+ )?kernel: (?:{_SECONDS})\] ?)?)?"
)
_LOG_INFO = re.compile(r"\blog_?info\(0x(?P<value>[0-9a-f]{8})\)", re.IGNORECASE)
# drivers/message/fusion/lsi/mpi_log_sas.h: four bits of bus type (3 is SAS), four of originator, then the code
_ORIGINATORS = {0: "IOP", 1: "PL", 2: "IR"}
_CODES = {
    (0, 0x01): "invalid SAS address",
    (0, 0x03): "invalid configuration page",
    (0, 0x04): "diagnostic message error",
    (0, 0x05): "task terminated",
    (1, 0x01): "open failure",
    (1, 0x04): "frame transfer error",
    (1, 0x08): "all queued commands of a SATA drive failed after an error",
    (1, 0x0D): "SATA link down",
    (1, 0x11): "reset",
    (1, 0x12): "abort",
    (1, 0x13): "I/O not yet executed",
    (1, 0x14): "I/O executed",
    (1, 0x16): "open or transmit aborted",
    (1, 0x17): "I/O retried while a device is missing",
    (1, 0x18): "I/O cancelled after a receive error",
}


@dataclass(frozen=True)
class Finding:
    """One kind of trouble at one severity (error or warning): the number of lines, and the first few of them."""

    kind: str
    severity: str
    count: int
    lines: tuple[str, ...]

    def sentence(self) -> str:
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        decoded = decode_log_info(self.lines[0])
        return f"kernel log: {KINDS[self.kind]}: {self.lines[0]}{f' [{decoded}]' if decoded else ''}{more}"


def decode_log_info(line: str) -> str:
    """`originator PL, code 0x11 (reset), sub-code 0x0d00` of a line with a SAS log_info word; empty for any other."""
    match = _LOG_INFO.search(line)
    value = int(match.group("value"), 16) if match else 0
    if value >> 28 != 3:
        return ""
    originator, code = value >> 24 & 0xF, value >> 16 & 0xFF
    meaning = _CODES.get((originator, code))
    return (
        f"originator {_ORIGINATORS.get(originator, originator)}, code 0x{code:02x}"
        f"{f' ({meaning})' if meaning else ''}, sub-code 0x{value & 0xFFFF:04x}"
    )


Found = Tuple[str, str]
"""Kind and severity of a line."""
_ORDINARY = ("", "none")


class _Patterns:
    """Rules compiled: what is ordinary, and one expression for each kind and severity, the most serious first."""

    def __init__(self, rules: tuple[LogRule, ...]) -> None:
        def of(severity: str, kinds: Iterable[str]) -> LinePatterns | None:
            patterns = [rule.pattern for rule in rules if rule.severity == severity and rule.kind in kinds]
            return LinePatterns(patterns) if patterns else None

        self.ordinary = of("none", KINDS.keys() - {UNCLASSIFIED})
        self.harmless = of("none", {UNCLASSIFIED})
        ranked = [(kind, severity, of(severity, {kind})) for severity, kind in product(SEVERITIES[:-1], KINDS)]
        self.findings = [(kind, severity, patterns) for kind, severity, patterns in ranked if patterns is not None]

    def find(self, stamped: str, spellings: Sequence[str], kinds: Iterable[str]) -> Found | None:
        """What a line is by these rules, `_ORDINARY` for a line of no interest, None where they do not know it.

        An ordinary line may be one by its stamp: what a drive tells while the bench is booted.
        """
        if self.ordinary is not None and any(self.ordinary.fits(text) for text in {stamped, *spellings}):
            return _ORDINARY
        finding = None
        for text in spellings:
            for kind, severity, patterns in self.findings:
                if kind in kinds and patterns.fits(text):
                    if kind != UNCLASSIFIED:
                        return kind, severity
                    finding = kind, severity
        return finding


# compiled when the kernel first logs something
_compiled = lru_cache(maxsize=8)(_Patterns)


def _ends(text: str) -> str:
    """The beginning and the end of a line that is longer than any that the kernel writes."""
    if len(text) <= 2 * _LONGEST_END:
        return text
    return f"{text[:_LONGEST_END]} {text[-_LONGEST_END:]}"


def classify(text: str, own: tuple[LogRule, ...] = ()) -> str | None:
    """The kind of trouble that one line of the log is about; None for an ordinary line or one of our own markers.

    `own` are a bench's rules: they decide before the shipped ones. Of a line of more than 2 KiB its two ends count.
    """
    finding = _kind_and_severity(text, own, shipped_rules())
    return finding[0] if finding else None


_SPELLINGS = (
    (re.compile(r"\s+"), " "),
    # `]FAILED`, `0:0:0:0:[sda]`
    (re.compile(r"(?<=[\])}])(?=[A-Za-z\[({])|(?<=:)(?=\[)"), " "),
    (re.compile(r"\btimed[-_]?out", re.IGNORECASE), "timed out"),
    (re.compile(r"\btime[- _]out", re.IGNORECASE), "timeout"),
    (re.compile(r"(?<=[A-Za-z])-(?=[A-Za-z])"), " "),
)


def _spelled(text: str) -> str:
    """A line in the one spelling that rules are read with where they do not fit it as it is written."""
    for variant, spelling in _SPELLINGS:
        text = variant.sub(spelling, text)
    return text


def _kind_and_severity(text: str, own: tuple[LogRule, ...], shipped: tuple[LogRule, ...]) -> Found | None:
    stamped = _ends(text)
    plain = _STAMP.sub("", stamped, count=1)
    if plain.startswith(MARKER):
        return None
    spelled = _spelled(plain)
    spellings = (plain,) if spelled == plain else (plain, spelled)
    sets = [_compiled(rules) for rules in ((own, shipped) if own else (shipped,))]
    finding = None
    for patterns in sets:
        others = patterns is sets[-1] and _OTHERS.search(plain) is not None
        finding = patterns.find(stamped, spellings, _OF_ANY_DRIVER if others else KINDS)
        if finding is not None:
            break
    if finding is not None and finding[0] == UNCLASSIFIED:
        harmless = [patterns.harmless for patterns in sets if patterns.harmless is not None]
        if any(patterns.fits(text) for patterns in harmless for text in spellings):
            return None
    return None if finding == _ORDINARY else finding


def find_all(
    lines: Iterable[str], own: tuple[LogRule, ...] = (), shipped: tuple[LogRule, ...] | None = None
) -> list[Finding]:
    """Findings in `lines`: each kind and severity once, errors first, in order of rank, with its first lines.

    `own` are a bench's rules, `shipped` the rules of the data file, for a process that cannot read it.
    """
    shipped = shipped_rules() if shipped is None else shipped
    evidence: dict[tuple[str, str], list[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for line in lines:
        for part in line.splitlines() or [""]:
            finding = _kind_and_severity(part, own, shipped)
            if finding is not None:
                counts[finding] = counts.get(finding, 0) + 1
                excerpts = evidence.setdefault(finding, [])
                if len(excerpts) < _EVIDENCE_LINES:
                    excerpts.append(part[:400])
    ranked = ((kind, severity) for severity, kind in product(SEVERITIES, KINDS))
    return [Finding(*finding, counts[finding], tuple(evidence[finding])) for finding in ranked if finding in counts]


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that are a reason to doubt a launch, or fail a check."""
    return [finding for finding in findings if finding.severity == "error"]


_HEAD = re.compile(r"([0-9]{1,9}),([0-9]{1,20}),(-?[0-9]{1,20}),[^;]*;(.*)\Z", re.DOTALL)
_DEVICE = "/dev/kmsg"
_MOST_RECORDS = 20000


@dataclass(frozen=True)
class Record:
    """One record: whether the kernel itself wrote it, syslog level (0 is worst), sequence number, time, text.

    The time is in microseconds since boot. Programs can write to this log too; what they say is no finding.
    """

    from_kernel: bool
    level: int
    sequence: int
    time_us: int
    text: str

    def line(self) -> str:
        return f"[{self.time_us // 1_000_000:5d}.{self.time_us % 1_000_000:06d}] {self.text}"


def parse_record(data: str) -> Record | None:
    r"""One record of /dev/kmsg (kernel Documentation/ABI/testing/dev-kmsg); None for something else.

    Lines after the first that begin with a blank are the record's dictionary (SUBSYSTEM=, DEVICE=) and are left out.
    The first may begin with one too: a device without a driver, as sessions, connections and remote ports are, says
    ` connection1:0: detected conn error (1020)`. Bytes that the kernel wrote as `\xhh` stay written so.
    """
    match = _HEAD.match(data)
    if match is None:
        return None
    first, *others = match.group(4).splitlines() or [""]
    text = "\n".join([first.lstrip(" "), *(line for line in others if not line.startswith(" "))]).rstrip()
    priority = int(match.group(1))
    return Record(priority >> 3 == 0, priority & 7, int(match.group(2)), int(match.group(3)), text)


class KernelLog:
    """Follows the kernel's log from the moment it is made; with `whole` from the oldest record it still holds.

    `reason` is empty when records can be read, else it says why not; `marker_reason` the same for writing markers.
    `overflowed` counts how often records were overwritten before they could be read: then the evidence has a hole.
    """

    def __init__(self, device: str = _DEVICE, *, whole: bool = False) -> None:
        self.reason = ""
        self.marker_reason = ""
        self.overflowed = 0
        self._handle = -1
        self._markers = -1
        try:
            self._handle = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._handle, 0, os.SEEK_SET if whole else os.SEEK_END)
        except OSError as problem:
            self._close_reader()
            self.reason = f"the kernel's log cannot be read: {device}: {problem.strerror}"
        try:
            self._markers = os.open(device, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as problem:
            self.marker_reason = f"no markers in the kernel's log: {device}: {problem.strerror}"

    def mark(self, text: str) -> None:
        """Write a marker for people who read the log; what belongs to a launch is known without it, by order."""
        if self._markers < 0:
            return
        try:
            os.write(self._markers, f"<5>storqual: {text}\n".encode("ascii", "replace")[:900])
        except OSError as problem:
            self.marker_reason = f"no markers in the kernel's log: {problem.strerror}"

    def read(self) -> list[Record]:
        """The records since the last call. Raises nothing; a log that cannot be read any more sets `reason`."""
        records: list[Record] = []
        while self._handle >= 0 and len(records) < _MOST_RECORDS:
            try:
                data = os.read(self._handle, 8192)
            except OSError as problem:
                if problem.errno == errno.EAGAIN:
                    break
                if problem.errno == errno.EPIPE:
                    self.overflowed += 1
                    continue
                if problem.errno == errno.EINTR:
                    continue
                self._close_reader()
                self.reason = f"the kernel's log cannot be read any more: {problem.strerror}"
                break
            if not data:
                break
            record = parse_record(data.decode("utf-8", "replace"))
            if record is not None:
                records.append(record)
        return records

    def close(self) -> None:
        self._close_reader()
        if self._markers >= 0:
            with suppress(OSError):
                os.close(self._markers)
            self._markers = -1

    def _close_reader(self) -> None:
        if self._handle >= 0:
            with suppress(OSError):
                os.close(self._handle)
            self._handle = -1


def texts(records: Iterable[Record]) -> list[str]:
    return [record.line() for record in records]
