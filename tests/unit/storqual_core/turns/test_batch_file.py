# SPDX-License-Identifier: Apache-2.0
"""Block files as a bench reads them."""

from pathlib import Path

import pytest

from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from tests.support.fake_fio import block_text, launch

SWITCH = {"drive": "d0", "setting": "WCE", "value": 0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "found no storqual.block/3"),
        (block_text(Path("/s"), []), "turns: found '[]'"),
        (block_text(Path("/s"), [launch(0), launch(0)]), "two turns with one index"),
        (block_text(Path("/s"), [launch(0, drives=["d7"])]), "turns[0]: drives: found 'd7', expected one of"),
        (block_text(Path("/s"), [launch(0, drives=["d0", "d0"])]), "each drive once"),
        (block_text(Path("/s"), [launch(0, nn=1)]), "turns[0]: nn: found 'nn', expected one of"),
        (block_text(Path("s"), [launch(0)]), "state_dir: found 's', expected an absolute path"),
        (block_text(Path("/s"), [launch(0)], run="../../etc"), "run: found '../../etc'"),
        (block_text(Path("/s"), [launch(0)], idle_s=-1), "idle_s: found '-1'"),
        (block_text(Path("/s"), [launch(0, fio={"rw": "erase"})]), "turns[0]: fio: rw: found 'erase'"),
        (
            block_text(Path("/s"), [launch(0, switch=[{"argv": ["rm", "-rf", "/"]}])]),
            "expected a switch (drive, setting, value)",
        ),
        (block_text(Path("/s"), [launch(0, switch=[{"argv": "rm"}])]), "switch[0]: found {'argv': 'rm'}, expected"),
        (block_text(Path("/s"), [launch(0, switch=["rm"])]), "switch[0]: found 'rm', expected"),
        (
            block_text(Path("/s"), [launch(0, switch=[SWITCH | {"drive": "d9"}])]),
            "expected one of the batch's targets",
        ),
        (block_text(Path("/s"), [launch(0, switch=[SWITCH | {"value": 2}])]), "drive.WCE: 2 is above 1"),
        (block_text(Path("/s"), [launch(0, switch=[SWITCH | {"setting": "WEC"}])]), "did you mean"),
        (block_text(Path("/s"), [launch(0, switch=[SWITCH | {"argv": []}])]), "argv: found 'argv', expected one of"),
    ],
)
def test_a_wrong_block_file_is_named_before_anything_is_touched(text: str, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_batch(text)
    assert said in str(caught.value)


RULE = {"kind": "timeout", "pattern": "^acme: stuck", "example": "acme: stuck", "source": "its manual"}


def test_a_benchs_own_rules_for_the_kernels_log_are_in_its_block_file() -> None:
    block = parse_batch(block_text(Path("/s"), [launch(0)], kernel_rules=[RULE]))
    assert [(rule.kind, rule.pattern) for rule in block.kernel_rules] == [("timeout", "^acme: stuck")]
    with pytest.raises(BadInputError, match=r"kernel_rules\[0\]: the example does not fit the pattern"):
        parse_batch(block_text(Path("/s"), [launch(0)], kernel_rules=[{**RULE, "example": "other"}]))
