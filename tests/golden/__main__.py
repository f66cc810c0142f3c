# SPDX-License-Identifier: Apache-2.0
"""Golden files of the report: `python -m tests.golden make | accept`; README.md beside this says when."""

import sys

from tests.golden import NAMES, accept, make
from tests.golden.example import make_example
from tests.golden.sheet import SHEET, accept_sheet


def main(arguments: list[str]) -> int:
    """Make the run directories again, or take what the report says now as what is expected."""
    actions = {"make": make, "accept": accept}
    if len(arguments) != 1 or arguments[0] not in actions:
        sys.stderr.write("usage: python -m tests.golden make|accept\n")
        return 3
    for name in NAMES:
        actions[arguments[0]](name)
        sys.stdout.write(f"{arguments[0]}: {name}\n")
    if arguments[0] == "make":
        make_example()
        sys.stdout.write("make: example\n")
    if arguments[0] == "accept":
        accept_sheet()
        sys.stdout.write(f"accept: {SHEET}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
