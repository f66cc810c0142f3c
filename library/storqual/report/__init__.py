# SPDX-License-Identifier: Apache-2.0
"""The qualification report: one page, no script, made from the files of a judged run."""

from __future__ import annotations

from storqual.report.build import build_report

__all__ = ["build_report"]
