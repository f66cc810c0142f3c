# SPDX-License-Identifier: Apache-2.0
"""Waiting for a bench to come back: only another boot id counts; where to knock, and what counts as an answer."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.bench.follow import UnreachableError
from storqual.bench.reboot import Boot, SshAddress, parse_boot, parse_ssh_address, ssh_answers, wait_for_boot
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
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise UnreachableError("no route")
        return answer

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, limit_s: float = 10) -> tuple[Boot, float]:
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
    assert ssh_answers(server, 5, greets=False)


def test_nobody_listening_is_not_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = SshAddress(*listener.getsockname())
    assert not ssh_answers(address, 5)
