# SPDX-License-Identifier: Apache-2.0
"""pytest.html says what it is: the engineers' log. Texts of devices reach it escaped or not at all."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["pytest_html_report_title", "pytest_html_results_summary"]


@pytest.hookimpl(optionalhook=True)
def pytest_html_report_title(report: Any) -> None:  # noqa: ANN401 - pytest-html publishes no types
    """A title without a device's words."""
    report.title = "storqual: the engineers' log"


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_summary(prefix: list[str]) -> None:
    """Say where the verdict is."""
    prefix.append("<p>One line per criterion and point. The verdict to sign by is report.html beside this file.</p>")
