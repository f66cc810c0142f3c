# SPDX-License-Identifier: Apache-2.0
"""The small system that a crash kernel starts: an archive of files, and a script that writes the dump to one drive.

It holds the drivers of that drive and nothing else that could reach a disk. The script knows the drive by its world
wide id and its size as they were when the guard allowed it, and writes only to the bytes it was given: no guard runs
beside a crash kernel.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Mapping, Sequence

from ..kit.archives import compose, new_folder, new_program

MIB = 1 << 20
_WAIT_S, _DUMP_S = 60, 600


@dataclass(frozen=True)
class DumpPlace:
    """Where a dump may lie: the drive by its `wwid` attribute and its sectors; first byte and bytes, of whole MiB."""

    wwid: str
    sectors: int
    first: int
    size: int


def make_script(place: DumpPlace, modules: Sequence[tuple[str, str]]) -> str:
    """The first program of a crash kernel: load `modules` (path, options), write the dump, start the bench again."""
    loads = "\n".join(f"insmod {shlex.quote(path)} {options}".rstrip() for path, options in modules)
    return f"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/null >/dev/console 2>&1
/bin/busybox --install -s /bin
export PATH=/bin
echo "storqual: the crash kernel has started"
{loads}
found= left={_WAIT_S}
while [ -z "$found" ] && [ $left -gt 0 ]; do
    for disk in /sys/block/*; do
        wwid= sectors=
        for file in "$disk/device/wwid" "$disk/wwid"; do
            [ -e "$file" ] && read -r wwid < "$file"
        done
        read -r sectors < "$disk/size"
        [ "$wwid" = {shlex.quote(place.wwid)} ] && [ "$sectors" = {place.sectors} ] && found="$found ${{disk##*/}}"
    done
    left=$((left - 1))
    [ -n "$found" ] || sleep 1
done
set -- $found
if [ $# = 1 ] && [ -b "/dev/$1" ]; then
    echo "storqual: the dump goes to $1"
    timeout {_DUMP_S} makedumpfile -F -l -d 31 /proc/vmcore |
        head -c {place.size} | dd of="/dev/$1" bs=1M seek={place.first // MIB} conv=notrunc,fsync
else
    echo "storqual: $# drives answer to {place.wwid}, no dump is written"
fi
sync
echo "storqual: the crash kernel ends"
reboot -f
"""


def pack(files: Mapping[str, bytes]) -> bytes:
    """An archive of programs by absolute path, as a kernel unpacks it into its first file system."""
    folders: dict[str, None] = {}
    for path in files:
        parts = path.strip("/").split("/")[:-1]
        folders.update(dict.fromkeys("/".join(parts[: count + 1]) for count in range(len(parts))))
    return compose([*map(new_folder, folders), *(new_program(path.strip("/"), data) for path, data in files.items())])
