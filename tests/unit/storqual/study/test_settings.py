# SPDX-License-Identifier: Apache-2.0
"""Tests of the ranking of settings: the true effect first, the neutral one called neutral, the unknown one open."""

import itertools
import math
import random
from dataclasses import replace

import pytest

from storqual.study.settings import ranking, setting_studies
from tests.support.study_points import point

EFFECTS = {"drive.WCE": {1: 1.0, 0: 0.6}, "drive.DRA": {0: 1.0, 1: 0.95}, "drive.NCS": {1: 1.0, 16: 1.0}}


def planted(*, launches: int = 6, noise: float = 0.01) -> list:
    """Every combination of three settings at two queue depths: WCE costs 40 %, DRA 5 %, NCS nothing."""
    points = []
    for depth, *levels in itertools.product((1, 8), *(EFFECTS[name] for name in EFFECTS)):
        gain = 1.0
        for name, level in zip(EFFECTS, levels, strict=True):
            gain *= EFFECTS[name][level]
        settings = dict(zip(EFFECTS, levels, strict=True))
        points.append(
            point(
                "sym",
                "rand_write",
                200.0 * depth * gain,
                varied=settings,
                iodepth=depth,
                launches=launches,
                noise=noise,
            )
        )
    return points


def study(points: list, metric: str = "iops") -> tuple:
    """The ranked effects of the only subject and workload."""
    (ranked,) = [candidate for candidate in setting_studies(points) if candidate.metric == metric]
    return ranked.effects


def test_the_true_effects_come_first_in_the_order_of_their_size() -> None:
    effects = study(planted())
    assert [effect.setting for effect in effects] == ["drive.WCE", "drive.DRA", "drive.NCS"]
    assert [effect.influence for effect in effects] == ["worse", "worse", "neutral"]


def test_the_interval_holds_the_planted_effect() -> None:
    """A cache that costs 40 % is shown to cost 40 %, within little."""
    first = study(planted())[0]
    assert first.shift.low is not None
    assert first.shift.high is not None
    assert first.shift.low < -0.4 < first.shift.high
    assert first.shift.high - first.shift.low < 0.05
    assert first.points == 8


def test_a_neutral_setting_is_called_neutral_only_where_that_is_shown() -> None:
    noisy = study(planted(launches=2, noise=0.2))
    assert {effect.setting: effect.influence for effect in noisy}["drive.NCS"] == "open"


def test_one_launch_each_shows_nothing() -> None:
    assert {effect.influence for effect in study(planted(launches=1))} == {"open"}


def test_a_lower_metric_is_better_when_it_falls() -> None:
    effects = study(planted(), "cpu_us_per_io")
    assert (effects[0].setting, effects[0].influence) == ("drive.WCE", "worse")


def test_sentences_are_as_strong_as_the_intervals() -> None:
    (ranked,) = [candidate for candidate in setting_studies(planted()) if candidate.metric == "iops"]
    assert "drive.WCE from 1 to 0 is 40" in ranked.sentences[0]
    assert "worse (interval -4" in ranked.sentences[0]
    assert ranked.sentences[2].startswith("sym, rand_write, IOPS: drive.NCS from 1 to 16 is neutral: within 3 %")


def test_unchanged_drives_show_an_effect_in_one_study_of_twenty_at_most_however_many_workloads_it_tells_of() -> None:
    rng = random.Random(4)
    noise = {"drive.WCE": (1, 0), "drive.NCS": (1, 16)}
    shown = 0
    for _ in range(300):
        points = [
            replace(
                point("sym", workload, 100.0, varied=dict(zip(noise, levels, strict=True))),
                launches=tuple({"iops": 100 * math.exp(rng.gauss(0, 0.05))} for _ in range(6)),
            )
            for workload in ("a", "b", "c", "d", "e", "f")
            for levels in itertools.product(*noise.values())
        ]
        influences = [effect.influence for ranked in setting_studies(points) for effect in ranked.effects]
        assert len(influences) == 12
        shown += "better" in influences or "worse" in influences
    assert shown <= 24


def test_an_interval_that_reaches_tenfold_is_not_read_out() -> None:
    """Its ends would be read as if they said something."""
    launches = tuple({"iops": rate} for rate in (1.0, 3.0, 9.0))
    points = [replace(point("sym", "w", 1.0, varied={"drive.DRA": level}), launches=launches) for level in (0, 1)]
    (ranked,) = setting_studies(points)
    (sentence,) = ranked.sentences
    assert sentence == (
        "sym, w, IOPS: drive.DRA from 0 to 1 has too few launches, or launches that vary too much: "
        "a change of 0 % is not conclusive."
    )
    (effect,) = ranked.effects
    assert effect.shift.high is not None


def test_levels_are_compared_at_the_same_place_only() -> None:
    launches = {("a", (("x", 1),)): [1.0, 1.1], ("b", (("x", 2),)): [2.0, 2.1]}
    assert ranking(launches) == ()


def test_a_margin_outside_0_to_1_is_refused() -> None:
    """100 % would call everything neutral."""
    with pytest.raises(ValueError, match="margin"):
        ranking({("a", (("x", 1),)): [1.0]}, margin=1.0)


def raid(rates: dict[tuple[str, int], float]) -> list:
    return [
        point("sym", "dbms", rate, varied={"raid.level": level, "raid.members": count}, noise=0.005)
        for (level, count), rate in rates.items()
    ]


def test_what_changes_along_with_a_setting_is_told_with_it() -> None:
    (ranked,) = [
        candidate
        for candidate in setting_studies(raid({("0", 4): 400.0, ("5", 3): 150.0, ("10", 4): 400.0}))
        if candidate.metric == "iops"
    ]
    first, second = ranked.effects
    assert (first.setting, first.level, first.along) == ("raid.level", "5", (("raid.members", 4, 3),))
    assert "raid.level from 0 to 5 with raid.members from 4 to 3 is 6" in ranked.sentences[0]
    assert first.short == "raid.level: 0 to 5, raid.members: 4 to 3"
    assert (second.level, second.along, second.influence) == ("10", (), "neutral")


def test_two_settings_that_change_only_together_are_told_once() -> None:
    effects = study(raid({("0", 4): 400.0, ("5", 3): 150.0}))
    assert [(effect.setting, effect.along) for effect in effects] == [("raid.level", (("raid.members", 4, 3),))]


def test_levels_of_one_and_members_of_the_other_are_told_apart_where_both_were_measured() -> None:
    """Four members, at both levels, are what three are compared with."""
    effects = study(raid({("0", 2): 200.0, ("0", 4): 400.0, ("5", 3): 150.0, ("5", 4): 200.0}))
    assert {(effect.setting, effect.base, effect.level): effect.along for effect in effects} == {
        ("raid.level", "0", "5"): (),
        ("raid.members", 4, 2): (),
        ("raid.members", 4, 3): (),
    }
