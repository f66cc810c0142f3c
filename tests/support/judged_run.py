# SPDX-License-Identifier: Apache-2.0
"""Verdicts on synthetic runs."""

from pathlib import Path
from typing import Any

from storqual.judge.verdict import judge_run
from tests.support.make_run import make_run
from tests.support.synthetic_shape import SUITE

QUIET = {"noise": 0.003}


def suite_with(*criteria: str) -> str:
    before, _, rest = SUITE.partition("criteria:\n")
    return before + "criteria:\n" + "".join(f"  - {one}\n" for one in criteria) + rest[rest.index("profiles:") :]


def judged(tmp_path: Path, **shape: Any) -> dict[str, Any]:
    return judge_run(make_run(tmp_path, **{**QUIET, **shape}))
