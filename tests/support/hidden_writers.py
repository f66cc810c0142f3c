# SPDX-License-Identifier: Apache-2.0
"""Programs that can write to a device and that the descriptors of their process do not show, for real kernels.

Each is a script that says `ready` when it holds the device and then waits; run with the node as its argument. Written
for Python 3.8 and its standard library, so that a bench runs them too.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_READY = "print('ready', flush=True); time.sleep(600)\n"
_HEAD = "import array, ctypes, mmap, os, socket, sys, threading, time\nnode = sys.argv[1]\nlibc = ctypes.CDLL(None)\n"

WRITES_ON = "a program that goes on writing"
"""The one of them that writes; the others could."""

SCRIPTS = {
    "a thread with a table of its own": """
def hold():
    assert libc.unshare(0x400) == 0
    os.open(node, os.O_RDWR)
    READY
thread = threading.Thread(target=hold)
thread.start()
thread.join()
""",
    "a process whose first thread has ended": """
def hold():
    os.open(node, os.O_RDWR)
    time.sleep(0.3)
    READY
threading.Thread(target=hold).start()
libc.pthread_exit(None)
""",
    "a file registered with io_uring": """
ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))
assert ring >= 0
device = os.open(node, os.O_RDWR)
assert libc.syscall(427, ring, 2, (ctypes.c_int * 1)(device), 1) == 0
os.close(device)
READY
""",
    "a descriptor that waits in a socket": """
one, other = socket.socketpair(socket.AF_UNIX)
device = os.open(node, os.O_RDWR)
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [device]))])
os.close(device)
READY
""",
    "a mapping whose descriptor is closed": """
device = os.open(node, os.O_RDWR)
memory = mmap.mmap(device, 4096)
os.close(device)
READY
""",
    "a private node of the device": """
private = node + ".private"
os.mknod(private, 0o60600, os.stat(node).st_rdev)
device = os.open(private, os.O_RDWR)
os.unlink(private)
READY
""",
    WRITES_ON: """
device = os.open(node, os.O_RDWR | os.O_DSYNC)
def write():
    while os.pwrite(device, bytes(4096), 1 << 22):
        time.sleep(0.05)
threading.Thread(target=write).start()
READY
""",
}
"""By what they are; where the kernel has no such thing the script ends with an error."""


@contextmanager
def running(kind: str, node: str) -> Iterator[int]:
    """One of them, holding `node` while the block runs; its process number. Raises RuntimeError."""
    lines = SCRIPTS[kind].splitlines()
    code = _HEAD + "\n".join(line.replace("READY", _READY.replace("\n", "")) for line in lines)
    program = subprocess.Popen(
        [sys.executable, "-c", code, node], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        if program.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{kind}: it could not be made: {program.communicate()[1][-300:]}")
        yield program.pid
    finally:
        program.kill()
        program.communicate()
