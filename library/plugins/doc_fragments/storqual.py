# SPDX-License-Identifier: Apache-2.0
"""Options that several modules have, documented once; `storqual_core.kit.results` is the same for a machine."""

from __future__ import annotations


class ModuleDocFragment:
    """Each constant is a fragment; a module extends `storqual.<constant in small letters>`."""

    STEP = r"""
options:
  state_dir:
    description: Folder on the bench for its lock and its saved state.
    type: path
    default: /var/lib/storqual
  run:
    description: The run this belongs to; the saved state of another run must be restored first.
    type: str
    default: provision
attributes:
  check_mode:
    description: In check mode everything is read and compared, and nothing is written.
    support: full
  diff_mode:
    description: Each difference is shown as the value before and after.
    support: full
author: [storqual contributors (!UNKNOWN)]
"""

    ADAPTERS = r"""
options:
  adapters:
    description: The bench's adapters as its inventory declares them, with their drivers, tools, and claims on drives.
    type: dict
    required: true
"""

    FIRMWARE = r"""
options:
  tool:
    description: The tool that writes the image, by its name in a drop.
    type: str
    required: true
  path:
    description: The image on the bench; a relative path begins at O(state_dir), here and below.
    type: path
    required: true
  sha256:
    description: Its SHA-256.
    type: str
    required: true
  version:
    description: The version that the device reports when it runs the image.
    type: str
    required: true
  component:
    description: The part that the image is for, if the tool has several (V(firmware), V(bios)); drives have one.
    type: str
    default: firmware
  signature:
    description: A detached signature of the image, on the bench.
    type: path
    default: ""
  key:
    description: The signer's key on the bench - a PEM public key (openssl) or an OpenPGP keyring (gpgv).
    type: path
    default: ""
  from:
    description: Versions that it may replace (default - any older version).
    type: list
    elements: str
    default: []
  rollback:
    description:
      - Images on the bench (C(path), C(sha256), C(version), and C(signature), C(key), C(component) where they have
        them), one of them of the version that is found.
    type: list
    elements: dict
    default: []
  activation:
    description: What activates the image. If the tool asks for more, the tool is followed.
    type: str
    choices: [none, reset, reboot, power cycle]
    default: reset
  consent:
    description:
      - Ends of the WWNs (six characters at least) of all drives that the flash can reach; a flash goes beyond a
        claim.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(present) flashes what is not there. V(proven), after the boot that RV(pending) asked for, only proves.
    type: str
    choices: [present, proven]
    default: present
  soak_s:
    description:
      - Seconds for which everything behind the flashed device is read before it counts as proven. A failed read, an
        error counter that grows and errors in the kernel's log are failures. 0 skips this.
    type: float
    default: 30
  log_rules:
    description: Rules for the kernel's log during the soak. The action plugin passes the shipped ones.
    type: list
    elements: dict
"""
