# SPDX-License-Identifier: Apache-2.0
"""Put a driver build on a bench: a DKMS package, or a prebuilt module."""

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_build
short_description: Install and load a driver that is a DKMS package or a prebuilt module
description:
  - Installs a DKMS package, which is built for the kernel, or puts a prebuilt module before the kernel's own
    (C(/lib/modules/<kernel>/updates/storqual)), loads it, and proves that the build on disk, the one in the
    initramfs where that carries the driver, and the loaded one are the same.
  - A prebuilt module is refused when its SHA-256, name, version or vermagic is not as it must be, and when it is
    not signed and the kernel loads signed modules only. A DKMS package is refused when the headers of the kernel
    are missing. A driver in use is refused by the guard.
  - A driver that cannot be unloaded while the machine runs, or that is in the initramfs, needs a boot
    (O(staged)). Until that boot has shown it, the build lies in an initramfs of its own alone, so that the default
    boots as before.
    A build without C(srcversion) is refused, since it could not be told from another one.
  - What was there before is kept in C(<state_dir>/saved.json) before the first write.
options:
  module:
    description: Name of the kernel module; needed unless O(as_found).
    type: str
    default: ""
  version:
    description: Version that the module must have; any when not given.
    type: str
    default: ""
  files:
    description:
      - Files on the bench, one prebuilt module (C(.ko)), or C(.deb) files of which the last is the DKMS package.
    type: list
    elements: path
    default: []
  sha256:
    description: SHA-256 that a prebuilt module must have; any when not given.
    type: str
    default: ""
  awaited:
    description:
      - In check mode, whether O(files) have still to be copied. What lies under their names on the bench is another
        build then, and is not looked into.
    type: bool
    default: false
  as_found:
    description: No build is declared; builds that the run installed are removed, and the former drivers are loaded.
    type: bool
    default: false
  staged:
    description:
      - Only do what comes before a boot. A build that takes one (RV(boots)) is packed into a copy of the kernel's
        initramfs, C(/boot/initrd.storqual-<kernel>-<digest>), for M(kernel_boot) to boot once; it comes to the disk
        with the next call without this, when it runs. With O(as_found) builds of that kind are taken off the disk.
    type: bool
    default: false
  kernel:
    description: With O(staged), release of the kernel that the build is for; the running one when not given.
    type: str
    default: ""
extends_documentation_fragment: [storqual.step]
"""

EXAMPLES = r"""
- name: A vendor's driver, built on the bench
  driver_build:
    module: qla2xxx
    version: 10.02.14.01
    files: [/var/lib/storqual/packages/qla2xxx-dkms_10.02.14.01_all.deb]

- name: A prebuilt module
  driver_build:
    module: mpt3sas
    files: [/var/lib/storqual/packages/mpt3sas.ko]
    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"""

RETURN = r"""
boots:
  description: Whether the bench must boot before the build, or the former one, can run.
  returned: with O(staged)
  type: bool
  sample: true
initramfs:
  description: File in C(/boot) that carries the build; empty where none is needed.
  returned: with O(staged)
  type: str
  sample: initrd.storqual-6.1.0-56-amd64-9f86d081884c
identifiers:
  description: The build of the driver loaded, on disk, and in the initramfs where that carries it.
  returned: success
  type: dict
  sample: {loaded: {srcversion: 0F3C, version: 10.02.14.01}, disk: {srcversion: 0F3C, version: 10.02.14.01}}
settings:
  description: The loaded build before and after.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: driver.module.qla2xxx, declared: null, before: 2BAA 10.02.08.100-k, read_back: 0F3C 10.02.14.01,
       changed: true, proven: true, proof: "one build in these places: loaded, disk"}
drift:
  description: Whether another build ran before.
  returned: success
  type: list
  elements: str
  sample: ["driver qla2xxx: 2BAA 10.02.08.100-k, another build is declared"]
steps:
  description: What was done, in order; in check mode what would be.
  returned: always
  type: list
  elements: str
  sample: [qla2xxx-dkms 10.02.14.01 installed, module qla2xxx loaded again]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.arguments import STEP
from ansible.module_utils.storqual_core.kit.command import run
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.provision.build import provision_build
from ansible.module_utils.storqual_core.provision.build_plan import BuildRequest
from ansible.module_utils.storqual_core.provision.kernel_boot import System
from ansible.module_utils.storqual_core.provision.options import OptionsBench


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "module": {"type": "str", "default": ""},
            "version": {"type": "str", "default": ""},
            "files": {"type": "list", "elements": "path", "default": []},
            "sha256": {"type": "str", "default": ""},
            "awaited": {"type": "bool", "default": False},
            "as_found": {"type": "bool", "default": False},
            "staged": {"type": "bool", "default": False},
            "kernel": {"type": "str", "default": ""},
            **STEP,
        },
        supports_check_mode=True,
    )
    request = BuildRequest(**module.params, check=module.check_mode)
    finish(module, lambda: provision_build(request, OptionsBench(run), System(run)))


if __name__ == "__main__":
    main()
