# SPDX-License-Identifier: Apache-2.0
"""Waiting for a bench to come back: only another boot id counts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.bench.follow import UnreachableError
from storqual.bench.reboot import Boot, parse_boot, wait_for_boot
from storqual_core.kit.errors import StorqualError

OLD = Boot("0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11", "6.1.0-1-amd64")
NEW = Boot("1d8e5b1f-1a6d-4b4a-8e1d-3d8b5b4e9b22", "6.1.0-2-amd64")


@dataclass
class Bench:
    """A bench that gives its answers in order, the last one for ever; a second passes with each pause."""

    answers: list[Boot | None]
    now: float = 0.0
    shown: list[tuple[float, bool]] = field(default_factory=list)

    def ask(self) -> Boot:
        """None: no answer."""
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise UnreachableError("no route")
        return answer

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    def wait(self, limit_s: float = 10) -> tuple[Boot, float]:
        """Wait as the plugin does."""
        return wait_for_boot(
            self.ask,
            OLD,
            limit_s=limit_s,
            show=lambda seconds, answering: self.shown.append((seconds, answering)),
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def test_the_old_boot_answers_for_a_while_then_nothing_then_the_new_one() -> None:
    bench = Bench([OLD, OLD, None, None, NEW])
    assert bench.wait() == (NEW, 4.0)
    assert bench.shown == [(0.0, True), (1.0, True), (2.0, False), (3.0, False)]


def test_a_bench_that_does_not_come_back_names_where_to_look() -> None:
    with pytest.raises(StorqualError, match=r"did not answer within 10 s .*console log .*pstore"):
        Bench([OLD, None]).wait()


def test_a_bench_that_does_not_go_down_is_told_apart() -> None:
    with pytest.raises(StorqualError, match="did not go down within 10 s"):
        Bench([OLD]).wait()


def test_an_answer_is_a_boot_id_and_a_release() -> None:
    assert parse_boot(f"{NEW.boot_id}\n{NEW.kernel}\n") == NEW


@given(st.text())
def test_another_answer_is_a_sentence(text: str) -> None:
    try:
        boot = parse_boot(text)
    except StorqualError:
        return
    assert len(boot.boot_id) == 36
