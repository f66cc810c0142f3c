# SPDX-License-Identifier: Apache-2.0
"""The kernel's log is read record by record; where it cannot be, the reason is told."""

import json
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.data import read_table
from storqual_core.host.kernel_log import (
    KINDS,
    UNCLASSIFIED,
    KernelLog,
    LinePatterns,
    LogRule,
    Record,
    classify,
    decode_log_info,
    errors_of,
    find_all,
    parse_record,
    read_rules,
    shipped_rules,
    texts,
)
from tests.support.log_lines import read_all, read_faults, read_ordinary


def test_a_record_is_level_number_time_and_text() -> None:
    """Its dictionary is left out; a program's record is told from the kernel's."""
    text = "6,339,5140900,-;NET: Registered PF_INET6\n SUBSYSTEM=net\n DEVICE=n3\n"
    assert parse_record(text) == Record(
        from_kernel=True, level=6, sequence=339, time_us=5140900, text="NET: Registered PF_INET6"
    )
    assert parse_record("13,340,5140999,-;storqual: launch begins") == Record(
        from_kernel=False, level=5, sequence=340, time_us=5140999, text="storqual: launch begins"
    )
    assert texts([Record(from_kernel=True, level=4, sequence=1, time_us=12_000_034, text="x")]) == [
        "[   12.000034] x"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "connection2:0: detected conn error (1020)",
        "rport-11:0-2: blocked FC remote port time out: removing target and saving binding",
    ],
)
def test_what_is_said_of_a_device_without_a_driver_begins_with_a_blank_and_is_no_dictionary(text: str) -> None:
    record = parse_record(f"3,1217,1217413759,-; {text}\n SUBSYSTEM=iscsi_connection\n DEVICE=+x\n")
    assert record is not None
    assert record.text == text


@given(st.text(max_size=200))
def test_any_text_is_a_record_or_nothing(text: str) -> None:
    record = parse_record(text)
    assert record is None or record.sequence >= 0


def test_what_may_not_be_read_has_a_reason(tmp_path: Path) -> None:
    """A bench without the permission measures all the same, and says so."""
    log = KernelLog(str(tmp_path / "kmsg"))
    log.mark("nobody hears this")
    assert log.read() == []
    assert log.reason == f"the kernel's log cannot be read: {tmp_path}/kmsg: No such file or directory"
    assert log.marker_reason.startswith("no markers in the kernel's log")
    log.close()


def may_write() -> bool:
    """Whether this user may write to the kernel's log."""
    log = KernelLog()
    log.close()
    return not log.reason and not log.marker_reason


@pytest.mark.skipif(not may_write(), reason="this user may not use /dev/kmsg")
def test_a_marker_is_found_again_and_is_not_the_kernels_own() -> None:
    log = KernelLog()
    log.mark("a test's marker")
    records = [record for record in log.read() if "a test's marker" in record.text]
    assert [(record.text, record.from_kernel) for record in records] == [("storqual: a test's marker", False)]
    assert not [record for record in log.read() if "a test's marker" in record.text]
    log.close()


RULES = shipped_rules()


def test_the_shipped_rules_are_held_to_what_a_bench_s_own_are() -> None:
    problems: list[str] = []
    rows = read_table("kernel_log")["rules"]
    # the shipped ones are more, and some are longer, than what a bench may bring
    read = [read_rules([row], "kernel_log.json", problems) for row in rows]
    # and a repetition without a bound is none that a hostile line can use: see below
    more = ("at most 400", "repetitions can take too long")
    assert [problem for problem in problems if not any(one in problem for one in more)] == []
    assert sum(map(len, read)) > 130


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_the_example_of_a_rule_fits_it_and_is_of_its_kind(rule: LogRule) -> None:
    assert re.search(rule.pattern, rule.example, re.IGNORECASE)
    assert classify(rule.example) == (None if rule.severity == "none" else rule.kind)
    assert rule.source


def hostile_lines(example: str, length: int) -> list[str]:
    """What begins to fit a rule again and again: beginnings and words of its example, and what repetitions like."""
    words = example.split()
    units = {f"{' '.join(words[:count])} " for count in range(1, len(words) + 1)}
    units |= {example[:count] for count in range(1, len(example))}
    units |= {word + end for word in words for end in ("", " ")}
    same = [first + char * length for char in "a1 :.-_[({x" for first in ("", f"{words[0]} ")]
    return [line[:length] for line in (*(unit * length for unit in sorted(units)), *same)]


def spent(rule: LinePatterns, line: str) -> float:
    start = time.process_time()
    rule.fits(line)
    return time.process_time() - start


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_no_line_costs_more_than_its_length(rule: LogRule) -> None:
    """Four times the length takes four times as long, and not sixteen; what takes less than 2 ms is not compared."""
    patterns = LinePatterns([rule.pattern])
    for line in hostile_lines(rule.example, 2048):
        taken = [(spent(patterns, line), spent(patterns, line[:512])) for _ in range(3)]
        assert min(whole for whole, _ in taken) < 0.002 or min(whole / part for whole, part in taken) < 10


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"\blpfc\d*\b.*Link (?:Up|Down).*DID:|other", "lpfc0: Link Down, Link Up, DID: 7"),
        (r"a[.*|]b.*c\.*d|x", "a|b c..d"),
        (r"a[]|]b", "a]b"),
        (r"a(?:b.*c|d)e.*?f", "ab---ce-f"),
        (r"\(.*\)", "( )"),
        (r"^a.*b$", "a-b"),
        ("", "anything"),
    ],
)
def test_a_rule_cut_at_any_text_fits_what_it_fits_as_a_whole(pattern: str, line: str) -> None:
    patterns = LinePatterns([pattern])
    for end in range(len(line) + 1):
        assert patterns.fits(line[:end]) == (re.search(pattern, line[:end], re.IGNORECASE) is not None)
    assert patterns.fits(line)


OWN = {"kind": "timeout", "pattern": r"^acme_sr: stuck", "example": "acme_sr: stuck", "source": "its own manual"}


def test_a_benchs_own_rules_decide_before_the_shipped_ones() -> None:
    problems: list[str] = []
    own = read_rules(
        [OWN, {**OWN, "pattern": "hard resetting link", "example": QUIET_ONE, "severity": "none"}], "r", problems
    )
    assert problems == []
    assert classify("acme_sr: stuck", own) == "timeout"
    assert classify(QUIET_ONE) == "adapter_reset"
    assert classify(QUIET_ONE, own) is None
    assert [finding.kind for finding in find_all(["acme_sr: stuck", QUIET_ONE], own)] == ["timeout"]


QUIET_ONE = "ata9: hard resetting link"


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("text", "found no list"),
        ([7], "expected a mapping"),
        ([{**OWN, "kind": "odd"}], "kind: found 'odd'"),
        ([{**OWN, "severity": "odd"}], "severity: found 'odd'"),
        ([{**OWN, "pattern": "("}], "pattern: missing"),
        ([{**OWN, "pattern": "x" * 401}], "at most 400"),
        ([{**OWN, "pattern": r"(a+)+b"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"(?:\w+ ?)*b"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"(?:x|(?:\d{1,9}){2,3})b"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"(?:a|aa)+b"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"(x)?(?(1)b|(?:a+)+c)"}], "a repetition within another one"),
        ([{**OWN, "pattern": r"(?:aa?){30}b"}], "can take too long"),
        ([{**OWN, "pattern": r"\d+\d+x"}], "can take too long"),
        ([{**OWN, "pattern": r"\w{1,99}\w{1,99}\w{1,99}x"}], "can take too long"),
        ([{**OWN, "example": "other"}], "the example does not fit the pattern"),
        ([{**OWN, "colour": "red"}], "found 'colour'"),
        ([{**OWN, "source": ""}], "no source is given"),
        ([{**OWN, "driver": 7}], "driver: found no text"),
    ],
)
def test_a_rule_that_is_wrong_is_told(entries: object, words: str) -> None:
    problems: list[str] = []
    assert read_rules(entries, "storqual_kernel_rules", problems) == ()
    assert words in problems[0]


def test_a_warning_is_shown_and_is_no_reason_to_doubt() -> None:
    lines = ["sd 1:0:0:1: alua: port group 01 state U non-preferred supports TolUsNA", "acme_sr: stuck", QUIET_ONE]
    problems: list[str] = []
    own = read_rules([{**OWN, "severity": "warning"}], "r", problems)
    assert [(finding.kind, finding.severity) for finding in find_all(lines, own)] == [
        ("adapter_reset", "error"),
        ("timeout", "warning"),
        ("path_failed", "warning"),
    ]
    assert [finding.kind for finding in errors_of(find_all(lines, own))] == ["adapter_reset"]


LINES = read_all()
TROUBLE = [(kind, line) for kind, line in LINES if kind != "none"]
ORDINARY = [line for kind, line in LINES if kind == "none"]


def test_each_kind_is_reported_once_with_its_lines() -> None:
    lines = [line for _, line in reversed(TROUBLE)] * 3 + ORDINARY
    found = find_all(lines)
    errors = errors_of(found)
    assert [finding.kind for finding in errors] == [kind for kind in KINDS if kind in dict(TROUBLE)][:-1]
    assert [finding.severity for finding in found if finding.kind == UNCLASSIFIED] == ["warning"]
    bug = found[0]
    assert bug.count == 3 * sum(kind == "kernel_bug" for kind, _ in TROUBLE)
    assert len(bug.lines) == 5
    assert bug.sentence().startswith("kernel log: the kernel found a fault in itself: ")
    assert bug.sentence().endswith(f"(and {bug.count - 1} more)")


@given(st.lists(st.sampled_from([line for _, line in TROUBLE] + ORDINARY)))
def test_counts_add_up_and_order_does_not_matter(lines: list[str]) -> None:
    found = find_all(lines)
    assert sum(finding.count for finding in found) == sum(classify(line) is not None for line in lines)
    counts = {(finding.kind, finding.severity): finding.count for finding in found}
    assert counts == {(other.kind, other.severity): other.count for other in find_all(reversed(lines))}


@given(st.text())
def test_any_text_has_at_most_one_kind(text: str) -> None:
    assert classify(text) is None or classify(text) in KINDS
    assert classify("storqual: " + text) is None


@pytest.mark.parametrize(
    "stamp",
    [
        *("[  906.104104] ", "[  906.104104][  T123] ", "<3>[  906.104104] ", "[Wed Oct 16 01:13:11 2024] "),
        *("Apr  7 21:20:42 bench1 kernel: ", "Apr 27 21:20:42 bench1 kernel: [  906.104104] "),
        *("2026-11-19T05:18:11.573Z bench1 kernel: ", "Jun 20 13:54:03 bench1 kern.warn kernel: "),
        *("[    1.277602] bench1 kernel: ", "kernel: [  868.435387] ", "[Jul 6 09:19] ", "[Jul16 09:19] "),
        *("[ +10,204216] ", "[  906.104104 <    0.000012>] ", "2024-05-01T10:11:12,123456+02:00 "),
        "2016-12-12 17:08:32\t",
        *("mrt 17 20:55:15 bench1 kernel: ", "Okt. 17 20:55:15 bench1 kernel: "),
        *("fév 17 20:55:15 bench1 kernel: ", "    [  906.104104] ", "[92903.774] "),
        "[Mi, 16. Okt 2024, 01:13:11] ",
    ],
)
def test_a_stamp_in_front_of_a_line_is_no_part_of_it(stamp: str) -> None:
    assert classify(stamp + "XFS (sdb1): log mount failed") == "file_system_error"
    assert classify(stamp + "megasas: [ 5]waiting for 1 commands to complete") == "adapter_reset"
    assert classify(stamp + "ixgbe 0000:03:00.0 eth0: Reset adapter") is None
    assert classify(stamp + "storqual: adapter reset") is None


@pytest.mark.parametrize("name", ["mpt2sas0", "mpt2sas_cm0", "mpt3sas_cm1"])
def test_a_log_info_word_is_decoded(name: str) -> None:
    line = f"{name}: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)"
    assert classify(line) == "task_abort"
    assert decode_log_info(line) == "originator PL, code 0x11 (reset), sub-code 0x0d00"
    assert decode_log_info("ioc0: LogInfo(0x30030101)") == (
        "originator IOP, code 0x03 (invalid configuration page), sub-code 0x0101"
    )
    assert decode_log_info("log_info(0x41110d00)") == ""
    assert find_all([line])[0].sentence().endswith("[originator PL, code 0x11 (reset), sub-code 0x0d00]")


def _spent(line: str) -> float:
    start = time.process_time()
    classify(line)
    return time.process_time() - start


@pytest.mark.parametrize("word", ["lpfc ", "hpsa ", "sd ", "1", " ", "[", "a.", "mpt3sas "])
def test_a_line_of_twice_the_length_does_not_take_four_times_as_long(word: str) -> None:
    """What a rule looks at is bounded: the kernel's own lines are, and what else is in a log may have any length."""
    classify("the rules are compiled when they are first needed")
    lines = [(word * length)[:length] for length in (50_000, 100_000)]
    assert min(_spent(lines[1]) / max(_spent(lines[0]), 1e-6) for _ in range(3)) < 3


@pytest.mark.parametrize(
    "word", ["nvme nvme1: ", "mpt3sas_cm0: ", "sas: ", "qla2xxx [0000:3b:00.0]-5032:3: ", "error-"]
)
def test_a_hostile_line_costs_milliseconds(word: str) -> None:
    classify("the rules are compiled when they are first needed")
    assert min(_spent((word * 2048)[:2048]) for _ in range(3)) < 0.02


@pytest.mark.parametrize("length", [0, 900, 2000, 5000, 1_000_000])
def test_trouble_at_either_end_of_a_long_line_is_found(length: int) -> None:
    trouble = "sd 0:0:0:0: [sda] tag#1 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK"
    kind = classify(trouble)
    assert kind is not None
    assert classify(f"{trouble} {'x' * length}") == kind
    assert classify(f"{'x' * length} {trouble}") == kind


def test_faults_of_all_drivers_are_found() -> None:
    """Lines that were collected before their rules were written; for half of them no rule was written."""
    for half in ("rules", "held-out"):
        kinds = [
            (acceptable, classify(f"[  100.000001] {line}")) for acceptable, its, line in read_faults() if its == half
        ]
        assert len(kinds) > 250
        assert sum(kind is None for _, kind in kinds) <= 0.03 * len(kinds)
        assert sum(kind in acceptable for acceptable, kind in kinds) >= 0.9 * len(kinds)


def test_whole_boots_raise_no_alarm() -> None:
    """Boots of some forty machines: at most one ordinary line in 5,000 is taken for trouble."""
    lines = read_ordinary()
    assert len(lines) > 5000
    alarms = [line for line in lines if classify(line)]
    assert len(alarms) <= len(lines) / 5000, alarms


@pytest.mark.parametrize(
    ("line", "spelled"), json.loads(Path(__file__).with_name("log_spellings.json").read_text(encoding="utf-8"))
)
def test_a_line_is_of_its_kind_however_it_is_spelled(line: str, spelled: str) -> None:
    assert classify(line) == classify(spelled) is not None


def test_a_storage_driver_in_trouble_without_a_rule_is_unclassified_and_no_doubt() -> None:
    line = "mpi3mr0: unexpected reply of queue 7"
    assert [(one.kind, one.severity, one.count) for one in find_all([line, line])] == [(UNCLASSIFIED, "warning", 2)]
    assert errors_of(find_all([line])) == []
    for other in ("acmenet0: unexpected reply of queue 7", "mpi3mr0: reply of queue 7"):
        assert classify(other) is None
    problems: list[str] = []
    words = {"kind": UNCLASSIFIED, "severity": "none", "pattern": "unexpected reply", "source": "its manual"}
    own = read_rules([{**words, "example": line}], "r", problems)
    assert problems == []
    assert classify(line, own) is None


@pytest.mark.parametrize(
    "line",
    [
        "nvme nvme0: I/O 12 QID 3 timeout, aborting, errors 0",
        "sd 0:0:1:0: [sdb] Medium access timeout failure. Offlining disk! (timeout set to 30 seconds)",
    ],
)
def test_words_that_are_no_trouble_hide_no_line_that_a_rule_knows(line: str) -> None:
    assert classify(line) not in (None, UNCLASSIFIED)


def test_a_drive_tells_of_its_own_reset_at_a_boot_only() -> None:
    line = "sd 1:0:0:0: Power-on or device reset occurred"
    assert classify(f"[   14.250001] {line}") is None
    assert classify(f"[ 4014.250001] {line}") == classify(line) == "task_abort"


HOST_BYTES = ("OK", "NO_CONNECT", "BUS_BUSY", "TIME_OUT", "BAD_TARGET", "ABORT", "PARITY", "ERROR", "RESET")
SENSE_KEYS = {2: "Not Ready", 3: "Medium Error", 4: "Hardware Error", 5: "Illegal Request", 11: "Aborted Command"}


@pytest.mark.parametrize(("number", "name"), list(enumerate(HOST_BYTES)), ids=HOST_BYTES)
def test_a_host_byte_in_numbers_means_what_its_name_means(number: int, name: str) -> None:
    result = "sd 0:0:1:0: [sdb] tag#7 FAILED Result: hostbyte="
    kind = classify(f"{result}DID_{name} driverbyte=DRIVER_OK")
    assert kind
    assert classify(f"{result}{number:#04x} driverbyte=0x00") == kind
    assert classify(f"{result}{number:#x} driverbyte=DRIVER_OK") == kind


@pytest.mark.parametrize(("number", "name"), list(SENSE_KEYS.items()), ids=list(SENSE_KEYS.values()))
def test_a_sense_key_in_numbers_means_what_its_name_means(number: int, name: str) -> None:
    line = "sd 0:0:0:0: [sda] tag#1 Sense Key : "
    assert classify(f"{line}{number:#x} [current]") == classify(f"{line}{name} [current]")
    assert (classify(f"{line}{number:#x} [current]") is None) is (name == "Illegal Request")


@pytest.mark.parametrize(
    "driver",
    [
        *("e100", "e1000e", "stmmac", "hinic", "liquidio", "octeon_mgmt", "txgbe", "ngbe", "ath10k_pci", "mt7921e"),
        *("rtw_8822be", "brcmfmac", "rdma_rxe", "infiniband", "CIFS", "ceph", "libceph", "ast", "mgag200"),
        *("i801_smbus", "ucsi_acpi", "hid-generic", "uvcvideo", "ccp"),
    ],
)
def test_a_driver_that_has_no_drives_tells_no_fault_of_storage(driver: str) -> None:
    said = "0000:02:00.0: command timed out, adapter reset"
    assert classify(f"acmeraid {said}")
    assert classify(f"{driver} {said}") is None


SEVERAL = [rule for rule in RULES if "|" in rule.pattern]


@pytest.mark.parametrize(
    ("kind", "line"), LINES, ids=[f"{number}-{line[-40:]}" for number, (_, line) in enumerate(LINES)]
)
def test_a_line_is_of_its_kind(kind: str, line: str) -> None:
    assert (classify(line) or "none") == kind


def without(pattern: str) -> Iterator[tuple[str, str]]:
    """Each alternative of a pattern, with the pattern without it; those of what must not follow are left out."""
    # where a group begins (-1: the pattern itself), whether it must not match, where its alternatives begin
    groups: list[tuple[int, bool, list[int]]] = [(-1, False, [0])]
    place, in_class = 0, False
    while place <= len(pattern):
        letter = pattern[place : place + 1]
        if letter == "\\":
            place += 2
            continue
        if in_class:
            in_class = letter != "]"
        elif letter == "[":
            in_class = True
            place += pattern[place + 1 : place + 2] in ("]", "^")
        elif letter == "(":
            head = re.match(r"\((?:\?(?:[:=!]|<[=!]|[a-z-]+:))?", pattern[place:])
            assert head
            groups.append((place, "!" in head.group() or groups[-1][1], [place + head.end()]))
            place += head.end()
            continue
        elif letter == "|":
            groups[-1][2].append(place + 1)
        elif letter in (")", ""):
            _, never, begins = groups.pop()
            ends = [*(begin - 1 for begin in begins[1:]), place]
            if len(begins) > 1 and not never:
                for begin, end in zip(begins, ends, strict=True):
                    rest = pattern[: begin - (begin != begins[0])] + pattern[end + (begin == begins[0]) :]
                    yield pattern[begin:end], rest
        place += 1


def test_a_pattern_is_taken_apart_at_its_bars() -> None:
    assert list(without(r"a(?:b|[|)]c|\|d)(?!e|f)|g")) == [
        ("b", r"a(?:[|)]c|\|d)(?!e|f)|g"),
        ("[|)]c", r"a(?:b|\|d)(?!e|f)|g"),
        (r"\|d", r"a(?:b|[|)]c)(?!e|f)|g"),
        (r"a(?:b|[|)]c|\|d)(?!e|f)", "g"),
        ("g", r"a(?:b|[|)]c|\|d)(?!e|f)"),
    ]


@cache
def known_lines() -> tuple[str, ...]:
    """Every line that a test holds to its kind."""
    return (*(rule.example for rule in RULES), *(line for _, line in LINES), *(line for *_, line in read_faults()))


@pytest.mark.parametrize("rule", SEVERAL, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(SEVERAL)])
def test_each_alternative_of_a_rule_has_a_line_that_fits_by_it_alone(rule: LogRule) -> None:
    """One that no line needs is misspelled, or says what another says already."""
    whole = re.compile(rule.pattern, re.IGNORECASE)
    fitting = [line for line in known_lines() if whole.search(line)]
    idle = [
        words
        for words, rest in without(rule.pattern)
        if all(re.search(rest, line, re.IGNORECASE) for line in fitting)
    ]
    assert idle == []
