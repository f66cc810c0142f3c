# SPDX-License-Identifier: Apache-2.0
"""Tests of suites/published: what is inconsistent in each report, and that the files say what the reports say."""

import functools
import hashlib
import re
from pathlib import Path

import pytest

from storqual.audit import AuditedAssertion, Status, audit_report, read_report
from storqual.base.files import suites_folder
from storqual.inputs.published import Printed, Published

pytestmark = pytest.mark.slow

REPORTS = ("qla1040", "a7173a", "perc3qc", "a6826a", "xeon_ultra320")

INCONSISTENT = {
    "qla1040": {"quad_cpu_adaptec_again", "quad_writes_over_symbios", "writes_competitors"},
    "a7173a": {
        *("summary_a7173a[write]", "percent_a7173a[write]", "read_increase", "read_increase_again"),
        *("iops_increase", "demand_a6829a[single read 4KB]", "adapters_tested", "bus_of_a6829a"),
    },
    "perc3qc": {"bus_time", "drives_per_logical"},
    "a6826a": {
        *("percent_bidirectional[2]", "chart_1a_title", "text_2a_read[2]", "reads_linear_rp7400"),
        *("reads_rp7400_again", "decline_rp7400", "writes_linear_large", "writes_systems", "cards_rp7400"),
        *("rp8400_listed", "cpus_superdome", "cpus_rp8400", "clock_superdome", "name_chart_2a"),
        *("name_chart_3b", "name_setup", "server_setup"),
    },
    "xeon_ultra320": set(),
}


def file_of(name: str) -> Path:
    return suites_folder() / "published" / f"{name.replace('_', '-')}.yml"


@functools.cache
def report(name: str) -> Published:
    """A report, read once for all tests."""
    return read_report(file_of(name))


@functools.cache
def claims(name: str) -> dict[str, AuditedAssertion]:
    return {claim.id.removeprefix(f"{name}."): claim for claim in audit_report(report(name))}


@pytest.mark.parametrize("name", REPORTS)
def test_exactly_the_known_inconsistencies_are_found(name: str) -> None:
    """None is missed, and nothing else is called inconsistent."""
    found = {key for key, claim in claims(name).items() if claim.status is Status.INCONSISTENT}
    assert found == INCONSISTENT[name]


@pytest.mark.parametrize(
    ("name", "claim", "sentence"),
    [
        ("qla1040", "quad_writes_over_symbios", "49 should read 46"),
        ("qla1040", "quad_writes_over_symbios", "49 is what 2721"),
        ("a7173a", "demand_a6829a[single read 4KB]", "143 should read 41"),
        ("a7173a", "percent_a7173a[write]", "59.7 should read 59.8"),
        ("a7173a", "read_increase", "consistent would be 98"),
        ("a6826a", "percent_bidirectional[2]", "51.1 should read 51.5"),
        ("a6826a", "text_2a_read[2]", "383 is printed for read throughput of the Superdome"),
        ("a6826a", "reads_linear_rp7400", "linear up to 3"),
        ("a6826a", "cpus_rp8400", "2 should read 4 (processors of each rp8400 cell)"),
    ],
)
def test_the_likely_cause_is_named(name: str, claim: str, sentence: str) -> None:
    """What would be consistent, and the one number that explains it."""
    assert sentence in claims(name)[claim].explanation


@pytest.mark.parametrize(
    ("name", "claim", "sense", "fits"),
    [
        ("a7173a", "demand_a7173a[dual read 8KB]", "MB = 2^20 bytes, KB = 1024 bytes and CPU %", "15 of 16"),
        ("a7173a", "ultra320_maximum", "MB = 2^20 bytes", "1 of 1"),
        ("a6826a", "demand[dual write 4KB]", "MB = 10^6 bytes, KB = 1024 bytes and microseconds", "8 of 8"),
        ("perc3qc", "strips_per_second", "MB = 10^6 bytes and KB = 1000 bytes", "1 of 1"),
    ],
)
def test_the_units_of_each_report_are_inferred(name: str, claim: str, sense: str, fits: str) -> None:
    assert f"With {sense}" in claims(name)[claim].explanation
    assert f"{fits} agree, with any other reading" in claims(name)[claim].explanation


@pytest.mark.parametrize("name", REPORTS)
def test_the_units_that_a_file_declares_are_those_inferred(name: str) -> None:
    told = " ".join(claim.explanation for claim in claims(name).values())
    for unit, meaning in report(name).units.items():
        size = {10**6: "10^6", 2**20: "2^20"}.get(meaning.bytes, str(meaning.bytes))
        assert f"{unit} = {size} bytes" in told


@pytest.mark.parametrize("name", REPORTS)
def test_what_cannot_be_checked_says_why(name: str) -> None:
    for claim in claims(name).values():
        assert claim.explanation.endswith((".", ".)"))
        assert (claim.computed is None) == (claim.status is Status.NOT_CHECKABLE)


@pytest.fixture(scope="module")
def seeds() -> Path:
    """The texts of the reports, where they are beside the checkout."""
    folder = Path(__file__).resolve().parents[5] / "shared" / "seeds"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here: the reports themselves are kept outside the project")
    return folder


WORDS = {
    "1": "one", "2": "two", "4": "four", "5": "five", "8": "eight", "10": "ten", "12": "twelve", "13": "thirteen",
    "14": "fourteen", "40": "forty", "51": "fifty-one", "82": "eighty-two",
}  # fmt: skip


def is_in(entry: Printed | str, text: str) -> bool:
    """Whether a text prints a figure: as digits, with parted thousands, without a leading zero, or in words."""
    if isinstance(entry, str):
        return entry in text
    whole = f"{int(entry.value):,}" if entry.value.denominator == 1 else entry.text
    ways = {entry.text, entry.text.removeprefix("0"), whole, f"{float(entry.value) / 1000:g}K"}
    digits = any(re.search(rf"(?<![\d.]){re.escape(way)}(?!\d)", text) for way in ways if way)
    words = WORDS.get(entry.text, "")
    return digits or (bool(words) and words in text.lower())


# printed as 3.20x10^8, as a partition of so many cells, or run together without blanks in the text of a chart
ELSEWHERE = {
    "a7173a": {"ultra320.bytes", "bus.introduction", "details.adapters"},
    "perc3qc": {"block_sizes"},
    "qla1040": {"iops_blocks"},
    "a6826a": {
        "chart_1a.factor", "maximum", "reads.superdome", "reads.rp8400", "reads.rp7400",
        "chart_1a.read", "chart_1a.write", "chart_1b.read", "chart_1b.write",
        "chart_2a.read", "chart_2a.write", "chart_2b.read", "chart_2b.write",
    },
    "xeon_ultra320": set(),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_every_figure_stands_in_the_report(name: str, seeds: Path) -> None:
    data = (seeds / report(name).report.text).read_bytes()
    assert hashlib.sha256(data).hexdigest() == report(name).report.text_sha256
    text = data.decode("utf-8")
    for figure in report(name).figures:
        if figure.id not in ELSEWHERE[name]:
            missing = [str(entry) for entry in figure.cells().values() if not is_in(entry, text)]
            assert not missing, f"{figure.id}: {missing}"


def test_the_data_under_the_charts_are_those_of_the_text(seeds: Path) -> None:
    text = (seeds / report("a6826a").report.text).read_text(encoding="utf-8")
    together = text.replace(" ", "")
    figures = {figure.id: figure for figure in report("a6826a").figures}
    for name in sorted(ELSEWHERE["a6826a"] - {"chart_1a.factor"}):
        entries = [entry for entry in figures[name].cells().values() if isinstance(entry, Printed)]
        assert "".join(entry.text for entry in entries) in together, name


@pytest.mark.parametrize("name", REPORTS)
def test_the_text_of_a_report_can_be_audited_itself(name: str, seeds: Path) -> None:
    assert read_report(seeds / report(name).report.text) == report(name)


@pytest.mark.parametrize("name", REPORTS)
def test_quotations_stand_in_the_report(name: str, seeds: Path) -> None:
    words = re.sub(r"[^a-z0-9]+", " ", (seeds / report(name).report.text).read_text(encoding="utf-8").lower())
    quoted = 0
    for assertion in report(name).assertions:
        # what stands in brackets at the end says which of several cells is meant
        text = re.sub(r" \([^()]*\)$", "", assertion.text)
        parts = [re.sub(r"[^a-z0-9]+", " ", part.lower()).strip() for part in text.split("...")]
        quoted += all(part in words for part in parts)
    assert quoted >= 0.7 * len(report(name).assertions)


@pytest.mark.parametrize("name", REPORTS)
def test_the_review_lists_what_is_not_consistent(name: str) -> None:
    review = (suites_folder() / "published" / "README.md").read_text(encoding="utf-8")
    listed = {
        found for found in re.findall(r"^\| `([^`]+)` \|", review, re.MULTILINE) if found.startswith(f"{name}.")
    }
    wanted = {
        claim.id for claim in claims(name).values() if claim.status in (Status.INCONSISTENT, Status.NOT_CHECKABLE)
    }
    assert listed == wanted
