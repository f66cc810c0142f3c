# SPDX-License-Identifier: Apache-2.0
"""The ladder on a bench of our own making: what ends it, in which order, and what is never done too early."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from storqual.bench.follow import ConnectionLostError
from storqual.bench.ladder import LadderStep, Recovery, SilentBench, climb
from storqual.bench.reboot import Boot
from storqual_core.host.watchdog import Watch
from storqual_core.kit.errors import StorqualError

HUNG, OTHER = "boot-1", "boot-2"


@dataclass
class Outcome:
    boot: Boot | None


@dataclass
class Fake:
    """A bench whose next boot answers from the moment `back` on; steps that help set it."""

    now: float = 0.0
    back: float = 1e9
    lives: bool = False
    helps: frozenset[str] = frozenset()
    done: list[tuple[float, str]] = field(default_factory=list)
    text: str = ""
    mute: bool = False

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, limit_s: float) -> str:
        if self.now >= self.back:
            return OTHER
        if self.lives:
            return HUNG
        self.now += limit_s
        return ""

    def did(self, what: str) -> None:
        self.done.append((self.now, what))
        if what in self.helps:
            self.back = self.now + 40

    def sysrq(self, letter: str) -> None:
        self.did(letter)
        self.text += "" if self.mute else f"sysrq: {letter}\n"

    def mark(self) -> int:
        return len(self.text)

    def text_since(self, mark: int) -> str:
        return self.text[mark:]

    def trigger(self, letters: str) -> str:
        if not self.lives:
            raise ConnectionLostError("it does not answer")
        self.did(letters)
        return f"the kernel's log after {letters}"

    def cycle(self, what: str) -> Callable[[str], Outcome]:
        def cycled(reason: str) -> Outcome:
            assert reason == "it fell silent"
            self.did(what)
            self.now = max(self.now, min(self.back, self.now + 60))
            return Outcome(Boot(OTHER, "6") if self.now >= self.back else None)

        return cycled

    def bench(self, **words: object) -> SilentBench:
        known = {"boot_id": HUNG, "ask": self.ask, "boot_s": 60.0, **words}
        return SilentBench(**known)  # type: ignore[arg-type]


def run(fake: Fake, bench: SilentBench, **words: float) -> tuple[Recovery, list[LadderStep]]:
    steps: list[LadderStep] = []
    recovery = climb(bench, "it fell silent", tell=steps.append, clock=fake.clock, sleep=fake.sleep, **words)
    return recovery, steps


def test_a_bench_that_is_back_already_is_left_alone() -> None:
    fake = Fake(back=0)
    recovery, steps = run(fake, fake.bench(cycle_power=fake.cycle("power"), watch=Watch("iTCO_wdt", 60)))
    # who restarted it nobody knows
    assert (recovery.boot_id, recovery.ended_by) == (OTHER, "")
    assert [step.name for step in steps] == ["ask"]
    assert not fake.done


def test_nothing_is_done_to_a_bench_while_its_watchdog_is_due() -> None:
    fake = Fake(helps=frozenset({"power"}))
    recovery, _ = run(fake, fake.bench(watch=Watch("iTCO_wdt", 60), cycle_power=fake.cycle("power")), silent_s=10)
    # 60 s for the watchdog, 10 s that it may be late, 60 s for a boot, of which ten had passed
    assert fake.done[0][0] >= 120
    assert recovery.ended_by == "power cycle"


def test_a_bench_that_answers_again_while_it_is_waited_for_is_restarted_over_ssh() -> None:
    fake = Fake(helps=frozenset({"b"}))

    def ask(limit_s: float) -> str:
        fake.lives = fake.now > 30
        return fake.ask(limit_s)

    recovery, _ = run(fake, fake.bench(ask=ask, trigger=fake.trigger, watch=Watch("iTCO_wdt", 60)))
    assert [what for _, what in fake.done] == ["b"]
    assert (recovery.boot_id, recovery.ended_by) == (OTHER, "restart by the kernel")


def test_a_console_without_a_word_shows_that_the_watchdog_did_not_fire() -> None:
    fake = Fake(helps=frozenset({"b"}))
    run(fake, fake.bench(console=fake, watch=Watch("iTCO_wdt", 60), boot_s=300.0))
    [pressed] = [at for at, what in fake.done if what == "b"]
    assert 70 <= pressed < 130


def test_a_watchdog_that_fires_ends_it_and_is_named() -> None:
    fake = Fake(back=90)
    bench = fake.bench(watch=Watch("i6300ESB timer", 60), fired=lambda: True, cycle_power=fake.cycle("power"))
    recovery, steps = run(fake, bench)
    assert recovery.ended_by == "watchdog i6300ESB timer"
    assert steps[-1].name == "watchdog"
    assert not fake.done


def test_a_panic_on_the_console_names_the_detector_and_not_the_watchdog() -> None:
    fake = Fake(back=60, text="Kernel panic - not syncing: softlockup: hung tasks\n")
    recovery, steps = run(fake, fake.bench(console=fake, watch=Watch("i6300ESB timer", 60)))
    assert recovery.ended_by.startswith("detector of the kernel: Kernel panic - not syncing: softlockup")
    assert "softlockup" in steps[0].evidence


def test_an_ssh_server_that_takes_connections_and_says_no_word_is_no_lost_network() -> None:
    fake, watch = Fake(helps=frozenset({"b"})), Watch("iTCO_wdt", 60)
    bench = fake.bench(hangs=False, console=fake, watch=watch, spare_s=360.0, listens=lambda: True)
    recovery, _ = run(fake, bench)
    assert recovery.ended_by == "restart by the kernel"
    assert 120 < recovery.seconds < 300


@pytest.mark.parametrize("hangs", [True, False])
@pytest.mark.parametrize(
    ("watch", "least", "most"),
    [
        (Watch(), 20, 80),
        (Watch("Software Watchdog", 60), 20, 80),
        (Watch("iTCO_wdt", 60), 70, 130),
        (Watch(panic_s=0), 0, 45),
        (Watch(panic_s=90), 90, 160),
    ],
)
def test_a_kernel_that_panicked_is_asked_nothing_more_and_ended_as_soon_as_it_cannot_end_itself(
    watch: Watch, least: float, most: float, hangs: bool
) -> None:
    fake = Fake(text="Kernel panic - not syncing: it\n", mute=True, helps=frozenset({"power"}))
    spare_s = 0.0 if hangs else 360.0
    run(fake, fake.bench(hangs=hangs, console=fake, cycle_power=fake.cycle("power"), watch=watch, spare_s=spare_s))
    assert [what for _, what in fake.done] == ["b", "power"]
    assert least <= fake.done[0][0] <= most


def test_a_panic_that_the_watchdog_ended_is_the_work_of_the_watchdog() -> None:
    fake = Fake(back=60, text="Kernel panic - not syncing: it\n")
    watch = Watch("i6300ESB timer", 60, panic_s=0)
    recovery, _ = run(fake, fake.bench(console=fake, watch=watch, fired=lambda: True))
    assert (recovery.ended_by, fake.done) == ("watchdog i6300ESB timer", [])
    # of a boot that nobody knew it may tell of an earlier one
    assert run(Fake(back=0), Fake(back=0).bench(boot_id="", fired=lambda: True))[0].ended_by == ""


def test_the_console_shows_tasks_before_the_bench_is_restarted_by_it() -> None:
    fake = Fake(helps=frozenset({"b"}))
    recovery, steps = run(fake, fake.bench(console=fake, cycle_power=fake.cycle("power")))
    assert [what for _, what in fake.done] == ["7", "w", "l", "m", "b"]
    assert recovery.ended_by == "restart by the kernel"
    # each step's evidence was told with it, before the next one
    assert [(step.name, "sysrq: w" in step.evidence) for step in steps[:2]] == [("ask", False), ("look", True)]


def test_a_bench_that_answers_shows_its_tasks_over_ssh_and_its_watchdog_is_not_waited_for() -> None:
    fake = Fake(lives=True, helps=frozenset({"c"}))
    recovery, steps = run(fake, fake.bench(trigger=fake.trigger, kdump=True, watch=Watch("iTCO_wdt", 60)))
    assert [what for _, what in fake.done] == ["wlm", "c"]
    assert recovery.seconds < 60
    assert steps[1].evidence == "the kernel's log after wlm"


def test_a_network_that_was_lost_is_waited_for_before_power_is_cut() -> None:
    fake = Fake(helps=frozenset({"b"}))
    bench = fake.bench(hangs=False, console=fake, watch=Watch("iTCO_wdt", 60), spare_s=360.0)
    run(fake, bench, silent_s=30)
    # no key is pressed either: what a bench measures without us is not to be disturbed
    assert fake.done[0] == (pytest.approx(330, abs=25), "7")
    fake = Fake(back=300)
    watched = fake.bench(hangs=False, console=fake, watch=Watch("iTCO_wdt", 60), spare_s=360.0)
    assert run(fake, watched)[0].ended_by == ""
    assert not fake.done


@pytest.mark.parametrize("watch", [Watch(), Watch("Software Watchdog", 60)])
def test_a_kernel_that_answers_no_key_is_no_lost_network_and_its_power_is_cycled_in_time(watch: Watch) -> None:
    fake = Fake(mute=True, helps=frozenset({"power"}))
    bench = fake.bench(
        hangs=False, console=fake, trigger=fake.trigger, cycle_power=fake.cycle("power"), watch=watch, spare_s=360.0
    )
    recovery, _ = run(fake, bench, silent_s=30)
    assert [what for _, what in fake.done] == ["h", "power"]
    assert recovery.ended_by == "power cycle"
    assert recovery.seconds < 300


def test_a_kernel_that_answers_at_its_console_has_lost_its_network_and_is_spared() -> None:
    fake = Fake(back=300)
    recovery, _ = run(fake, fake.bench(hangs=False, console=fake, cycle_power=fake.cycle("power"), spare_s=360.0))
    assert (recovery.ended_by, [what for _, what in fake.done]) == ("", ["h"])


def test_without_console_and_watchdog_a_bench_is_spared_for_two_minutes() -> None:
    fake = Fake(helps=frozenset({"power"}))
    recovery, _ = run(fake, fake.bench(hangs=False, cycle_power=fake.cycle("power"), spare_s=360.0), silent_s=30)
    assert fake.done[0][0] == pytest.approx(90, abs=25)
    assert recovery.seconds < 300


def test_an_nmi_comes_before_the_power_cycle_and_a_console_without_a_word_shows_that_it_did_nothing() -> None:
    fake = Fake(mute=True, helps=frozenset({"power"}))
    bench = fake.bench(console=fake, nmi=lambda: fake.did("nmi"), cycle_power=fake.cycle("power"), boot_s=300.0)
    recovery, _ = run(fake, bench)
    named = [what for _, what in fake.done if what in ("b", "nmi", "power")]
    assert named == ["b", "nmi", "power"]
    assert recovery.ended_by == "power cycle"
    # neither key nor NMI was waited for as long as a boot takes
    assert recovery.seconds < 300
    fake = Fake(helps=frozenset({"nmi"}))
    bench = fake.bench(nmi=lambda: fake.did("nmi"), cycle_power=fake.cycle("power"), boot_s=300.0)
    assert run(fake, bench)[0].ended_by == "NMI"


def test_the_second_way_follows_when_the_first_lied_and_the_third_is_out_of_service() -> None:
    fake = Fake(helps=frozenset({"longer"}))
    bench = fake.bench(cycle_power=fake.cycle("power"), cycle_longer=fake.cycle("longer"))
    recovery, _ = run(fake, bench)
    assert recovery.ended_by == "power cycle, longer off"
    fake = Fake()
    bench = fake.bench(cycle_power=fake.cycle("power"), cycle_longer=fake.cycle("longer"))
    recovery, steps = run(fake, bench)
    assert (recovery.ended_by, recovery.boot_id, steps[-1].name) == ("", "", "out of service")


def test_a_step_that_fails_is_told_and_the_next_one_made() -> None:
    fake = Fake(helps=frozenset({"longer"}))

    def broken(_reason: str) -> Outcome:
        raise StorqualError("the BMC answers nothing")

    recovery, steps = run(fake, fake.bench(cycle_power=broken, cycle_longer=fake.cycle("longer")))
    assert recovery.ended_by == "power cycle, longer off"
    assert [step.text for step in steps if step.name == "power cycle"] == ["the BMC answers nothing"]


def test_the_whole_ladder_ends_within_its_limit() -> None:
    fake = Fake()
    bench = fake.bench(console=fake, watch=Watch("iTCO_wdt", 60), boot_s=300.0, cycle_power=fake.cycle("power"))
    recovery, _ = run(fake, bench, limit_s=200)
    assert not recovery.boot_id
    assert fake.now <= 230
    assert all(what != "power" for _, what in fake.done)


def test_a_bench_that_was_only_out_of_reach_goes_on_as_soon_as_it_answers() -> None:
    fake = Fake(lives=True)
    recovery, steps = run(fake, fake.bench(hangs=False, cycle_power=fake.cycle("power")))
    assert (recovery.boot_id, recovery.ended_by, [step.name for step in steps]) == (HUNG, "", ["ask"])
    assert not fake.done


def test_a_bench_that_nothing_can_be_done_to_is_waited_for_until_the_time_is_up() -> None:
    fake = Fake(back=800)
    recovery, steps = run(fake, fake.bench(hangs=False, spare_s=360.0))
    assert (recovery.boot_id, recovery.ended_by, steps[-1].name) == (OTHER, "", "wait")
    fake = Fake()
    recovery, steps = run(fake, fake.bench(hangs=False, spare_s=360.0))
    assert (recovery.boot_id, steps[-1].name) == ("", "out of service")
    assert fake.now == pytest.approx(900, abs=30)
