# SPDX-License-Identifier: Apache-2.0
"""A soak: reads of everything behind what was flashed, with the counters and the kernel's log around them.

Firmware that starts and tells its version may still reset under load. Nothing is measured here: the reads must end
well, every drive must answer, no error counter may grow, and the kernel may have nothing to say.
"""

from __future__ import annotations

from contextlib import closing
from typing import Callable, Sequence

from .error_counters import read_error_counters
from .errors import ToolError
from .kernel_findings import find_all
from .kernel_log import KernelLog
from .machine import Machine, block_node
from .random_reads import random_reads

__all__ = ["OFFERED", "soak"]

OFFERED = 4
"""Reads in flight per drive: enough to have an adapter queue commands."""


def soak(
    machine: Machine,
    names: Sequence[str],
    seconds: float,
    sleep: Callable[[float], None],
    log_device: str = "/dev/kmsg",
) -> str:
    """Read the drives with these kernel names for `seconds`; what was seen, as part of a sentence.

    Raises ToolError with everything that was wrong.
    """
    if not names:
        return "nothing behind it to read"
    paths = {name: machine.path(block_node(name)) for name in names}
    with random_reads(list(paths.values()), 1):
        # the first command after a reset is answered with a unit attention, which the kernel counts
        sleep(0.1)
    before = {name: read_error_counters(machine, name) for name in names}
    with closing(KernelLog(log_device)) as log:
        with random_reads(list(paths.values()), OFFERED) as tally:
            sleep(seconds)
        findings = find_all(record.text for record in log.read() if record.from_kernel)
        unread = log.reason
    problems = [f"a read failed: {told}" for told in tally.failures]
    problems += [f"{path} answered no read" for path, count in tally.reads.items() if count == 0]
    for name in names:
        now = read_error_counters(machine, name)
        grown = {counter: now.get(counter, 0) - value for counter, value in before[name].items()}
        problems += [f"{name}: {counter} grew by {count}" for counter, count in grown.items() if count > 0]
    problems += [finding.sentence() for finding in findings]
    if problems:
        raise ToolError("the soak failed: " + "; ".join(problems))
    drives = f"{len(names)} drive{'s' if len(names) > 1 else ''}"
    told = f"{sum(tally.reads.values())} reads of {drives} in {seconds:g} s, no error counter grew"
    return f"{told}; {unread}" if unread else f"{told}, nothing in the kernel's log"
