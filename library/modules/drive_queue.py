# SPDX-License-Identifier: Apache-2.0
"""Set the kernel's queue of many drives in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: drive_queue
short_description: Set queue depth, I/O scheduler and queued requests of claimed drives
description:
  - Sets what the kernel keeps per drive (C(queue_depth), C(scheduler), C(nr_requests), C(read_ahead_kb) and so on),
    the scheduler first because it changes the number of requests; then reads back.
  - A queue depth above what the adapter takes in all is refused before any write.
  - The old value is kept in C(<state_dir>/saved.json) before the first write. A boot forgets these settings.
options:
  prove_s:
    description:
      - Show each declared queue depth in effect by offering more reads than it for this many seconds per drive and
        watching the in-flight count. 0 does not. Reads only; skipped in check mode.
    type: float
    default: 0
extends_documentation_fragment: [storqual.adapters, storqual.drive_settings, storqual.step]
"""

EXAMPLES = r"""
- name: A queue of four without a scheduler, shown in effect
  drive_queue:
    adapters: "{{ storqual_adapters }}"
    prove_s: 1
    drives:
      "0x5000c50015ea71a0": {queue_depth: 4, scheduler: none}
"""

RETURN = r"""
settings:
  description: One entry per drive and declared setting.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: drive.queue_depth, drive: "0x5000c50015ea71a0", declared: 4, before: 30, read_back: 4, changed: true,
       proven: true, proof: 4 in flight at most in 812 looks while 8 reads were offered}
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["0x5000c50015ea71a0 drive.WCE: 1, declared 0"]
steps:
  description: What was written, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: ["0x5000c50015ea71a0: queue_depth set to 4"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.arguments import ADAPTERS, DRIVE_SETTINGS, STEP
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.provision.drive_step import Queues
from ansible.module_utils.storqual_core.provision.drives import DriveRequest, provision_drives
from ansible.module_utils.storqual_core.provision.proofs import prove_queue_depths


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "prove_s": {"type": "float", "default": 0.0},
            **ADAPTERS,
            **DRIVE_SETTINGS,
            **STEP,
        },
        supports_check_mode=True,
    )
    given = dict(module.params)
    seconds = given.pop("prove_s")
    request = DriveRequest(**given, check=module.check_mode)
    finish(
        module,
        lambda: provision_drives(
            request,
            Queues(),
            queue=True,
            prove=(lambda settings, targets: prove_queue_depths(settings, targets, seconds)) if seconds > 0 else None,
        ),
    )


if __name__ == "__main__":
    main()
