# SPDX-License-Identifier: Apache-2.0
"""Block files as a bench reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual_core.kit.errors import BadInputError
from storqual_core.measure.batch_file import SwitchStep, parse_block
from tests.support.fake_fio import block_text, launch

SWITCH = {"drive": "d0", "setting": "WCE", "value": 0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "found no storqual.block/2"),
        (block_text(Path("/s"), []), "launches: found '[]'"),
        (block_text(Path("/s"), [launch(0), launch(0)]), "two launches with one index"),
        (block_text(Path("/s"), [launch(0, drives=["d7"])]), "launches[0]: drives: found 'd7', expected one of"),
        (block_text(Path("/s"), [launch(0, drives=["d0", "d0"])]), "each drive once"),
        (block_text(Path("/s"), [launch(0, nn=1)]), "launches[0]: nn: found 'nn', expected one of"),
        (block_text(Path("s"), [launch(0)]), "state_dir: found 's', expected an absolute path"),
        (block_text(Path("/s"), [launch(0)], run="../../etc"), "run: found '../../etc'"),
        (block_text(Path("/s"), [launch(0)], idle_s=-1), "idle_s: found '-1'"),
        (block_text(Path("/s"), [launch(0, fio={"rw": "erase"})]), "launches[0]: fio: rw: found 'erase'"),
        (
            block_text(Path("/s"), [launch(0, switch=[{"argv": ["rm", "-rf", "/"]}])]),
            "is no switch that this version",
        ),
        (block_text(Path("/s"), [launch(0, switch=[{"argv": "rm"}])]), "switch[0]: {'argv': 'rm'} is no switch"),
        (block_text(Path("/s"), [launch(0, switch=["rm"])]), "switch[0]: 'rm' is no switch"),
        (
            block_text(Path("/s"), [launch(0, switch=[SWITCH | {"drive": "d9"}])]),
            "expected one of the block's targets",
        ),
        (block_text(Path("/s"), [launch(0, switch=[SWITCH | {"value": 2}])]), "drive.WCE: 2 is above 1"),
        (block_text(Path("/s"), [launch(0, switch=[SWITCH | {"setting": "WEC"}])]), "did you mean"),
        (block_text(Path("/s"), [launch(0, switch=[SWITCH | {"argv": []}])]), "argv: found 'argv', expected one of"),
    ],
)
def test_a_wrong_block_file_is_named_before_anything_is_touched(text: str, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_block(text)
    assert said in str(caught.value)


RULE = {"kind": "timeout", "pattern": "^acme: stuck", "example": "acme: stuck", "source": "its manual"}


def test_a_benchs_own_rules_for_the_kernels_log_are_in_its_block_file() -> None:
    block = parse_block(block_text(Path("/s"), [launch(0)], kernel_rules=[RULE]))
    assert [(rule.kind, rule.pattern) for rule in block.kernel_rules] == [("timeout", "^acme: stuck")]
    with pytest.raises(BadInputError, match=r"kernel_rules\[0\]: the example does not fit the pattern"):
        parse_block(block_text(Path("/s"), [launch(0)], kernel_rules=[{**RULE, "example": "other"}]))


SET = 'printf %s "$1" > "$2"'
CACHE = 'sdparm --set="WCE=$1" "$2" && printf 1 > "/sys/block/$3/device/rescan"'


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["sh", "-c", SET, "storqual", "4", "/sys/block/{name:d0}/device/queue_depth"], ("d0", "queue_depth", 4)),
        (["sh", "-c", SET, "storqual", "none", "/sys/block/{name:d1}/queue/scheduler"], ("d1", "scheduler", "none")),
        (["sh", "-c", CACHE, "storqual", "1", "{drive:d0}", "{name:d0}"], ("d0", "WCE", 1)),
        (["sdparm", "--set=NCS=16", "{drive:d1}"], ("d1", "NCS", 16)),
    ],
)
def test_a_switch_of_the_former_version_is_the_setting_that_it_meant(argv: list[str], expected: tuple) -> None:
    step = {"argv": argv, "read_back": ["cat"], "expect": "x", "timeout_s": 60.0}
    text = block_text(Path("/s"), [launch(0, switch=[step])], schema="storqual.block/1")
    assert parse_block(text).launches[0].switch == (SwitchStep(*expected),)


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", SET, "storqual", "1", "/sys/block/{name:d0}/../../sda/queue/scheduler"],
        ["sh", "-c", SET, "storqual", "1", "/etc/passwd"],
        ["sh", "-c", "reboot", "storqual", "1", "/sys/block/{name:d0}/queue/scheduler"],
        ["sdparm", "--set=NCS=16", "/dev/sda"],
        ["sdparm", "--command=stop", "{drive:d0}"],
    ],
)
def test_no_other_command_of_a_former_file_is_run(argv: list[str]) -> None:
    text = block_text(Path("/s"), [launch(0, switch=[{"argv": argv}])], schema="storqual.block/1")
    with pytest.raises(BadInputError, match="plan the run anew"):
        parse_block(text)
