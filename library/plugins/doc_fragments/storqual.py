# SPDX-License-Identifier: Apache-2.0
"""Options that several modules have, documented once; `storqual_core.kit.arguments` is the same for a machine."""

from __future__ import annotations


class ModuleDocFragment:
    """Each constant is a fragment; a module extends `storqual.<constant in small letters>`."""

    STEP = r"""
options:
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
    description: The tool that flashes, by the name of a drop.
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
    description: The version it makes the device tell.
    type: str
    required: true
  component:
    description: The part it is for, where the tool has several (V(firmware), V(bios)); drives have one.
    type: str
    default: firmware
  signature:
    description: A detached signature of the image, on the bench.
    type: path
    default: ""
  key:
    description: Whose signature it must be - a PEM public key (openssl) or an OpenPGP keyring (gpgv), on the bench.
    type: path
    default: ""
  from:
    description: Versions that it may replace; anything older when empty.
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
    description: What starts the image. A tool that asks for more is believed.
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
      - Seconds for which everything behind what was flashed is read, before it counts as proven. A read that fails,
        an error counter that grows and trouble in the kernel's log are failures. None when 0.
    type: float
    default: 30
"""
