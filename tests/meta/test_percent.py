# SPDX-License-Identifier: Apache-2.0
"""One form of percent in everything that is printed: `3 %`. Without the space it is what people write into files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from storqual_core.kit.quantities import format_percent

REPOSITORY = Path(__file__).resolve().parents[2]
_TIGHT = re.compile(r"(?<!such as )(?<!from )(?<!below )(?<!')\b\d+(?:\.\d+)?%")
_FORMAT_OF_ITS_OWN = re.compile(r"\{[^{}]*:[^{}]*%\}")


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (REPOSITORY / "tests" / "golden").iterdir() if path.suffix == ".txt")
)
def test_a_golden_text_has_a_space_before_the_sign(name: str) -> None:
    assert not _TIGHT.findall((REPOSITORY / "tests" / "golden" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["pass", "fail", "error"])
def test_a_reason_in_a_report_has_a_space_before_the_sign(name: str) -> None:
    page = (REPOSITORY / "tests" / "golden" / f"{name}.report.html").read_text(encoding="utf-8")
    body = re.sub(r"<style.*?</style>|<svg.*?</svg>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert not _TIGHT.findall(body)


def test_no_module_formats_a_percentage_in_the_other_form() -> None:
    files = [path for root in ("library", "roles") for path in (REPOSITORY / root).rglob("*.py")]
    found = {
        str(path.relative_to(REPOSITORY)): _FORMAT_OF_ITS_OWN.findall(path.read_text(encoding="utf-8"))
        for path in files
    }
    assert not {name: formats for name, formats in found.items() if formats}


@pytest.mark.parametrize(("fraction", "text"), [(0.03, "3 %"), (0.07, "7 %"), (0.0235, "2.35 %"), (0.5, "50 %")])
def test_a_fraction_is_told_with_the_digits_that_it_has(fraction: float, text: str) -> None:
    assert format_percent(fraction) == text
