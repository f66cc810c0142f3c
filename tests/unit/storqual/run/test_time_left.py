# SPDX-License-Identifier: Apache-2.0
"""The time that is told to be left is what is left, on benches that are slower or faster than a plan expects."""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from storqual.campaign import Provision, RunBatch, Stop
from storqual.campaign.next_step import next_command
from storqual.cli.playbook.next import next_command as next_cli
from storqual.cli.playbook.record import record
from storqual.run import append_event, collect, events, read_batch
from storqual.run.time_left import _END_S, _FIRST, Left, TimeLeft
from tests.support.make_lab import KERNEL, OTHER, SMALL_SUITE, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, plan

pytestmark = pytest.mark.slow


@dataclass
class Clocked:
    """A campaign on one bench whose time is counted, not spent; `told` is what was said when.

    Parts take `pace` times what the plan expects of them, sessions `boots` times; a launch is said to take what the
    bench program expects of it.
    """

    run: Path
    pace: float
    boots: float
    time: float = 0.0
    told: list[tuple[float, Left]] = field(default_factory=list)
    breaks: int = 0

    def now(self) -> datetime:
        return datetime(2026, 11, 26, 9, tzinfo=UTC) + timedelta(seconds=self.time)

    def stamp(self) -> str:
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def say(self, left: TimeLeft, of_batch: float | None = None) -> None:
        self.told.append((self.time, left.left(of_batch)))

    def finish(self, bench: Bench) -> float:
        """Run it; the moment at which everything is published."""
        planned = json.loads((self.run / "run.json").read_text())["plan"]
        effort, lines = planned["effort"]["b1"], planned["bench_time"]["b1"]
        once_s = sum(line["seconds"] for line in lines if line["what"] in _FIRST)
        append_event(self.run, "environment", {"bench": "b1", "when": "before", "facts": {}})
        while not isinstance(step := next_command(self.run, "b1", boot_id=bench.boot_id), Stop):
            if isinstance(step, Provision):
                if step.session.boot == "always":
                    bench.reset()
                self.say(TimeLeft(self.run, "b1", now=self.now))
                self.time += self.boots * (effort["session_s"] + once_s)
                once_s = 0.0
                record(
                    self.run, "session_started", {"bench": "b1", "session": step.session.id, "boot_id": bench.boot_id}
                )
            else:
                self._batch(step, bench, effort)
        self.say(TimeLeft(self.run, "b1", now=self.now))
        return self.time + self.boots * effort["restore_s"] + _END_S

    def _batch(self, step: RunBatch, bench: Bench, effort: Any) -> None:
        append_event(self.run, "block_started", {"bench": "b1", "session": step.session, "block": step.batch})
        block, left = read_batch(self.run, step.batch), TimeLeft(self.run, "b1", step.batch, self.now)
        self.time += self.pace * effort["block_s"]
        costs = [
            sum(turn["request"]["fio"][name] for name in ("ramp_s", "runtime_s")) + 0.5 for turn in block["turns"]
        ]
        cut = len(costs) // 2 if self.breaks else None
        for number, cost in enumerate(costs[:cut]):
            self.say(left, sum(costs[number:]))
            self.time += self.pace * cost
        bench.run(block, cut)
        self.breaks = 0
        if cut is not None:
            bench.reset()
        lost = None if cut is None else "the bench was reset"
        collect(self.run, step.batch, "".join(bench.spools[step.batch]), lost=lost)


@pytest.fixture
def clocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(pace: float, boots: float, **options: Any) -> Clocked:
        made = Clocked(plan(tmp_path, hosts=lab_hosts({"sym": 2}, kind="hardware"), **options), pace, boots)
        monkeypatch.setattr(events, "now", made.stamp)
        return made

    return make


def wrong(estimates: list[tuple[float, Left]], end: float) -> list[str]:
    """What was told after the first third that is off by more than 25 % and 30 s."""
    return [
        f"at {moment:.0f} of {end:.0f} s: {left}"
        for moment, left in estimates
        if moment > end / 3
        and left.most is not None
        and not 0.75 * left.least - 30 <= end - moment <= 1.25 * left.most + 30
    ]


@pytest.mark.parametrize(("pace", "boots"), [(1.0, 1.0), (1.6, 1.6), (0.7, 0.8), (1.0, 2.5), (2.5, 1.0)])
@pytest.mark.parametrize("kind", ["sessions", "one session", "a reset"])
def test_what_is_left_of_a_plan_is_told_within_a_quarter(clocked: Any, kind: str, pace: float, boots: float) -> None:
    drops = {} if kind == "one session" else {"baseline": KERNEL, "candidate": OTHER}
    campaign = clocked(pace, boots, **drops)
    campaign.breaks = int(kind == "a reset")
    end = campaign.finish(Bench())
    assert wrong(campaign.told, end) == []
    assert all(left.least == left.most for _, left in campaign.told)
    assert not [left for moment, left in campaign.told if end - moment > 180 and left.least < 60]


@pytest.mark.parametrize("noise", [0.002, 0.03])
@pytest.mark.parametrize("budget", [None, 1800.0])
def test_a_campaign_that_measures_until_decided_tells_the_least_and_the_most(
    clocked: Any, noise: float, budget: float | None
) -> None:
    suite = SMALL_SUITE.replace("pairs: 4", "pairs: 12, until: decided")
    assert suite != SMALL_SUITE
    campaign = clocked(1.3, 1.3, suite=suite, budget=budget, profile="full")
    end = campaign.finish(Bench(Rates(noise=noise, losses={"16k": 0.06})))
    assert wrong(campaign.told, end) == []
    assert any(left.most > left.least + 60 for _, left in campaign.told), "more may be measured"


def test_a_time_is_told_as_precisely_as_it_is_known() -> None:
    assert str(Left(29.0, 29.0)) == "about 30 s left"
    assert str(Left(250.0, 250.0)) == "about 4 min left"
    assert str(Left(250.0, 1500.0)) == "at least 4 min left, at most 25 min"
    assert str(Left(9000.0, None)) == "at least 2 h 30 min left"


def test_a_session_that_is_prepared_tells_the_time_with_packages_boots_and_restore(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 2, "mpt": 2}, kind="hardware")
    run = plan(tmp_path, hosts=hosts, baseline=KERNEL, candidate=OTHER)
    expected = json.loads((run / "run.json").read_text(encoding="utf-8"))["plan"]
    ended = CliRunner().invoke(next_cli, [str(run), "--bench", "b1", "--boot-id", "x", "--json"])
    line = json.loads(ended.output)["told"]
    assert line.startswith("b1 | session ")
    assert "packages, settings, boots" in line
    (minutes,) = re.findall(r"about (\d+) min left$", line)
    effort = expected["effort"]["b1"]
    sessions = sum(session["bench"] == "b1" for session in expected["sessions"])
    assert int(minutes) * 60 >= sessions * effort["session_s"] + effort["restore_s"] - 30
    assert effort["restore_s"] > 0
    over = TimeLeft(run, "b1").line("the bench is restored", over=True)
    assert over == f"b1 | the bench is restored | {Left(effort['restore_s'] + _END_S, effort['restore_s'] + _END_S)}"
