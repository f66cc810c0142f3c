# SPDX-License-Identifier: Apache-2.0
"""The technician's sheet: one page per bench, for printing and hanging on the rack."""

from __future__ import annotations

from storqual.sheet.last_result import LastResult, last_results
from storqual.sheet.page import Sheet, make_sheet
from storqual.sheet.render import render_sheet

__all__ = ["LastResult", "Sheet", "last_results", "make_sheet", "render_sheet"]
