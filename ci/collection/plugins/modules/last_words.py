# SPDX-License-Identifier: Apache-2.0
"""The last lines of a kernel that died; the code is the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: last_words
short_description: The last lines of a kernel that died
description:
  - Reads a panic from the log of a serial console. Where there is no such log, it reads what pstore kept over the
    reboot from the bench. It never fails; where nothing was kept the text is empty.
options:
  console:
    description: The log of the serial console on the control node; empty where there is none.
    type: path
    default: ""
  since:
    description: The end of the log before the boot, in bytes, as RV(offset) of an earlier call.
    type: int
author: [storqual contributors (!UNKNOWN)]
"""

EXAMPLES = r"""
- name: Note where the console log ends
  last_words:
    console: "{{ storqual_console }}"
  register: before_boot
"""

RETURN = r"""
offset:
  description: Where the console log ends now, in bytes.
  returned: always
  type: int
panic:
  description: The text of the panic; empty without one.
  returned: always
  type: str
"""
