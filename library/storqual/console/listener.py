# SPDX-License-Identifier: Apache-2.0
"""Where a bench's kernel sends its messages to by netconsole, also while it panics: a UDP port or QEMU's socket."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

from storqual.base.netconsole import NetconsoleText, datagram_of
from storqual.virtual_bench.places import make_private
from storqual_core.kit.errors import ToolError

_LONGEST = 1 << 16
_BUFFER = 1 << 20
"""A whole panic, or the tasks that sysrq lists, come within a moment."""
_AT_ONCE = 64
"""Datagrams that are taken before the console and whoever asks are served again."""


class NetconsoleListener:
    """Takes what comes to an address and port from one sender; without a port, frames to a virtual bench's socket."""

    def __init__(self, listen: str, port: int = 0, sender: str = "") -> None:
        """Raises ToolError where it cannot be listened there."""
        self._path = None if port else Path(listen)
        self._sender, self._refused = sender, False
        self._text = NetconsoleText()
        family = socket.AF_UNIX if not port else socket.AF_INET6 if ":" in listen else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self.socket.settimeout(0)
        if self._path is not None:
            make_private(self._path.parent)
            self._path.unlink(missing_ok=True)
        try:
            self.socket.bind((listen, port) if port else listen)
        except OSError as problem:
            self.socket.close()
            where = f"{listen}, port {port}" if port else listen
            raise ToolError(f"netconsole cannot be listened to at {where}: {problem.strerror}") from None

    def receive(self) -> Iterator[tuple[str, bytes]]:
        """Of each datagram that waits what is to be noted, and its lines."""
        with suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                data, peer = self.socket.recvfrom(_LONGEST)
                if self._path is not None:
                    yield self._text.take(datagram_of(data))
                elif ip_address(peer[0].partition("%")[0]) == ip_address(self._sender):
                    yield self._text.take(data)
                elif not self._refused:
                    # said once: whoever floods this port must not fill the recording
                    self._refused = True
                    yield f"datagrams of {peer[0]} are not kept: the bench is {self._sender}", b""

    def close(self) -> None:
        self.socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            with suppress(OSError):
                self._path.parent.rmdir()
