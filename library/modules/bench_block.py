# SPDX-License-Identifier: Apache-2.0
"""Start, collect or stop one batch on a bench."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_block
short_description: Run a batch of fio launches on a bench without the control node
description:
  - A batch is an ordered list of fio launches that the bench program runs by itself, spooling each finished sample to
    disk. This module starts one, fetches what is finished, or stops it.
  - A playbook that wants live progress follows a batch with M(measure_block) instead, which costs the bench no Python
    start per question.
options:
  state:
    description:
      - C(started) starts the batch and returns at once. A batch that is running, or is finished, is left alone; one
        that was interrupted in this boot continues with the launches that have no sample.
      - C(collected) returns the complete lines of the spool from O(offset) on.
      - C(stopped) ends the batch; the current launch is discarded.
    type: str
    choices: [started, collected, stopped]
    default: started
  block_file:
    description: The batch file on the bench.
    type: path
    required: true
  program:
    description: The bench program on the bench (C(core-<sha>.pyz)); needed for C(started).
    type: path
  offset:
    description: Byte of the spool to begin at, for C(collected).
    type: int
    default: 0
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
author: [storqual]
"""

EXAMPLES = r"""
- name: Start a batch
  bench_block:
    block_file: /var/lib/storqual/spool/20261121T020000Z-adapter-1a2b/s01-b01.json
    program: /var/lib/storqual/core-0123456789abcdef.pyz

- name: Fetch what is finished
  bench_block:
    state: collected
    block_file: /var/lib/storqual/spool/20261121T020000Z-adapter-1a2b/s01-b01.json
    offset: "{{ taken.offset | default(0) }}"
  register: taken
"""

RETURN = r"""
running:
  description: Whether the batch runs now.
  returned: always
  type: bool
  sample: true
samples:
  description: How many samples are finished.
  returned: always
  type: int
  sample: 12
of:
  description: How many launches the batch has.
  returned: always
  type: int
  sample: 20
end:
  description: How the batch ended, null while it has not.
  returned: always
  type: dict
  sample: {outcome: done, message: ""}
lines:
  description: Lines of the spool, each one JSON object.
  returned: when O(state=collected)
  type: str
  sample: "{\"kind\":\"start\"}\n"
offset:
  description: Where to begin the next time.
  returned: when O(state=collected)
  type: int
  sample: 18
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.errors import GuardRefusalError, StorqualError
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.measure.control import (
    BlockPlace,
    collect_from,
    read_place,
    start_block,
    status_of,
    stop_block,
)


def work(given: dict[str, Any], check: bool) -> dict[str, Any]:
    """Do what is asked; the result says how the batch is afterwards."""
    place = read_place(Path(given["block_file"]))
    before = status_of(place)
    if given["state"] == "collected":
        lines, offset = collect_from(place, given["offset"])
        return {**_told(before), "changed": False, "lines": lines, "offset": offset}
    if given["state"] == "stopped":
        if not check:
            stop_block(place)
        return {**_told(status_of(place)), "changed": bool(before["running"])}
    ended = before["end"]
    finished = isinstance(ended, dict) and ended.get("outcome") in ("done", "lost")
    needed = not before["running"] and not finished
    if needed and not check:
        _start(place, Path(given["program"]))
    return {**_told(status_of(place)), "changed": needed}


def _told(status: dict[str, Any]) -> dict[str, Any]:
    return {name: status[name] for name in ("running", "samples", "of", "end")}


def _start(place: BlockPlace, program: Path) -> None:
    """Start the batch. Raises GuardRefusalError or StorqualError with what the bench program said."""
    code, message = start_block(place, program)
    if code == GuardRefusalError.exit_code:
        raise GuardRefusalError(message.splitlines())
    if code:
        raise StorqualError(message)


def main() -> None:
    """Read arguments, do the work, end."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "collected", "stopped"], "default": "started"},
            "block_file": {"type": "path", "required": True},
            "program": {"type": "path"},
            "offset": {"type": "int", "default": 0},
        },
        required_if=[("state", "started", ("program",))],
        supports_check_mode=True,
    )
    finish(module, lambda: work(module.params, module.check_mode))


if __name__ == "__main__":
    main()
