# SPDX-License-Identifier: Apache-2.0
"""Have a package with a kernel installed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_package
short_description: Install a kernel package when it is missing
description:
  - Says which kernel release a package carries, and installs it from files when it is missing. It boots nothing.
  - RV(missing) is true when the package is not installed and no files are given; fetch them and call again.
options:
  package:
    description: Name of the package.
    type: str
    required: true
  version:
    description: Version that must be installed; any when not given.
    type: str
    default: ""
  files:
    description: Package files on the bench, the package's dependencies among them.
    type: list
    elements: path
    default: []
extends_documentation_fragment: [storqual.step]
"""

EXAMPLES = r"""
- name: Install a kernel
  driver_package:
    package: linux-image-6.1.0-56-amd64
    files: [/var/lib/storqual/packages/linux-image-6.1.0-56-amd64.deb]
"""

RETURN = r"""
missing:
  description: The package is not installed.
  returned: success
  type: bool
  sample: false
kernel:
  description: Release of the kernel in the package; empty while it is missing.
  returned: success
  type: str
  sample: 6.1.0-56-amd64
version:
  description: Installed version.
  returned: when installed
  type: str
  sample: 6.1.147-1
steps:
  description: What was done, in order.
  returned: always
  type: list
  elements: str
  sample: [linux-image-6.1.0-56-amd64 6.1.147-1 installed]
settings:
  description: The version before and after.
  returned: always
  type: list
  elements: dict
  sample: [{name: driver.kernel.version, declared: 6.1.147-1, before: "", read_back: 6.1.147-1, changed: true}]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.storqual_core.kit.arguments import STEP
from ansible.module_utils.storqual_core.kit.command import run
from ansible.module_utils.storqual_core.kit.results import finish
from ansible.module_utils.storqual_core.provision.boot import PackageRequest, provision_package
from ansible.module_utils.storqual_core.provision.kernel_boot import System


def main() -> None:
    """Read arguments, do the step, end."""
    module = AnsibleModule(
        argument_spec={
            "package": {"type": "str", "required": True},
            "version": {"type": "str", "default": ""},
            "files": {"type": "list", "elements": "path", "default": []},
            **STEP,
        },
        supports_check_mode=True,
    )
    request = PackageRequest(**module.params, check=module.check_mode)
    finish(module, lambda: provision_package(request, System(run)))


if __name__ == "__main__":
    main()
