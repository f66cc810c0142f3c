# SPDX-License-Identifier: Apache-2.0
"""What a fault leaves on its bench that was cut short, and the shell scripts that put it right."""

from __future__ import annotations

import shlex

from .bench_faults import MEMORY
from .drive_faults import LAYER, RULES_MEMORY

SCAN = (
    "for file in /sys/class/scsi_host/host*/scan; do echo '- - -' > $file; done; "
    "for file in /sys/block/sd*/device/rescan; do echo 1 > $file; done; true"
)
_LAYERS = f"""\
for file in $(grep -ls '^{LAYER}' /sys/class/block/dm-*/dm/name); do
    name=$(cat "$file")
    dmsetup remove --retry "$name" >&2 && echo "$name" || exit 1
done"""
_SWITCHED_OFF = f"""\
file=%s/{MEMORY}
[ ! -s "$file" ] || {{
    while read -r value path; do echo "$value" > "$path" && echo "$path" || exit 1; done < "$file"
    rm "$file"
}}"""

# a rule that is gone already cannot be taken away once more
_RULES = f"""\
[ ! -s {RULES_MEMORY} ] || {{
    while read -r path value; do echo "$value" > "$path" && echo "$path" || true; done 2>/dev/null < {RULES_MEMORY}
    rm {RULES_MEMORY}
}}"""

PUT_RIGHT = (
    "between a load and its drive, and was removed",
    "switched off, and was switched on again",
    "changed by rules of scsi_debug, and was restored",
)
"""What the scripts find, in their order; each prints a name a line."""


def scripts(state_dir: str) -> tuple[str, ...]:
    """One for each of PUT_RIGHT."""
    return (_LAYERS, _SWITCHED_OFF % shlex.quote(state_dir), _RULES)
