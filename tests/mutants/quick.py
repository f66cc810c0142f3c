# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: what only costs time where nothing but the first failure counts is left out.

A property that fails has noticed the mutant, and its smallest example is not looked for. Nothing waits for the disk:
tests of power cuts cut between calls, and no machine loses power here.
"""

import os

import pytest
from hypothesis import Phase, settings


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Take the project's settings of properties without their last phases; make fsync nothing."""
    usual = settings.get_profile("storqual")
    settings.register_profile("mutants", usual, phases=(Phase.explicit, Phase.generate), database=None)
    settings.load_profile("mutants")
    os.fsync = os.fdatasync = _at_once


def _at_once(_descriptor: int) -> None:
    """Stand in for fsync."""
