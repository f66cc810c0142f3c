# SPDX-License-Identifier: Apache-2.0
"""What a suite may pass on to fio: nothing that names another file, runs a program or changes the target's size."""

from __future__ import annotations

import re
from typing import Callable, Mapping

__all__ = ["PASSED", "read_options"]

_LOAD = (
    "blockalign bssplit iodepth_batch iodepth_batch_complete_min "
    "iodepth_batch_complete_max iodepth_low io_submit_mode serialize_overlap percentage_random "
    "random_distribution random_generator randrepeat norandommap startdelay nonvectored nowait hipri registerfiles "
    "fixedbufs sqthread_poll sqthread_poll_cpu userspace_reap cmdprio_percentage prio prioclass nice"
)
_RATE = (
    "rate rate_min rate_iops rate_iops_min rate_process rate_ignore_thinktime rate_cycle thinktime thinktime_spin "
    "thinktime_blocks thinktime_blocks_type thinktime_iotime latency_target latency_window latency_percentile "
    "latency_run max_latency steadystate steadystate_duration steadystate_ramp_time"
)
_DATA = (
    "buffer_compress_percentage buffer_compress_chunk buffer_pattern dedupe_percentage dedupe_mode refill_buffers "
    "scramble_buffers zero_buffers fsync fdatasync end_fsync sync invalidate verify do_verify verify_async "
    "verify_backlog verify_backlog_batch verify_dump verify_fatal verify_interval verify_pattern"
)
_MACHINE = "cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy mem gtod_reduce clat_percentiles"
PASSED = frozenset(f"{_LOAD} {_RATE} {_DATA} {_MACHINE}".split())
"""The names of fio options that are passed on as they are."""

_VALUE = re.compile(r"[^\x00-\x1f\x7f]{1,200}\Z")
_MEMORY = frozenset({"malloc", "shm", "shmhuge", "mmap", "mmapshared"})


def read_options(entry: object, bad: Callable[[str, object, str], None]) -> Mapping[str, str]:
    """Options as fio reads them; `bad(key, found, expected)` is called for each that is not passed on."""
    if not isinstance(entry, dict):
        bad("options", entry, "a mapping of fio options")
        return {}
    read = {}
    for name, value in entry.items():
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if name not in PASSED:
            bad(f"options.{name}", value, "an option that cannot lead fio elsewhere (fio_options.py lists them)")
        elif name == "mem" and text not in _MEMORY:
            bad("options.mem", value, "one of " + ", ".join(sorted(_MEMORY)))
        elif not isinstance(value, (str, int, float)) or not _VALUE.match(text):
            bad(f"options.{name}", value, "one plain value")
        else:
            read[str(name)] = text
    return read
