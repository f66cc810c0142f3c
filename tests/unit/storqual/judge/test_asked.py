# SPDX-License-Identifier: Apache-2.0
"""What is asked of a point: values of both arms that can be compared, by a policy that may require more."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.judge import against_baseline, interim, question
from storqual.judge.decision import HISTORY_WEIGHT, History
from storqual.judge.question import Unit


@dataclass(frozen=True)
class Rule:
    id: str
    required: bool


@pytest.mark.parametrize(
    ("required", "informative", "before", "after"),
    [
        (("p99*",), (), False, True),
        ((), ("p99*",), True, False),
        ((), (), False, False),
        ((), (), True, True),
        (("p99*",), ("*",), False, True),
    ],
)
def test_the_gates_policy_decides_what_is_required_where_it_names_it(
    required: tuple[str, ...], informative: tuple[str, ...], *, before: bool, after: bool
) -> None:
    policy: Any = SimpleNamespace(required=required, informative=informative)
    rule: Any = Rule("p99_read", before)
    assert question._by_policy(rule, policy).required is after


def arms(*values: float, sources: tuple[str, str] = ("fio", "fio")) -> Any:
    """What a question about a metric finds, with the same values in both arms."""
    units = [[Unit("s01", value, source) for value in values] for source in sources]
    launches = SimpleNamespace(of=lambda arm: units[arm == "candidate"])
    return SimpleNamespace(launches=launches, metric=SimpleNamespace(label="IOPS"))


@pytest.fixture(autouse=True)
def values_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_baseline, "units_of", lambda units, _metric: units)
    monkeypatch.setattr(against_baseline, "missing", lambda _question, reason: reason)


@pytest.mark.parametrize("smallest", [0.0, -1.0])
def test_a_launch_without_work_has_no_ratio(smallest: float) -> None:
    answer = against_baseline._arms(arms(100.0, smallest))
    assert answer == f"IOPS is {smallest:g} in at least one launch, so no ratio to it can be computed"


def test_figures_of_two_sources_are_not_compared() -> None:
    answer = against_baseline._arms(arms(100.0, 101.0, sources=("fio", "the drive's counters")))
    assert answer == "IOPS was read from different sources, which cannot be compared: fio, the drive's counters"
    assert isinstance(against_baseline._arms(arms(100.0, 101.0)), tuple)


def test_pairs_are_counted_by_the_arm_that_has_fewer_launches() -> None:
    question: Any = SimpleNamespace(by_session=False)
    launch: Any = SimpleNamespace(session="s01")
    assert interim._units(question, {"baseline": [launch] * 5, "candidate": [launch] * 3}) == 3
    by_session: Any = SimpleNamespace(by_session=True)
    other_arm: Any = [SimpleNamespace(session=f"s0{number}") for number in (1, 1, 3)]
    assert interim._units(by_session, {"baseline": [launch] * 5, "candidate": other_arm}) == 1


def test_noise_of_earlier_campaigns_counts_half() -> None:
    prior = History(sd_pair=0.01, df_pair=20.0).pair()
    assert prior is not None
    assert (HISTORY_WEIGHT, prior.df) == (0.5, 10.0)
