# SPDX-License-Identifier: Apache-2.0
"""How a module ends: Ansible drops an exception without words, so each failure leaves with a sentence."""

from collections.abc import Mapping
from typing import Any

import pytest

from storqual_core.kit.errors import BadInputError
from storqual_core.kit.results import finish


class Module:
    """What a module told Ansible."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def fail_json(self, **words: Any) -> None:
        self.told = {"failed": True, **words}

    def exit_json(self, **words: Any) -> None:
        self.told = words


def ended(work: Exception | Mapping[str, Any]) -> dict[str, Any]:
    module = Module()

    def do() -> Mapping[str, Any]:
        if isinstance(work, Exception):
            raise work
        return work

    finish(module, do)
    return module.told


def test_what_was_done_is_the_result() -> None:
    assert ended({"changed": True}) == {"changed": True}


@pytest.mark.parametrize(
    ("problem", "words"), [(MemoryError(), "MemoryError; check"), (OSError("a\x1b[2J"), "OSError: a\\x1b[2J; check")]
)
def test_a_fault_of_the_program_is_a_sentence_with_its_place_and_counts_as_a_change(
    problem: Exception, words: str
) -> None:
    told = ended(problem)
    assert told["failed"]
    assert told["changed"]
    assert told["storqual_exit_code"] == 2
    assert told["msg"].startswith("unexpected error at test_results.py:")
    assert words in told["msg"]
    assert type(problem).__name__ in told["exception"]


def test_bad_input_keeps_its_exit_code_and_changes_nothing() -> None:
    told = ended(BadInputError(["found x\x1b[2J, expected y"]))
    assert "\x1b" not in told["msg"]
    assert (told["changed"], told["storqual_exit_code"]) == (False, 3)
