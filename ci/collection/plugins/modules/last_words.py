# SPDX-License-Identifier: Apache-2.0
"""The last lines of a kernel that died; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: last_words
short_description: The last lines of a kernel that died
description:
  - Reads a panic from the serial console, from what came by netconsole, and from what pstore and kdump kept on the
    bench over the reboot. It never fails; where nothing was kept the text is empty.
options:
  virtual_state:
    description: The state folder of a virtual bench, by default the one of its inventory. Another bench's recorded
      console is read.
    type: path
  since:
    description: What was there before the boot, as RV(mark) of an earlier call.
    type: dict
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Note where the console ends
  last_words:
  register: before_boot
"""

RETURN = r"""
mark:
  description: Where console and recording end now, and which traces lie on the bench.
  returned: always
  type: dict
sources:
  description: Which of V(console), V(netconsole), V(pstore) and V(kdump) had the panic.
  returned: always
  type: dict
panic:
  description: The text of the panic; empty without one.
  returned: always
  type: str
"""
