# SPDX-License-Identifier: Apache-2.0
"""A web server that is asked: its answer, and each way in which it gives none."""

import urllib.error
import urllib.request

import pytest

from storqual.base.web import web_answer
from tests.support.power_services import speaking

GOOD = b"HTTP/1.0 200 OK\r\n\r\n"


def answer_of(said: bytes, again: bytes = b"") -> bytes:
    with speaking(said, again) as url:
        return web_answer(urllib.request.Request(url), limit_s=2, most=100)  # noqa: S310 - loopback


@pytest.mark.parametrize(
    ("said", "again", "error"),
    [
        (GOOD + b"a" * 101, b"", OSError),
        (GOOD, b"a", TimeoutError),
        (b"HTTP/1.0 200 OK\r\n", b"X-More: 1\r\n", TimeoutError),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nab", b"", OSError),
        (b"who are you?\r\n", b"", OSError),
        (b"", b"", OSError),
    ],
)
def test_what_is_no_answer_is_an_os_error_within_the_limit(said: bytes, again: bytes, error: type[OSError]) -> None:
    with pytest.raises(error):
        answer_of(said, again)


def test_an_answer_is_up_to_its_limit_and_a_refusal_or_redirect_has_its_number() -> None:
    assert answer_of(GOOD + b"a" * 100) == b"a" * 100
    with speaking(GOOD) as other:
        for code in (503, 302):
            with pytest.raises(urllib.error.HTTPError) as refusal:
                answer_of(f"HTTP/1.0 {code} No\r\nLocation: {other}\r\n\r\n".encode())
            assert refusal.value.code == code
