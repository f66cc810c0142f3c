# SPDX-License-Identifier: Apache-2.0
"""Robot Framework: `StorqualLibrary` for suites in plain words, and how suites are run and become checks."""

from __future__ import annotations

from storqual.robot_library.library import StorqualLibrary
from storqual.robot_library.start import Target, publish_suites, run_suites, suite_files

__all__ = ["StorqualLibrary", "Target", "publish_suites", "run_suites", "suite_files"]
