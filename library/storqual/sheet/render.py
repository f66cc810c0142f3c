# SPDX-License-Identifier: Apache-2.0
"""The sheet as one HTML file: no script, nothing loaded, made for paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.report.render import render_template

if TYPE_CHECKING:
    from storqual.sheet.page import Sheet

__all__ = ["render_sheet"]


def render_sheet(sheet: Sheet) -> str:
    """The page as HTML; every text of a device is escaped."""
    return render_template("sheet.html.j2", "sheet.css", sheet=sheet)
