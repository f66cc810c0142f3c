# SPDX-License-Identifier: Apache-2.0
"""A console server that a test plays: what the test says is said to whoever listens, what is typed is kept."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from storqual.inputs.console_way import ConsoleWay

LIMIT_S = 20.0
PANIC = """\
[   71.100000] BUG: unable to handle page fault for address: ffffb1a2c0000000
[   71.100100] #PF: supervisor read access in kernel mode
[   71.100200] Oops: 0000 [#1] PREEMPT SMP PTI
[   71.100300] CPU: 3 PID: 812 Comm: fio Tainted: G           OE      6.1.0-47-amd64 #1
[   71.100400] RIP: 0010:megasas_build_and_issue_cmd_fusion+0x1a3/0x9c0 [megaraid_sas]
[   71.100500] RAX: 0000000000000000 RBX: ffff9d1b01a2c000 RCX: 0000000000000000
[   71.100600] Call Trace:
[   71.100700]  <TASK>
[   71.100800]  megasas_queue_command+0x12b/0x210 [megaraid_sas]
[   71.100900]  scsi_queue_rq+0x3c8/0xc70 [scsi_mod]
[   71.101000]  </TASK>
[   71.101100] Kernel panic - not syncing: Fatal exception
[   71.101200] Kernel Offset: 0x2e000000 from 0xffffffff81000000
[   71.101300] ---[ end Kernel panic - not syncing: Fatal exception ]---
"""


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
