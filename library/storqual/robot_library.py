# SPDX-License-Identifier: Apache-2.0
"""Robot Framework: `StorqualLibrary`, and how Robot suites are run and become checks."""

from functools import cached_property

from robot.api.deco import library

from storqual import __version__
from storqual.checks.bench_keywords import BenchKeywords
from storqual.checks.bmc_keywords import BmcKeywords
from storqual.checks.campaign_keywords import CampaignKeywords, Percent
from storqual.checks.robot_run import Target, publish_suites, run_suites, suite_files
from storqual.checks.seen import Subject, subject_of

__all__ = ["StorqualLibrary", "Target", "publish_suites", "run_suites", "suite_files"]


@library(
    scope="SUITE",
    version=__version__,
    converters={Percent: Percent.parse},
    doc_format="ROBOT",
    auto_keywords=False,
)
class StorqualLibrary(BenchKeywords, CampaignKeywords, BmcKeywords):
    """Acceptance of benches, driver drops and runs in plain words.

    Import it about a bench that answers now, or about a run directory:

    | Library | storqual.robot_library.StorqualLibrary | inventory=inventories/virtual | bench=vbench |
    | Library | storqual.robot_library.StorqualLibrary | run=runs/20261121T101500Z-adapter-4f2a |

    A keyword that finds something wrong fails the test: a check with the outcome FAIL. One that has nothing to judge
    by (no record, no answer) stops with ``NotJudgedError``: an ERROR, because missing is never good.
    Data that decides nothing raises ``UndecidedError``: INCONCLUSIVE.

    Every problem is told at once. Adapters are named by the inventory's alias, drives by WWN, or serial without one.
    """

    def __init__(self, run: str = "", inventory: str = "", bench: str = "") -> None:
        self._run, self._inventory, self._bench = run, inventory, bench

    @cached_property
    def subject(self) -> Subject:
        """The bench or run, found when the first keyword asks: libdoc imports the library without one."""
        return subject_of(self._run, self._inventory, self._bench)
