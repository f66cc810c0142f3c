# SPDX-License-Identifier: Apache-2.0
"""The answer of a web server of the lab: a witness, a webhook, an outlet, a BMC."""

import http.client
import queue
import threading
import urllib.request
from collections.abc import Sequence


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whom the lab names is asked, and nobody else: a redirect is an error, and carries no password on."""

    def redirect_request(self, *_: object) -> None:
        """None."""


def web_answer(
    request: urllib.request.Request,
    *,
    limit_s: float,
    most: int = 1 << 16,
    handlers: Sequence[urllib.request.BaseHandler] = (),
) -> bytes:
    """What a server answers, at most `most` bytes; over HTTPS its certificate is one that this machine trusts.

    `limit_s` is for all of it, also for a server that sends a byte now and then, which a socket's own limit does not
    end. Raises OSError, of which HTTPError has the number of a refusal.
    """
    outcome: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            with urllib.request.build_opener(_NoRedirects, *handlers).open(request, timeout=limit_s) as response:
                answer = response.read(most + 1)
                whole = len(answer) <= most and not response.length
            outcome.put(answer if whole else OSError(f"the answer is longer than {most} bytes, or cut off"))
        except Exception as problem:  # noqa: BLE001 - raised again by who waits
            outcome.put(problem)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = outcome.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError(f"no whole answer within {limit_s:g} s") from None
    if isinstance(answer, http.client.HTTPException | ValueError):
        raise OSError(str(answer) or type(answer).__name__)
    if isinstance(answer, Exception):
        raise answer
    return answer
