# SPDX-License-Identifier: Apache-2.0
"""Switch a bench off and on, or read whether it is on; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_power
short_description: Switch a bench off and on by what its inventory names
description:
  - Reads or switches the power of the bench by the backends of C(storqual_power), one after the other, and believes
    what the bench shows. A bench is on when a boot answers, and off when it was silent for 20 seconds and no backend
    says on. A power cycle has succeeded when a new boot answers.
  - The backends are read by the plugin itself. A password in arguments would be one in a log.
options:
  switch:
    description: What is done.
    type: str
    choices: [state, "on", "off", cycle]
    required: true
  reason:
    description: Why, for the events of a run and the answer.
    type: str
  run:
    description: Run directory whose events record each step; it is not closed.
    type: path
  boot_s:
    description: The usual time of a boot in seconds. After half as much again the next backend is tried.
    type: float
  answers_within:
    description: Seconds for which each backend may be silent, where its entry in the inventory does not allow more.
    type: float
  answer:
    description: File for the answer of the command, as JSON.
    type: path
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: End what hangs
  bench_power:
    switch: cycle
    reason: hangs since 21:04
"""

RETURN = r"""
power:
  description: What is known of the bench at the end, with each step, what was answered and what the bench showed.
  returned: always
  type: dict
"""
