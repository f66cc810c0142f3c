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
  drives:
    description:
      - Declared settings by drive id (WWN, or serial where a drive has none), with the C(drive) names of a drop.
      - Mode-page fields are left to M(scsi_mode_page). A null value only reads.
    type: dict
    required: true
  adapters:
    description: The bench's adapters as its inventory declares them; the claims of the drives are in it.
    type: dict
    required: true
  prove_s:
    description:
      - Show each declared queue depth in effect by offering more reads than it for this many seconds per drive and
        watching the in-flight count. 0 does not. Reads only; skipped in check mode.
    type: float
    default: 0
  as_found:
    description: Names by drive id that must have the value they had before the run, where the run changed it.
    type: dict
    default: {}
  switched:
    description: Names by drive id whose value is kept although nothing changes it here, because a block will.
    type: dict
    default: {}
  state_dir:
    description: Where the bench keeps its lock and what it was like before.
    type: path
    default: /var/lib/storqual
  run:
    description: The run this belongs to; what is kept of another run must be restored first.
    type: str
    default: provision
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: [storqual]
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
from ansible.module_utils.storqual_core.drive_step import Queues
from ansible.module_utils.storqual_core.module_result import finish
from ansible.module_utils.storqual_core.proofs import prove_queue_depths
from ansible.module_utils.storqual_core.provision_drives import DriveRequest, provision_drives


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "drives": {"type": "dict", "required": True},
            "adapters": {"type": "dict", "required": True},
            "prove_s": {"type": "float", "default": 0.0},
            "as_found": {"type": "dict", "default": {}},
            "switched": {"type": "dict", "default": {}},
            "state_dir": {"type": "path", "default": "/var/lib/storqual"},
            "run": {"type": "str", "default": "provision"},
        },
        supports_check_mode=True,
    )
    given = module.params
    request = DriveRequest(
        drives=given["drives"],
        adapters=given["adapters"],
        state_dir=given["state_dir"],
        run=given["run"],
        check=module.check_mode,
        as_found=given["as_found"],
        switched=given["switched"],
    )
    seconds = given["prove_s"]
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
