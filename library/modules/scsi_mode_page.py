# SPDX-License-Identifier: Apache-2.0
"""Set what drives keep and what the kernel keeps for each of them, of many drives in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: scsi_mode_page
short_description: Set SCSI mode pages, NVMe write caches and the kernel's queues of claimed drives
description:
  - Reads settings of drives, compares them with what is declared, and writes what differs; then reads back. All
    drives are read before the first is written, and what a drive or its driver does not allow is a failure of its
    own, with nothing written to any drive.
  - Fields of mode pages have their standard acronyms (C(WCE), C(RCD), C(DRA), C(NCS), C(QAM), C(D_SENSE) and so on)
    and go in one MODE SELECT per page and drive. The changeable mask is read before any write. On an NVMe drive
    C(WCE) is the volatile write cache (feature 6); it has no other field.
  - What the kernel keeps per drive are C(queue_depth), C(scheduler), C(nr_requests), C(read_ahead_kb) and so on. A
    queue depth above what the adapter takes in all is refused. A boot forgets these settings.
  - C(link_rate) is the highest rate of a drive's SAS link, on the phys that face the drive. The link is negotiated
    afresh and waited for. Refused are drives on no SAS link, phys whose driver lets nobody set it or that cannot run
    at that rate, and a link that carries other drives too.
  - A write may change another setting (the scheduler sets the number of requests anew). Such a setting is written
    after it, read back with it, and where nobody declares it, it is put back as it was.
  - The old value of everything that a write may change is kept in C(<state_dir>/saved.json) before the first write.
options:
  drives:
    description:
      - Declared settings by drive id (WWN, or serial where a drive has none), with the C(drive) names of a drop. A
        null value only reads.
    type: dict
    required: true
  part:
    description:
      - V(mode_pages) is what drives keep themselves, V(queue) what the kernel keeps for each of them. Names of the
        other part are checked, and left alone.
    type: str
    choices: [all, mode_pages, queue]
    default: all
  as_found:
    description: Names by drive id that must have the value they had before the run, where the run changed it.
    type: dict
    default: {}
  save:
    description: Write the saved pages too, so that the values hold after the next power-on.
    type: bool
    default: false
  prove_s:
    description:
      - Show settings in effect by this many seconds of reads per drive and setting, and by what the kernel counts
        (queue depth, number of requests, scheduler, read-ahead, largest request, write and read cache). 0 does not.
        Nothing is written; skipped in check mode.
    type: float
    default: 0
extends_documentation_fragment: [storqual.adapters, storqual.step]
"""

EXAMPLES = r"""
- name: Write caches off, read-ahead on
  scsi_mode_page:
    adapters: "{{ storqual_adapters }}"
    drives:
      "0x5000c50015ea71a0": {WCE: 0, DRA: 0}
      "0x5000c50015ea71a1": {WCE: 0, DRA: 0}

- name: A queue of four without a scheduler, shown in effect
  scsi_mode_page:
    adapters: "{{ storqual_adapters }}"
    prove_s: 1
    drives:
      "0x5000c50015ea71a0": {queue_depth: 4, scheduler: none}
"""

RETURN = r"""
settings:
  description: One entry per drive and declared field.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: drive.WCE, drive: "0x5000c50015ea71a0", declared: 0, before: 1, read_back: 0, changed: true,
       proven: null, proof: read back from the drive}
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
  sample: ["0x5000c50015ea71a0: mode page 0x08 written"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.results import ADAPTERS, STEP, finish
from ansible.module_utils.storqual_core.provision.drives import DriveRequest, provision_drives


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "drives": {"type": "dict", "required": True},
            "part": {"type": "str", "choices": ["all", "mode_pages", "queue"], "default": "all"},
            "as_found": {"type": "dict", "default": {}},
            "save": {"type": "bool", "default": False},
            "prove_s": {"type": "float", "default": 0.0},
            **ADAPTERS,
            **STEP,
        },
        supports_check_mode=True,
    )
    request = DriveRequest(**module.params, check=module.check_mode)
    finish(module, lambda: provision_drives(request))


if __name__ == "__main__":
    main()
