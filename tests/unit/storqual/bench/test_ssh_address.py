# SPDX-License-Identifier: Apache-2.0
"""Knocking at a bench that boots: where, and what counts as an answer."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.bench.reboot import SshAddress, parse_ssh_address, ssh_answers

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECT = "host vbench\nuser root\nhostname 127.0.0.1\nport 35945\nproxyusefdpass no\n"


def test_the_door_is_where_ssh_itself_would_connect() -> None:
    assert parse_ssh_address(DIRECT) == SshAddress("127.0.0.1", 35945)


@pytest.mark.parametrize("way", ["proxyjump gate.lab", "proxycommand nc -X connect %h %p"])
def test_a_bench_behind_another_host_has_no_door_of_its_own(way: str) -> None:
    """Knocking from here would meet nobody, for ever."""
    assert parse_ssh_address(DIRECT + way + "\n") is None


def test_no_proxy_is_said_in_words() -> None:
    """OpenSSH prints `none` where a later line took a proxy back."""
    assert parse_ssh_address(DIRECT + "proxycommand none\n") == SshAddress("127.0.0.1", 35945)


@given(st.text())
def test_anything_else_is_no_door(text: str) -> None:
    address = parse_ssh_address(text)
    assert address is None or (address.host and address.port >= 0)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[SshAddress]:
    """A server that accepts one connection and says what the test wants, or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(request.param)
                ended.wait(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield SshAddress(*listener.getsockname())
        ended.set()
        thread.join()


@pytest.mark.parametrize("server", [b"SSH-2.0-OpenSSH_9.2p1\r\n"], indirect=True)
def test_a_server_that_says_its_name_is_open(server: SshAddress) -> None:
    assert ssh_answers(server, 5)


@pytest.mark.parametrize("server", [b"", b"HTTP/1.1 400 Bad Request\r\n"], indirect=True)
def test_an_accepted_connection_alone_is_not(server: SshAddress) -> None:
    assert not ssh_answers(server, 0.2)


def test_nobody_listening_is_not_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = SshAddress(*listener.getsockname())
    assert not ssh_answers(address, 5)
