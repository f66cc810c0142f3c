# SPDX-License-Identifier: Apache-2.0
"""Set fields of SCSI mode pages, of many drives in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: scsi_mode_page
short_description: Set fields of SCSI mode pages on claimed drives
description:
  - Reads fields by their standard acronyms (C(WCE), C(RCD), C(DRA), C(NCS), C(QAM), C(D_SENSE) and so on), compares
    them with what is declared, and writes what differs in one MODE SELECT per page and drive; then reads back.
  - The changeable mask is read before any write. A field that a drive does not let be changed is a failure of its
    own, and nothing is written to any drive.
  - On an NVMe drive C(WCE) is the volatile write cache (feature 6); it has no other field.
  - The old value of every field is kept in C(<state_dir>/saved.json) before the first write.
options:
  save:
    description: Write the saved pages too, so that the values hold after the next power-on.
    type: bool
    default: false
extends_documentation_fragment: [storqual.adapters, storqual.drive_settings, storqual.step]
"""

EXAMPLES = r"""
- name: Write caches off, read-ahead on
  scsi_mode_page:
    adapters: "{{ storqual_adapters }}"
    drives:
      "0x5000c50015ea71a0": {WCE: 0, DRA: 0}
      "0x5000c50015ea71a1": {WCE: 0, DRA: 0}
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
from ansible.module_utils.storqual_core.kit.arguments import ADAPTERS, DRIVE_SETTINGS, STEP
from ansible.module_utils.storqual_core.kit.command import run
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.provision.drive_step import ModePages
from ansible.module_utils.storqual_core.provision.drives import DriveRequest, provision_drives


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "save": {"type": "bool", "default": False},
            **ADAPTERS,
            **DRIVE_SETTINGS,
            **STEP,
        },
        supports_check_mode=True,
    )
    given = dict(module.params)
    save = given.pop("save")
    request = DriveRequest(**given, check=module.check_mode)
    finish(module, lambda: provision_drives(request, ModePages(run, save=save), queue=False))


if __name__ == "__main__":
    main()
