# SPDX-License-Identifier: Apache-2.0
"""A judged run for machines: OCP lines for diagnostics systems, OpenMetrics for dashboards, CSV for spreadsheets."""

from __future__ import annotations

from storqual.report.export.ocp import ocp_lines, write_ocp
from storqual.report.export.open_metrics import open_metrics
from storqual.report.export.tables import criteria_csv, samples_csv

__all__ = ["criteria_csv", "ocp_lines", "open_metrics", "samples_csv", "write_ocp"]
