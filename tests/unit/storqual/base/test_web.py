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
    ("said", "again"),
    [
        (GOOD + b"a" * 101, b""),
        (GOOD, b"a"),
        (b"HTTP/1.0 200 OK\r\n", b"X-More: 1\r\n"),
        (b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nab", b""),
        (b"who are you?\r\n", b""),
        (b"", b""),
    ],
    ids=["too long", "endless", "headers without an end", "redirect", "cut off", "no HTTP", "nothing"],
)
def test_what_is_no_answer_is_an_os_error_within_the_limit(said: bytes, again: bytes) -> None:
    with pytest.raises(OSError, match=r"."):
        answer_of(said, again)


def test_an_answer_is_up_to_its_limit_and_a_refusal_has_its_number() -> None:
    assert answer_of(GOOD + b"a" * 100) == b"a" * 100
    with pytest.raises(urllib.error.HTTPError) as refusal:
        answer_of(b"HTTP/1.0 503 Busy\r\n\r\n")
    assert refusal.value.code == 503
