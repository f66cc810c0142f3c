# SPDX-License-Identifier: Apache-2.0
"""`python -m storqual` is the command, for playbooks that know only the interpreter.

Python puts the current folder first where it is started with -m and without -P: what lies there is none of ours.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]

from storqual.cli import main

main()
