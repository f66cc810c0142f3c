# SPDX-License-Identifier: Apache-2.0
"""What people and programs read about runs: the report page, its PDF, trend, bench sheet, summary, exports."""

from storqual.report.build import build_report

__all__ = ["build_report"]
