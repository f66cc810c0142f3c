# SPDX-License-Identifier: Apache-2.0
"""Have a declared firmware version run in drives."""

from __future__ import annotations

DOCUMENTATION = r"""
module: drive_firmware
short_description: Flash drives, refuse what is not safe, prove what runs
description:
  - Makes the named claimed drives run one image. A drive that already runs the version is left alone; all drives are
    read and checked before the first is written, and they are written one after the other.
  - Refused before anything is written - a drive that is not the claimed one (WWN, serial number, model, size), is in
    use or holds data, a file whose SHA-256 or signature is not the declared one, a step between versions that O(from)
    does not allow (without it, anything but a newer version), a flash without an image of the found version to go
    back to, a device that fwupd holds back, and whatever O(consent) does not name.
  - The version that was found is kept in C(<state_dir>/saved.json) with the image that leads back to it; each step is
    recorded in C(<state_dir>/firmware.json) before it is taken, so that the next run continues after a power cut.
  - After the flash the version is read back and mode pages (or the NVMe write cache) are compared with those before;
    what can be restored is restored; a remaining difference is a failure.
  - V(sg_write_buffer) transfers an image segment by segment and waits for the drive's word that its microcode
    changed; V(nvme) writes to a slot that does not run, where there is one; V(fwupd) installs a cabinet file.
options:
  drives:
    description: The drives to flash by id (WWN, or serial where a drive has none).
    type: list
    elements: str
    required: true
extends_documentation_fragment: [storqual.adapters, storqual.firmware, storqual.step]
"""

EXAMPLES = r"""
- name: Firmware 0005 for one drive
  drive_firmware:
    drives: ["0x5000cca0c1d2e300"]
    adapters: "{{ storqual_adapters }}"
    tool: sg_write_buffer
    path: /var/lib/storqual/firmware/HUSMM-0005.bin
    sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    version: "0005"
    rollback:
      - {path: /var/lib/storqual/firmware/HUSMM-0004.bin, version: "0004",
         sha256: fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9}
    consent: [c1d2e300]
"""

RETURN = r"""
settings:
  description: One entry per drive with the version declared, before and now.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: firmware.firmware, drive: "0x5000cca0c1d2e300", declared: "0005", before: "0004", read_back: "0005",
       changed: true, proven: true, proof: the version was read from it; 60 settings and links are as before}
pending:
  description: What the bench still needs before the image runs; empty when it does.
  returned: success
  type: str
  sample: power cycle
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["0x5000cca0c1d2e300 firmware.firmware: 0004, declared 0005"]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: ["/dev/sg2: 64 segments, 262144 bytes transferred"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.guard.claims import claims_of_adapters
from ansible.module_utils.storqual_core.kit.results import ADAPTERS, FIRMWARE, STEP, finish
from ansible.module_utils.storqual_core.provision.drives import claims_for
from ansible.module_utils.storqual_core.provision.firmware.flash import flash_as_given
from ansible.module_utils.storqual_core.provision.firmware.subject import Access, Drives


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "drives": {"type": "list", "elements": "str", "required": True},
            **ADAPTERS,
            **FIRMWARE,
            **STEP,
        },
        supports_check_mode=True,
    )
    given = module.params

    def drives(access: Access) -> Drives:
        wanted = claims_for(given["adapters"], given["drives"])
        return Drives(access, wanted, claims_of_adapters(given["adapters"]))

    finish(module, lambda: flash_as_given(given, drives, check=module.check_mode))


if __name__ == "__main__":
    main()
