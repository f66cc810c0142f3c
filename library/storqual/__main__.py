# SPDX-License-Identifier: Apache-2.0
"""`python -P -m storqual` is the command, for playbooks that know only the interpreter."""

from storqual.cli import main

main()
