# SPDX-License-Identifier: Apache-2.0
"""Files that a boot loader reads are brought to where it looks: GRUB replays no journal, neither ext4's nor XFS's.

`fsync` puts a file into the journal; after a power cut the kernel finds it there and GRUB does not. `syncfs` puts
what an ext4 journal holds into its place, XFS does that as it is frozen. So each step that rests on another one comes
after that one was settled: entry and kernel before grubenv names them, grubenv before an entry goes. (grub-editenv
cuts its file to nothing and writes it anew, so that the loader sees its change no sooner than any other.)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Sequence

from ..host.in_use import Mount, parse_mountinfo
from ..kit.command import Runner
from ..kit.errors import MissingToolError, ToolError

_TIMEOUT_S = 120.0
_TRIES = 3
# While it is frozen nothing can write, and /boot may be part of the root. What thaws it when this process is killed
# or late is a session of its own and started beforehand, for a program may not start on what is frozen.
_FREEZE = (
    'setsid sh -c \'sleep 20; exec fsfreeze --unfreeze "$1"\' guard "$1" </dev/null >/dev/null 2>&1 & '
    'trap "" HUP INT TERM; fsfreeze --freeze "$1"; ended=$?; fsfreeze --unfreeze "$1" || ended=$?; exit $ended'
)


def _mount(path: str, proc: str) -> Mount | None:
    """The mount that holds `path`; None where the kernel's table does not say."""
    try:
        device = Path(path).stat().st_dev
        lines = Path(f"{proc}/self/mountinfo").read_text(encoding="latin-1").split("\n")
    except OSError:
        return None
    number = f"{os.major(device)}:{os.minor(device)}"
    whole = os.path.realpath(path)
    holding = [
        mount
        for mount in parse_mountinfo(lines)
        if mount.number == number and f"{whole}/".startswith(mount.point.rstrip("/") + "/")
    ]
    # of mounts one above the other the last one counts
    return max(enumerate(holding), key=lambda at: (len(at[1].point), at[0]))[1] if holding else None


def settle(runner: Runner, folders: Sequence[str], proc: str = "/proc") -> None:
    """Have a boot loader see what lies in these folders as it is now, also after a power cut. Raises ToolError."""
    done = set()
    for folder in folders:
        device = Path(folder).stat().st_dev
        if device in done:
            continue
        done.add(device)
        mount = _mount(f"{folder}/.", proc)
        if mount is not None and mount.kind == "xfs":
            runner(["sh", "-c", _FREEZE, "sh", mount.point], timeout=_TIMEOUT_S).expect()
        else:
            runner(["sync", "-f", folder], timeout=_TIMEOUT_S).expect()


def check_seen(runner: Runner, files: Sequence[str], program: str, proc: str = "/proc") -> bool:
    """Read settled files of one file system as GRUB does (`program` is its grub-fstest), from the disk itself.

    Returns whether they could be read so: the program or a loop device may be missing, and a file system that is
    mounted in part has no such paths. Raises ToolError when GRUB sees another file than the kernel.
    """
    mount = _mount(files[0], proc)
    if mount is None or mount.root != "/" or not mount.source.startswith("/dev/"):
        return False
    wrong = ""
    for again in range(_TRIES):
        if again:
            # somebody wrote beside it meanwhile, which left the folder in the journal again
            settle(runner, [str(Path(files[0]).parent)], proc)
        try:
            wrong = _differing(runner, mount, files, program)
        except MissingToolError:
            return False
        if not wrong:
            return True
    if wrong == mount.source:
        return False
    raise ToolError(
        f"the boot loader does not see {wrong} as it was written: {mount.source} has it in its journal only, and a "
        "loader replays none"
    )


def _differing(runner: Runner, mount: Mount, files: Sequence[str], program: str) -> str:
    """The first file that GRUB reads differently; the device itself where it cannot be read past the page cache."""
    ended = runner(["losetup", "--find", "--show", "--read-only", "--direct-io=on", mount.source], timeout=_TIMEOUT_S)
    loop = ended.stdout.strip()
    if ended.rc != 0 or not loop:
        return mount.source
    try:
        for file in files:
            inside = "/" + os.path.relpath(os.path.realpath(file), mount.point)
            compared = runner([program, loop, "cmp", f"(loop0){inside}", file], timeout=_TIMEOUT_S)
            if compared.rc != 0:
                return file
    finally:
        runner(["losetup", "--detach", loop], timeout=_TIMEOUT_S)
    return ""
