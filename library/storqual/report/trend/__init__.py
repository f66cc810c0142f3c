# SPDX-License-Identifier: Apache-2.0
"""Trend pages: several campaigns, drops and benches over time, on one page without a script."""

from __future__ import annotations

from storqual.report.trend.build import build_trend

__all__ = ["build_trend"]
