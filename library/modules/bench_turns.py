# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin `bench_turns`, which does the work on the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_turns
short_description: Run batches of turns on a bench, and follow them with live progress
description:
  - A batch is an ordered list of turns; launches of fio, trials with a fault, or runs of foreign programs. The bench
    program runs it by itself. What it finished is collected into the run directory.
  - While the campaign's next step is one more batch of the same session on the same boot, that batch is run too.
options:
  run:
    description: The run directory on the control node.
    type: path
    required: true
  block:
    description: The batch to begin with.
    type: str
  settle:
    description: Run no batch. Wait until none runs, and put right what faults of an interrupted trial left.
    type: bool
    default: false
  state_dir:
    description: The state folder of the bench.
    type: path
    required: true
  python:
    description: The Python interpreter of the bench; by default the one that its inventory names.
    type: str
  poll_s:
    description: Seconds between two looks at a bench that measures.
    type: float
    default: 2.0
  disturb:
    description: What the drop of a virtual bench asks to happen meanwhile.
    type: dict
  virtual_state:
    description: The state folder of a virtual bench on the control node; by default the one of its inventory.
    type: path
  recovery_limit_s:
    description: For how many seconds a bench that hangs is brought back before it is out of service.
    type: float
    default: 900.0
attributes:
  check_mode:
    description: A batch cannot be run without its effects.
    support: partial
    details: Nothing is run in check mode.
  diff_mode:
    description: Nothing is changed, so there is nothing to show.
    support: none
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Run a batch and those that follow it
  bench_turns:
    run: runs/20261121T020000Z-adapter-1a2b
    block: s01-b01
    state_dir: /var/lib/storqual
    python: python3
"""

RETURN = r"""
blocks:
  description: The batches that were run.
  returned: without O(settle)
  type: list
  sample: [s01-b01, s01-b02]
outcome:
  description: How the last of them ended, C(done), C(refused), C(stopped), C(lost) or C(died).
  returned: without O(settle)
  type: str
  sample: done
told:
  description: What was put right.
  returned: with O(settle)
  type: list
  sample: []
"""
