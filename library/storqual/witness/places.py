# SPDX-License-Identifier: Apache-2.0
"""Places that keep what they are told: a syslog server, a file on another machine, a time authority."""

from __future__ import annotations

import http.client
import shlex
import socket
import time
import urllib.request
from datetime import UTC, datetime
from urllib.parse import SplitResult, urlsplit

from storqual.inputs.places import witness_problem
from storqual_core.kit.command import run
from storqual_core.kit.errors import StorqualError

_PATIENCE_S = 10.0
_NOTICE = 13 * 8 + 5
"""Facility 13 (log audit), severity 5 (notice), as RFC 5424 counts them."""
_MOST = 1 << 16
"""Bytes of an answer, with its certificates."""


def tell(place: str, line: str, digest: bytes) -> bytes:
    """Tell a place one line (syslog, a file) or one SHA-256 (a time authority); its answer, empty for none.

    Raises StorqualError when the place cannot be reached or refuses.
    """
    problem = witness_problem(place)
    if problem:
        raise StorqualError(f"{place}: {problem}")
    parts = urlsplit(place)
    if parts.scheme == "syslog":
        return _syslog(parts, line)
    if parts.scheme == "ssh":
        return _append(parts, line)
    return _timestamp(place.removeprefix("rfc3161+"), digest)


def read_back(place: str) -> str:
    """The lines of a file on another machine. Raises StorqualError."""
    parts = urlsplit(place)
    ended = run([*_ssh(parts), f"cat -- {shlex.quote(parts.path)}"], timeout=6 * _PATIENCE_S)
    if ended.rc != 0:
        raise StorqualError(f"{place}: could not be read: {ended.stderr.strip() or ended.rc}")
    return ended.stdout


def _syslog(parts: SplitResult, line: str) -> bytes:
    """One message by TCP, framed by counting its bytes (RFC 6587): no text can end it early."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    message = f"<{_NOTICE}>1 {time} {socket.gethostname() or '-'} storqual - - - {line}".encode()
    try:
        with socket.create_connection((parts.hostname, parts.port or 514), timeout=_PATIENCE_S) as connection:
            connection.sendall(b"%d %s" % (len(message), message))
            connection.shutdown(socket.SHUT_WR)
            # a server that closes has taken everything; one that resets has not
            while connection.recv(4096):
                pass
    except OSError as problem:
        raise StorqualError(f"{parts.hostname}: the syslog server did not accept it ({problem})") from None
    return b""


def _append(parts: SplitResult, line: str) -> bytes:
    """One line at the end of a file, which the account there may be unable to do anything else with."""
    command = f"cat >> {shlex.quote(parts.path)} && sync -- {shlex.quote(parts.path)}"
    ended = run([*_ssh(parts), command], timeout=3 * _PATIENCE_S, send=f"{line}\n".encode())
    if ended.rc != 0:
        raise StorqualError(f"{parts.hostname}: the line was not appended: {ended.stderr.strip() or ended.rc}")
    return b""


def _ssh(parts: SplitResult) -> list[str]:
    host = f"{parts.username}@{parts.hostname}" if parts.username else str(parts.hostname)
    port = ["-p", str(parts.port)] if parts.port else []
    return ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_PATIENCE_S:g}", *port, "--", host]


def _timestamp(url: str, digest: bytes) -> bytes:
    """The authority's answer over the SHA-256 of `digest`, as it came; it was granted."""
    try:
        from rfc3161_client import (  # noqa: PLC0415 - an extra that most labs do without
            HashAlgorithm,
            TimestampRequestBuilder,
            decode_timestamp_response,
        )
    except ImportError:
        raise StorqualError("a time authority needs storqual with its extra: storqual[witness]") from None
    asked = TimestampRequestBuilder().data(digest).hash_algorithm(HashAlgorithm.SHA256).build()
    try:
        answer = _post(url, asked.as_bytes(), "application/timestamp-query")
        status = decode_timestamp_response(answer).status
    except ValueError as problem:
        raise StorqualError(f"{url}: no timestamp ({problem})") from None
    if status != 0:
        raise StorqualError(f"{url}: the timestamp was not granted (status {status})")
    return answer


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whom the inventory names is asked, and nobody else: a redirect is an error."""

    def redirect_request(self, *_: object) -> None:
        """None."""


_OPENER = urllib.request.build_opener(_NoRedirects)


def _post(url: str, data: bytes, content: str) -> bytes:
    """What a web server answers; its certificate must be one that this machine trusts. Raises ValueError."""
    request = urllib.request.Request(url, data=data, headers={"Content-Type": content})  # noqa: S310 - http or https by `witness_problem`
    answer, until = b"", time.monotonic() + 3 * _PATIENCE_S
    try:
        with _OPENER.open(request, timeout=_PATIENCE_S) as said:
            while chunk := said.read1(_MOST):
                answer += chunk
                if len(answer) > _MOST or time.monotonic() > until:
                    raise ValueError(f"the answer is longer than {_MOST} bytes, or takes too long")
    except (OSError, http.client.HTTPException) as problem:
        raise ValueError(str(problem) or type(problem).__name__) from None
    return answer
