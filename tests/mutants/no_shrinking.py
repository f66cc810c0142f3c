# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: a property that fails has noticed the mutant; the smallest example of it is not looked for."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Take the project's settings of properties, without their last phases."""
    usual = settings.get_profile("storqual")
    settings.register_profile("mutants", usual, phases=(Phase.explicit, Phase.generate), database=None)
    settings.load_profile("mutants")
