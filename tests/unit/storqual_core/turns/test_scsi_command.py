# SPDX-License-Identifier: Apache-2.0
"""Command blocks are laid out as SBC-4 has them, and each end of a command is told apart from the others."""

import ctypes
import errno
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from storqual_core.turns import scsi_command
from storqual_core.turns.scsi_command import (
    CommandEnd,
    LackingError,
    MiscompareError,
    block_command,
    perform,
    send,
    unmap,
)


@pytest.mark.parametrize(
    ("name", "first", "blocks", "compares", "block"),
    [
        ("write6", 0x1FFF00, 256, False, "0a 1f ff 00 00 00"),
        ("read6", 9, 8, False, "08 00 00 09 08 00"),
        ("write10", 0x01020304, 0x0506, False, "2a 00 01 02 03 04 00 05 06 00"),
        ("verify10", 1, 2, True, "2f 02 00 00 00 01 00 00 02 00"),
        ("write_same10", 1, 2, False, "41 00 00 00 00 01 00 00 02 00"),
        ("write_verify10", 1, 2, False, "2e 00 00 00 00 01 00 00 02 00"),
        ("read12", 0x01020304, 0x05060708, False, "a8 00 01 02 03 04 05 06 07 08 00 00"),
        ("write16", 0x0102030405060708, 0x090A0B0C, False, "8a 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 00 00"),
        ("write_same16", 1 << 32, 8, False, "93 00 00 00 00 01 00 00 00 00 00 00 00 08 00 00"),
        ("verify16", 0, 1, True, "8f 02 00 00 00 00 00 00 00 00 00 00 00 01 00 00"),
        ("compare_and_write", 5, 2, False, "89 00 00 00 00 00 00 00 00 05 00 00 00 02 00 00"),
    ],
)
def test_a_command_block_has_address_and_length_where_the_standard_has_them(
    name: str, first: int, blocks: int, compares: bool, block: str
) -> None:
    assert block_command(name, first, blocks, compares=compares).hex(" ") == block


@pytest.mark.parametrize(
    ("name", "first", "blocks"),
    [
        ("write6", 0x1FFFFF, 2),
        ("write6", 0, 257),
        ("write10", 0xFFFFFFFF, 2),
        ("write10", 0, 0x10000),
        ("read12", 1 << 32, 1),
        ("compare_and_write", 0, 256),
    ],
)
def test_what_a_command_block_has_no_room_for_is_lacking_and_never_cut(name: str, first: int, blocks: int) -> None:
    with pytest.raises(LackingError, match="at most"):
        block_command(name, first, blocks)


def answers(monkeypatch: pytest.MonkeyPatch, *ends: CommandEnd | OSError) -> list[tuple[bytes, bytes]]:
    """Commands end so, one after the other; those that were sent, with their data."""
    sent: list[tuple[bytes, bytes]] = []

    def answer(_: int, command: bytes, pieces: Sequence[memoryview] = (), **__: object) -> CommandEnd:
        end = ends[len(sent)]
        sent.append((command, b"".join(pieces)))
        if isinstance(end, OSError):
            raise end
        return end

    monkeypatch.setattr(scsi_command, "send", answer)
    return sent


GOOD, CHECK = CommandEnd(0, 0, 0.1), 2


@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (CommandEnd(CHECK, 0, 0.1, key=5, code=0x20), LackingError),
        (CommandEnd(CHECK, 0, 0.1, key=0xE, code=0x1D), MiscompareError),
        (CommandEnd(CHECK, 0, 0.1, key=3, code=0x11), OSError),
        (CommandEnd(0, 5, 0.1), OSError),
        (CommandEnd(8, 0, 0.1), OSError),
        (CommandEnd(0, 0, 0.1, residual=512), OSError),
        (OSError(errno.ENOTTY, "no"), LackingError),
        (OSError(errno.EIO, "no"), OSError),
    ],
)
def test_every_end_but_a_good_one_is_told(
    end: CommandEnd | OSError, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, end)
    with pytest.raises(raised) as told:
        perform(7, b"\x2a" + bytes(9), reads=False)
    assert type(told.value) is raised


def test_the_news_of_a_reset_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    news = CommandEnd(CHECK, 0, 0.1, key=6, code=0x29)
    sent = answers(monkeypatch, news, GOOD)
    perform(7, b"\x2a" + bytes(9), reads=False)
    assert len(sent) == 2
    answers(monkeypatch, news, news)
    with pytest.raises(OSError, match="sense 6/29"):
        perform(7, b"\x2a" + bytes(9), reads=False)


def test_unmap_has_a_descriptor_for_each_range(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = answers(monkeypatch, GOOD)
    unmap(7, [(0x0102030405060708, 0x090A0B0C), (1, 2)])
    ((command, data),) = sent
    assert command.hex(" ") == "42 00 00 00 00 00 00 00 28 00"
    # 38 bytes follow the length, 32 of them descriptors
    assert data[:8].hex(" ") == "00 26 00 20 00 00 00 00"
    assert data[8:24].hex(" ") == "01 02 03 04 05 06 07 08 09 0a 0b 0c 00 00 00 00"
    assert data[24:].hex(" ") == "00 00 00 00 00 00 00 01 00 00 00 02 00 00 00 00"


@pytest.mark.parametrize(
    ("sense", "key", "code"),
    [
        ("70 00 0e 00 00 00 00 0a 00 00 00 00 1d 00", 0xE, 0x1D),
        ("f0 00 03 00 00 00 00 0a 00 00 00 00 11 00", 3, 0x11),
        ("72 05 24 00", 5, 0x24),
        ("f3 0b 10 01", 0xB, 0x10),
        ("70 00", 0, 0),
        ("", 0, 0),
    ],
)
def test_sense_of_both_formats_is_read(sense: str, key: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def ioctl(_: int, __: int, header: Any) -> None:
        data = bytes.fromhex(sense)
        ctypes.memmove(header.sbp, data, len(data))
        header.status, header.sb_len_wr, header.resid, header.duration = CHECK, len(data), 512, 250

    monkeypatch.setattr(scsi_command.fcntl, "ioctl", ioctl)
    assert send(5, b"\x28" + bytes(9), reads=True) == CommandEnd(CHECK, 0, 0.25, key, code, 512)


@pytest.mark.parametrize(("reads", "direction"), [(True, -3), (False, -2)])
@pytest.mark.parametrize("lengths", [(), (512,), (512, 1024)])
def test_data_goes_in_the_right_direction_and_pieces_are_a_list(
    lengths: tuple[int, ...], reads: bool, direction: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int, int]] = []
    check: Callable[[int, int, Any], None] = lambda _, __, header: seen.append(  # noqa: E731 - three fields
        (header.dxfer_direction, header.iovec_count, header.dxfer_len)
    )
    monkeypatch.setattr(scsi_command.fcntl, "ioctl", check)
    send(5, b"\x28" + bytes(9), [memoryview(bytearray(length)) for length in lengths], reads=reads)
    assert seen == [(direction if lengths else -1, len(lengths) if len(lengths) > 1 else 0, sum(lengths))]
