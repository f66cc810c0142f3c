# SPDX-License-Identifier: Apache-2.0
"""Have a declared firmware version run in adapters."""

from __future__ import annotations

DOCUMENTATION = r"""
module: adapter_firmware
short_description: Flash HBAs and RAID controllers, refuse what is not safe, prove what runs
description:
  - Makes the named adapters run one image. An adapter that already runs the version is left alone.
  - Refused before anything is written - an adapter that is not the one of the inventory (PCI address, serial number,
    board), a file whose SHA-256 or signature is not the declared one, a step between versions that O(from) does not
    allow (without it, anything but a newer version), a controller with a volume that is not optimal or with a
    rebuild, an initialisation or a check under way, a flash without an image of the found version to go back to,
    anything behind the adapter that is not claimed or is in use, and whatever O(consent) does not name.
  - The version that was found is kept in C(<state_dir>/saved.json) with the image that leads back to it; each step is
    recorded in C(<state_dir>/firmware.json) before it is taken, so that the next run continues after a power cut.
  - After the flash the version is read back, and settings, cache policies and links are compared with those before;
    what can be restored is restored; a remaining difference is a failure.
  - Tools and what is known of them - V(storcli), V(perccli), V(arcconf), V(sas2flash), V(sas3flash), V(mnv_cli),
    V(qaucli), V(hbacmd) by recorded outputs or programs that run them; V(ssacli) (a Smart Component) by its manual.
    None of them was run by this project on real hardware. The download of lsiutil is a dialogue of which no record
    exists, so it is not offered.
options:
  adapters:
    description: The adapters to flash by alias, as the bench's inventory declares them.
    type: dict
    required: true
  beside:
    description: The bench's other adapters, as its inventory declares them. A flash reaches every function of a card,
      so the drives behind the others must be claimed, unused and named by O(consent) as well.
    type: dict
    default: {}
  boards:
    description: PCI subsystem ids that the image is for, such as V(1000:3010); any when empty.
    type: list
    elements: str
    default: []
extends_documentation_fragment: [storqual.firmware, storqual.step]
"""

EXAMPLES = r"""
- name: Firmware 28 for the HBA
  adapter_firmware:
    adapters: {sas0: "{{ storqual_adapters.sas0 }}"}
    tool: storcli
    path: /var/lib/storqual/firmware/9500-28.rom
    sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    version: 28.00.00.00
    from: ["26", "27"]
    rollback:
      - {path: /var/lib/storqual/firmware/9500-27.rom, version: 27.00.00.00,
         sha256: fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9}
    consent: [c1d2e300, c1d2e310]
"""

RETURN = r"""
settings:
  description: One entry per adapter with the version declared, before and now.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: firmware.firmware, adapter: sas0, declared: 28.00.00.00, before: 27.00.00.00, read_back: 28.00.00.00,
       changed: true, proven: true, proof: the version was read from it; 12 settings and links are as before}
pending:
  description: What the bench still needs before the image runs; empty when it does.
  returned: success
  type: str
  sample: reboot
drift:
  description: What was not as declared, a line each.
  returned: success
  type: list
  elements: str
  sample: ["sas0 firmware.firmware: 27.00.00.00, declared 28.00.00.00"]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: ["sas0: firmware 28.00.00.00 written"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.results import ADAPTERS, FIRMWARE, STEP, WORDS, finish
from ansible.module_utils.storqual_core.provision.firmware.flash import flash_as_given
from ansible.module_utils.storqual_core.provision.firmware.subject import Adapters


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "boards": WORDS,
            "beside": {"type": "dict", "default": {}},
            **ADAPTERS,
            **FIRMWARE,
            **STEP,
        },
        supports_check_mode=True,
    )
    given = module.params
    finish(
        module,
        lambda: flash_as_given(
            given, lambda access: Adapters(access, given["adapters"], given["beside"]), check=module.check_mode
        ),
    )


if __name__ == "__main__":
    main()
