# SPDX-License-Identifier: Apache-2.0
"""Robot Framework: `StorqualLibrary`, and how Robot suites are run and become checks."""

from __future__ import annotations

from storqual.checks.library import StorqualLibrary
from storqual.checks.robot_run import Target, publish_suites, run_suites, suite_files

__all__ = ["StorqualLibrary", "Target", "publish_suites", "run_suites", "suite_files"]
