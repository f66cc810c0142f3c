# SPDX-License-Identifier: Apache-2.0
"""The reader of what went to a host, which shows on a bench that a load sends what it says."""

from pathlib import Path

from tests.support.wire import Dispatched, read_wire, unseen

TRACE = Path(__file__).with_suffix(".trace").read_text(encoding="utf-8")


def test_a_trace_is_read_with_addresses_lengths_and_flags() -> None:
    commands = read_wire(TRACE)
    assert commands[0] == Dispatched("6:0:0:0", 0x2A, 4096, 8, fua=True, segments=1)
    assert commands[1] == Dispatched("6:0:1:0", 0x8A, 1 << 32, 2560, fua=False, segments=9)
    assert (commands[2].first, commands[2].blocks) == (9, 256)
    assert [one.code for one in commands] == [0x2A, 0x8A, 0x0A, 0x35]


def test_a_write_of_which_no_command_went_out_is_named() -> None:
    assert unseen([(4096, 8), (4096, 9)], read_wire(TRACE), (0x2A, 0x8A)) == [(4096, 9)]
