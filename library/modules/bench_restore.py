# SPDX-License-Identifier: Apache-2.0
"""Put a bench back as it was found."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_restore
short_description: Restore everything that was changed, and prove it
description:
  - Puts back every value in C(<state_dir>/saved.json), from any later moment, reads it back, and removes that file
    only when every value is as it was. A drive that is gone does not keep the others from being restored.
  - When another kernel runs than before, only the boot loader and firmware are put back and RV(reboot) is true; boot
    the bench and call again.
options:
  state:
    description:
      - V(restored) restores the bench. V(accepted) keeps the bench as it is now, and moves the saved state to
        C(<state_dir>/accepted).
    type: str
    choices: [accepted, restored]
    default: restored
  file:
    description: With V(restored), a saved state that was set aside by V(accepted), to be restored.
    type: path
    default: ""
  state_dir:
    description: Where the bench keeps its lock and what it was like before.
    type: path
    default: /var/lib/storqual
attributes:
  check_mode:
    description: In check mode everything is read and compared, and nothing is written.
    support: full
  diff_mode:
    description: Nothing is changed, so there is nothing to show.
    support: none
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Leave the bench as it was found
  bench_restore:
  register: restored

- name: Keep the bench as it is
  bench_restore:
    state: accepted
"""

RETURN = r"""
kept:
  description: Where the saved state was moved to.
  returned: when accepted
  type: str
  sample: /var/lib/storqual/accepted/2026-11-21T021500Z-setup.json
restored:
  description: Nothing is left to restore.
  returned: when restoring
  type: bool
  sample: true
power_cycle:
  description: The boot must be a power cycle, or the former firmware of something does not start.
  returned: when restoring
  type: bool
  sample: false
reboot:
  description: The former kernel is the default again, or the former firmware is written, but does not run yet.
  returned: success
  type: bool
  sample: false
run:
  description: The run whose changes were undone; empty when there were none.
  returned: success
  type: str
  sample: 20261121T021500Z-adapter-1a2b
settings:
  description: What was restored, with the former value as C(declared).
  returned: always
  type: list
  elements: dict
  sample: [{name: drive.WCE, drive: "0x5000c50015ea71a0", declared: 1, before: 0, read_back: 1, changed: true}]
steps:
  description: What was written, in order.
  returned: always
  type: list
  elements: str
  sample: ["boot loader: saved_entry put back"]
"""

from typing import Any, Mapping

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.command import run
from ansible.module_utils.storqual_core.kit.results import STATE_DIR, finish
from ansible.module_utils.storqual_core.provision.boot import System
from ansible.module_utils.storqual_core.provision.restore import Tools, accept, restore, take_up


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["accepted", "restored"], "default": "restored"},
            "file": {"type": "path", "default": ""},
            **STATE_DIR,
        },
        supports_check_mode=True,
    )
    finish(module, lambda: work(module.params, check=module.check_mode))


def work(given: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    result: dict[str, Any]
    if given["state"] == "accepted":
        result = accept(given["state_dir"], check=check)
    else:
        if given["file"] and not check:
            take_up(given["state_dir"], given["file"])
        result = restore(given["state_dir"], Tools(run, System(run)), check=check)
    return result


if __name__ == "__main__":
    main()
