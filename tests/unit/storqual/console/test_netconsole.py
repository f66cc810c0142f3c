# SPDX-License-Identifier: Apache-2.0
"""Netconsole: datagrams of a kernel become lines of the recording, what is missing is said, strangers are refused."""

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.base.console_log import (
    NET,
    NOTE,
    NetconsoleText,
    datagram_of,
    lost_messages,
    panic_text,
    read_recording,
)
from storqual.console.console import Console, console_of
from storqual.inputs.console_way import ConsoleWay, Netconsole
from storqual.virtual_bench.places import BenchPlaces
from storqual_core.kit.errors import ToolError
from tests.support.played_console import PANIC, ConsoleServer, until

BENCH, STRANGER = "127.0.0.1", "127.0.0.2"


@pytest.fixture
def way() -> ConsoleWay:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reserved:
        reserved.bind((BENCH, 0))
        return ConsoleWay(netconsole=Netconsole(listen=BENCH, port=reserved.getsockname()[1], sender=BENCH))


def send(way: ConsoleWay, *datagrams: bytes, sender: str = BENCH) -> None:
    assert way.netconsole is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.bind((sender, 0))
        for datagram in datagrams:
            sending.sendto(datagram, (BENCH, way.netconsole.port))


def frame(payload: bytes, **changes: bytes) -> bytes:
    """As a guest sends it: Ethernet, IPv4 and UDP without checksums."""
    parts = {
        "type": b"\x08\x00",
        "version": b"\x45",
        "fragment": b"\x40\x00",
        "protocol": b"\x11",
        "port": b"\x1a\x0a",
    }
    parts |= changes
    head = b"\xff" * 6 + b"\x52\x54\x00\x12\x34\x57" + parts["type"] + parts["version"] + b"\x00\x00\x00\x00\x00"
    head += parts["fragment"] + b"\x40" + parts["protocol"] + b"\x00\x00" + bytes([10, 0, 3, 15, 10, 0, 3, 2])
    return head + b"\x1a\x09" + parts["port"] + (len(payload) + 8).to_bytes(2) + b"\x00\x00" + payload + b"\x00" * 6


def test_a_frame_carries_a_datagram_and_any_other_one_carries_none() -> None:
    assert datagram_of(frame(b"[1.0] x\n")) == b"[1.0] x\n"
    for name, other in {
        "type": b"\x86\xdd",
        "version": b"\x65",
        "fragment": b"\x20\x00",
        "protocol": b"\x06",
    }.items():
        assert datagram_of(frame(b"x", **{name: other})) == b"", name
    assert datagram_of(frame(b"x", port=b"\x00\x35")) == b""


@given(data=st.binary(max_size=80), cut=st.integers(0, 50))
def test_any_bytes_are_a_frame_and_a_datagram(data: bytes, cut: int) -> None:
    datagram_of(data)
    datagram_of(frame(data)[:cut])
    note, lines = NetconsoleText().take(data)
    assert note == ""
    assert lines in (b"", data.rstrip(b"\n") + b"\n") or b";" in data


def test_the_extended_form_says_which_messages_did_not_come() -> None:
    text = NetconsoleText()
    taken = [
        text.take(datagram)
        for datagram in (
            b"6,339,5140900,-;NET: one\n SUBSYSTEM=net\n",
            b"6,340,5140901,-,ncfrag=0/900;two",
            b"6,340,5140901,-,ncfrag=450/900; goes on",
            b"4,344,71100000,c;BUG: unable to handle page fault",
            b"4,343,71099999,-;overtaken",
            b"6.1.0-47-amd64,0,345,71100100,-;Kernel panic - not syncing: x",
            b"5,340,0,-;Linux version 6.1 of the next boot",
            b"5,342,1,-;x",
        )
    ]
    lost = [note for note, _ in taken if note]
    assert [(place, note.split()[-1]) for place, (note, _) in enumerate(taken) if note] == [(3, "344"), (7, "342")]
    assert " 3 messages" in lost[0]
    assert taken[0][1] == b"[    5.140900] NET: one\n SUBSYSTEM=net\n"
    assert taken[5][1] == b"[   71.100100] Kernel panic - not syncing: x\n"


def test_what_the_bench_sends_is_kept_beside_its_console_and_what_others_send_is_not(
    console: Console, server: ConsoleServer, way: ConsoleWay
) -> None:
    console.start(server.way.model_copy(update={"netconsole": way.netconsole}))
    server.say(b"on the console\n")
    send(way, b"forged\n", b"forged again\n", sender=STRANGER)
    send(way, *(line.encode() for line in PANIC.splitlines(keepends=True)), b"6,7,1,-;a\n", b"6,9,2,-;b\x1b[2J\xff\n")
    until(lambda: "on the console" in console.text_since(0) and "b" in console.text_since(0, NET)[-8:])
    assert "end Kernel panic" in panic_text(console.text_since(0, NET))
    assert "Kernel panic" not in console.text_since(0)
    lines = list(read_recording(console.recording.read()))
    assert lost_messages(lines) == 1
    assert not [line for line in lines if b"forged" in line.data]
    assert len([line for line in lines if line.mark == NOTE and STRANGER in line.text]) == 1
    assert all(line.text.isprintable() and line.at for line in lines if line.mark == NET)


def test_a_flood_stops_neither_the_recorder_nor_its_console(
    console: Console, server: ConsoleServer, way: ConsoleWay
) -> None:
    console.start(server.way.model_copy(update={"netconsole": way.netconsole}))
    for number in range(100):
        send(way, *[b"x" * 60000] * 20)
        server.say(b"line %d\n" % number)
    assert console.status()["connected"]
    until(lambda: "line 99" in console.text_since(0))


def test_netconsole_alone_answers_no_key(console: Console, way: ConsoleWay) -> None:
    console.start(way)
    send(way, b"[    1.0] alive\n")
    until(lambda: "alive" in console.text_since(0, NET))
    assert console.status()["connected"]
    assert console_of("vbench", None) is None
    with pytest.raises(ToolError, match="only listens"):
        console.sysrq("w")


def test_a_port_that_is_taken_is_one_sentence(console: Console, way: ConsoleWay) -> None:
    assert way.netconsole is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((BENCH, way.netconsole.port))
        with pytest.raises(ToolError, match=f"{BENCH}, port {way.netconsole.port}: Address already in use"):
            console.start(way)
    assert console.running() is None


def test_frames_of_a_virtual_bench_are_read_before_it_is_on(tmp_path: Path) -> None:
    places = BenchPlaces.of(tmp_path / "bench")
    virtual = Console("vbench", places)
    virtual.start(ConsoleWay(virtual=True))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as card:
            for data in (b"arp", frame(b"[    1.0] by netconsole\n")):
                card.sendto(data, str(places.netconsole))
        until(lambda: virtual.text_since(0, NET) == "[    1.0] by netconsole")
    finally:
        virtual.stop()
    assert not places.netconsole.exists()
