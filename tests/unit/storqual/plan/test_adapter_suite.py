# SPDX-License-Identifier: Apache-2.0
"""What a release rests on: the profile `full` of the suite `adapter`, and the settings of `make qualify`."""

import re

import pytest
from ruamel.yaml import YAML

from storqual.base.files import project_root
from storqual.inputs import load_drop, load_suite
from storqual.inputs.suite import Criterion
from storqual.metrics import METRICS
from storqual_core.kit.settings import SETTINGS

SUITE = load_suite(project_root() / "suites" / "adapter.suite.yml")


def criteria(metric: str, profile: str = "full") -> list[Criterion]:
    return [one for one in SUITE.criteria if one.metric == metric and (not one.profiles or profile in one.profiles)]


def test_full_conditions_flash_as_snia_asks_and_measures_disks_as_they_are_found() -> None:
    """Purge, twice the capacity, then random writes of 4 KiB until steady."""
    asked = SUITE.profiles["full"].precondition
    assert asked is not None
    assert (asked.purge, asked.fill, asked.media) == ("discard", 2, "flash")
    assert asked.steady is not None
    assert (asked.steady.rw, asked.steady.bs) == ("randwrite", 4096)
    assert SUITE.profiles["quick"].precondition is None


@pytest.mark.parametrize("metric", ["latency_p99_us", "longest_stall_s", "dips_per_min"])
def test_full_requires_p99_stalls_and_dips_no_worse_than_the_baseline(metric: str) -> None:
    (one,) = criteria(metric)
    assert (one.against, one.required) == ("baseline", True)
    assert criteria(metric, "quick") == []


@pytest.mark.parametrize("metric", ["interrupts_per_io", "adapter_interrupts_per_io"])
def test_full_tells_interrupts_per_io_and_decides_nothing_by_them(metric: str) -> None:
    (one,) = criteria(metric)
    assert (one.against, one.required) == ("baseline", False)


def test_full_judges_errors_per_terabyte_of_every_counter_that_has_such_a_metric() -> None:
    counted = {name for name in METRICS if name.endswith("_per_tb")}
    assert len(counted) == 6
    assert counted == {one.metric for name in counted for one in criteria(name)}


def variable(name: str) -> str:
    (found,) = re.findall(rf"^{name} \?= (\S+)$", (project_root() / "Makefile").read_text(encoding="utf-8"), re.M)
    return str(found)


def test_most_settings_of_make_qualify_have_a_way_to_be_shown_in_effect() -> None:
    """At least 60 % of what both drops declare; a run tells how many were shown."""
    declared = []
    for name in ("BASELINE", "CANDIDATE"):
        drop = load_drop(project_root() / "inventories" / "virtual" / "drops" / f"{variable(name)}.yml")
        declared += [f"{section}.{word}" for section, _, word, _ in drop.settings()]
    assert len(declared) >= 8
    shown = [name for name in declared if SETTINGS[name].proof]
    assert len(shown) >= 0.6 * len(declared)


def test_the_main_job_has_each_step_show_what_it_set_in_effect() -> None:
    """0.2 s a setting: sixteen drives stay below the ten seconds of a session."""
    tasks = project_root() / "roles"
    session = YAML(typ="safe").load(tasks / "campaign" / "tasks" / "provision.yml")
    (provision,) = (task for task in session[1]["block"] if "provision_prove_s" in (task.get("vars") or {}))
    assert 0 < provision["vars"]["provision_prove_s"] <= 0.2
    steps = YAML(typ="safe").load(tasks / "provision" / "tasks" / "apply.yml")
    assert steps[0]["block"][0]["bench_apply"]["prove_s"] == "{{ provision_prove_s }}"
