# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: shows verdicts as tests, and adds the outcomes of hand-written checks to the verdict.

`storqual judge` decides. Two ways of use, both with plugin autoload off and every plugin named:

- `pytest RUN/verdict.json -p storqual.pytest_plugin`: one item per criterion and point (`publish_log`);
- `pytest suites/ -p storqual.pytest_plugin --storqual-run RUN`: hand-written tests with the fixtures `run`, `point`,
  `baseline`, `candidate` and `bench`; each outcome is appended to checks.jsonl (`run_checks`).
"""

from storqual.checks.pytest_fixtures import (
    baseline,
    bench,
    candidate,
    point,
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_generate_tests,
    run,
)
from storqual.checks.pytest_run import (
    publish_log,
    pytest_collect_file,
    pytest_html_report_title,
    pytest_html_results_summary,
    run_checks,
)

__all__ = [
    "baseline",
    "bench",
    "candidate",
    "point",
    "publish_log",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_html_report_title",
    "pytest_html_results_summary",
    "run",
    "run_checks",
]
