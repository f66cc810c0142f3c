# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium over its own pipe (no port, no driver): open a file, look at it, measure it, print it.

The DevTools protocol evaluates in a page whatever the page's own content policy forbids, so that axe-core can look at
a page that allows no script.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

_LIMIT_S = 60.0


def find_chromium() -> str | None:
    """The program, None where there is none."""
    return next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)


class Browser:
    """One tab of one browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._buffer = b""
        self._events: list[str] = []
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol. Raises RuntimeError when the browser refuses it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error'].get('message')}")
                return dict(answer["result"])
            self._events.append(str(answer.get("method")))

    def wait_for(self, event: str) -> None:
        """Wait until the browser says so, or has said so since the last page was asked for."""
        while event not in self._events:
            self._events.append(str(self._message().get("method")))

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select([self._in], [], [], _LIMIT_S)[0]:
                raise TimeoutError(f"the browser said nothing for {_LIMIT_S:g} s")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self._buffer += data
        first, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(first))

    def show(self, page: Path, *, width: int, height: int, dark: bool = False, media: str = "screen") -> None:
        """Load a file at this size, in this colour scheme, for `screen` or `print`."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is awaited. Raises RuntimeError when it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def print(self, width: float, height: float) -> bytes:
        answer = self.call(
            "Page.printToPDF", paperWidth=width, paperHeight=height, preferCSSPageSize=False, printBackground=True
        )
        return base64.b64decode(answer["data"])


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """A running browser; it is gone afterwards."""
    to_browser_read, to_browser_write = os.pipe()
    from_browser_read, from_browser_write = os.pipe()
    # Chromium's own sandbox does not start for root; the pages are this project's own
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="storqual-browser-", ignore_cleanup_errors=True) as profile:
        argv = [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--disable-gpu"]
        argv += ["--no-first-run", "--hide-scrollbars", *sandbox, "about:blank"]
        # the pipe's two ends are file descriptors 3 and 4 by definition
        child = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser_read} 4>&{from_browser_write}', "bash", *argv],
            pass_fds=(to_browser_read, from_browser_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser_read)
        os.close(from_browser_write)
        try:
            yield Browser(to_browser_write, from_browser_read)
        finally:
            child.terminate()
            child.wait(timeout=_LIMIT_S)
            os.close(to_browser_write)
            os.close(from_browser_read)
