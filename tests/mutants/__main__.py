# SPDX-License-Identifier: Apache-2.0
"""Whether the tests notice faults in the judge, the guard, provisioning and the oracle of trials.

python -m tests.mutants                          # all of them, about 20 minutes on one processor
python -m tests.mutants --only 'guard/*' '*/*lock'   # some
python -m tests.mutants --list                   # names and what each one breaks

Each mutant is put into a copy of the tree, and the tests of its area are run until the first fails. Exit code 1 when
a mutant that is known to die (`dies: true`) survives, or is found nowhere or twice in the code.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tests.mutants.mutant import Mutant, NotApplicableError, Sources, read_areas, read_mutants
from tests.mutants.trial import Copy

TREE = Path(__file__).resolve().parents[2]
LIMIT_S = 120.0
"""Seconds of a processor: many times what the tests of any area take."""
FATES = {True: "survived", False: "killed", None: "hung"}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="names, with * and ?")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    mutants = [mutant for mutant in read_mutants() if any(fnmatchcase(mutant.name, one) for one in options.only)]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name:<50} {'dies    ' if mutant.dies else 'survives'}  {mutant.says}")
        return 0
    return try_all(mutants)


def try_all(mutants: Sequence[Mutant]) -> int:
    """Print what became of each mutant, and the totals; the exit code."""
    areas, sources, began = read_areas(), Sources(TREE), time.monotonic()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(TREE, Path(folder).resolve() / "tree")
        for area in sorted({mutant.area for mutant in mutants}):
            started = time.monotonic()
            if not copy.passes(areas[area], "", LIMIT_S):
                print(f"the tests of area {area} fail without any mutant: they would say nothing")
                return 1
            print(f"{'no mutant':<14} {time.monotonic() - started:6.1f} s  area {area}", flush=True)
        for mutant in mutants:
            started = time.monotonic()
            fate = _fate(mutant, sources, copy, areas[mutant.area])
            counts[fate.partition(" (")[0]] += 1
            print(f"{fate:<14} {time.monotonic() - started:6.1f} s  {mutant.name}: {mutant.says}", flush=True)
            if mutant.dies and fate not in ("killed", "hung"):
                wrong.append(f"{mutant.name}: {fate}, and the list says that it dies")
            elif not mutant.dies and fate != "survived":
                print(f"{'':<14} {'':>8}  the list says that it survives")
    told = ", ".join(f"{count} {fate}" for fate, count in sorted(counts.items()))
    print(f"\n{len(mutants)} mutants: {told}; {time.monotonic() - began:.0f} s")
    print("\n".join(wrong))
    return 1 if wrong else 0


def _fate(mutant: Mutant, sources: Sources, copy: Copy, tests: list[str]) -> str:
    try:
        change = sources.change(mutant)
    except NotApplicableError as problem:
        return f"not applicable ({problem})"
    copy.write(change)
    try:
        return FATES[copy.passes(tests, mutant.chosen, LIMIT_S)]
    finally:
        copy.put_back(change)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
