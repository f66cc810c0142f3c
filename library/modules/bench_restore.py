# SPDX-License-Identifier: Apache-2.0
"""Put a bench back as it was found."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_restore
short_description: Put back everything that was changed, prove it, and forget it
description:
  - Puts back every value in C(<state_dir>/saved.json), from any later moment, reads it back, and removes that file
    only when every value is as it was. A drive that is gone does not keep the others from being restored.
  - When another kernel runs than before, only the boot loader is put back and RV(reboot) is true; boot the bench and
    call again.
options:
  state_dir:
    description: Where the bench keeps its lock and what it was like before.
    type: path
    default: /var/lib/storqual
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
author: [storqual]
"""

EXAMPLES = r"""
- name: Leave the bench as it was found
  bench_restore:
  register: restored
"""

RETURN = r"""
restored:
  description: Nothing is left to restore.
  returned: success
  type: bool
  sample: true
reboot:
  description: The former kernel is the default again but does not run yet.
  returned: success
  type: bool
  sample: false
run:
  description: The run whose changes were undone; empty when there were none.
  returned: success
  type: str
  sample: 20261121T021500Z-adapter-1a2b
settings:
  description: What was put back, with the former value as C(declared).
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

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.command import run
from ansible.module_utils.storqual_core.kernel_boot import System
from ansible.module_utils.storqual_core.module_result import finish
from ansible.module_utils.storqual_core.restore import Tools, restore


def main() -> None:
    """Read arguments, restore, end."""
    module = AnsibleModule(
        argument_spec={"state_dir": {"type": "path", "default": "/var/lib/storqual"}}, supports_check_mode=True
    )
    tools = Tools(run, System(run))
    finish(module, lambda: restore(module.params["state_dir"], tools, check=module.check_mode))


if __name__ == "__main__":
    main()
