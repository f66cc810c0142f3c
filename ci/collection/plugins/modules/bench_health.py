# SPDX-License-Identifier: Apache-2.0
"""Try what a bench is watched and brought back by; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_health
short_description: Try what a bench is watched and brought back by
description:
  - Says of power, console, watchdog, pstore and kdump whether they work. Nothing is changed without O(prove).
  - Fails where one of them is there and does not work.
options:
  prove:
    description: Whether the watchdog is let fire once and the kernel made to panic once. Both start the bench again.
    type: bool
    default: false
  boot_limit_s:
    description: Seconds until the bench answers after either.
    type: float
    default: 600
  state_dir:
    description: The folder on the bench with its lock file. A bench that a run holds is not started again.
    type: path
    default: /var/lib/storqual
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Try what the bench is watched and brought back by
  bench_health:
    prove: true
"""

RETURN = r"""
health:
  description: Of each part C(part), C(works) (works, broken, absent or not tried), and C(text).
  returned: always
  type: list
  elements: dict
"""
