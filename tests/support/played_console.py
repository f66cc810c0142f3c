# SPDX-License-Identifier: Apache-2.0
"""A console server that a test plays: what the test says is said to whoever listens, what is typed is kept."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from storqual.inputs.console_way import ConsoleWay

LIMIT_S = 20.0
PANIC = Path(__file__).with_suffix(".panic").read_text(encoding="utf-8")


def until(happens: Callable[[], object]) -> None:
    """Another process does it: nothing here could be waited for but its files."""
    end = time.monotonic() + LIMIT_S
    while not happens():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


class ConsoleServer:
    """It listens on loopback until it is closed; `greeting` is said to each who connects."""

    def __init__(self, greeting: bytes = b"") -> None:
        self._greeting = greeting
        self.typed = b""
        self._peer: socket.socket | None = None
        self.listens = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def way(self) -> ConsoleWay:
        return ConsoleWay(telnet=f"127.0.0.1:{self.port}")

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                peer.sendall(self._greeting)
                self._peer = peer
                self.listens.set()
                with contextlib.suppress(OSError):
                    while data := peer.recv(4096):
                        self.typed += data
                self.listens.clear()

    def say(self, data: bytes) -> None:
        assert self.listens.wait(LIMIT_S)
        assert self._peer is not None
        self._peer.sendall(data)

    def cut(self) -> None:
        """End the connection; the next one is taken."""
        assert self.listens.wait(LIMIT_S)
        assert self._peer is not None
        self.listens.clear()
        self._peer.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._peer is not None:
            with contextlib.suppress(OSError):
                self._peer.shutdown(socket.SHUT_RDWR)
            self._peer.close()
