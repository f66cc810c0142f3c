# SPDX-License-Identifier: Apache-2.0
"""A judged run for machines: OCP lines, OpenMetrics for dashboards, tables, annotations of a merge request."""

from __future__ import annotations

from storqual.report.export.annotations import github_annotations, gitlab_code_quality
from storqual.report.export.ocp import ocp_lines, write_ocp
from storqual.report.export.tables import criteria_csv, open_metrics, samples_csv

__all__ = [
    "criteria_csv",
    "github_annotations",
    "gitlab_code_quality",
    "ocp_lines",
    "open_metrics",
    "samples_csv",
    "write_ocp",
]
