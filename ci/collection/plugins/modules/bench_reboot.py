# SPDX-License-Identifier: Apache-2.0
"""Reboot a bench and wait for its next boot; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_reboot
short_description: Reboot a bench and wait for its next boot
description:
  - Reboots the bench, waits for another boot id, then for the end of the boot. Twice a second it looks whether the
    bench answers.
  - M(ansible.builtin.reboot) does the same with pauses that double. A bench that is up in twenty seconds would be
    found a third later.
options:
  limit_s:
    description: Seconds until a bench that does not answer is given up.
    type: float
    default: 300
  connect_s:
    description: Seconds that one attempt to connect may take where the way leads through another host.
    type: float
    default: 5
  settle_s:
    description: Seconds to wait for the end of the boot.
    type: float
    default: 90
  virtual_state:
    description: State folder of a virtual bench on the control node; by default the one of its inventory.
    type: path
  recovery_limit_s:
    description: Seconds within which a bench that does not come back is brought back step by step.
    type: float
    default: 900
  reboot:
    description: Whether to reboot; else the bench is asked for its boot, and brought back where it does not answer.
    type: bool
    default: true
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Boot the bench again
  bench_reboot:
    limit_s: 600
"""

RETURN = r"""
boot_id:
  description: The id of the new boot.
  returned: success
  type: str
previous_boot_id:
  description: The id of the boot before.
  returned: success
  type: str
kernel:
  description: The release of the kernel that runs now.
  returned: success
  type: str
seconds:
  description: Seconds until the bench answered.
  returned: success
  type: float
ended_by:
  description: What ended a boot that hung, such as its watchdog; empty for one that came back by itself.
  returned: success
  type: str
system:
  description: What systemd says at the end of the boot (V(running), V(degraded), V(starting)); empty without systemd.
  returned: success
  type: str
"""
