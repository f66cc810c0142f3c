# SPDX-License-Identifier: Apache-2.0
"""A copy of the tree in which mutants are tried; the tree itself is never touched."""

import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.mutant import Change

_NO_TESTS = (4, 5)
"""Exit codes of pytest for arguments that name no test: nothing was tried."""

_CLOCK_PER_S = 20.0
"""Seconds of the clock for one of the processor: what waits for something that never comes is ended in the end."""


_PLUGINS = ["-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin", "-p", "tests.mutants.quick"]


class TrialError(Exception):
    """The tests cannot be run in the copy, so they say nothing about mutants."""


@dataclass
class Copy:
    """A copy of `tree` in `folder`, and the tests that are run in it."""

    tree: Path
    folder: Path
    _moments: "itertools.count[int]" = field(default_factory=lambda: itertools.count(int(time.time()) + 10, 10))

    def __post_init__(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.tree,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout.decode()
        for name in filter(None, listed.split("\0")):
            if (self.tree / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.tree / name, self.folder / name)
        self._own_code()

    def _own_code(self) -> None:
        """Raise TrialError unless the copy's own code is what Python finds: the tree is installed as well."""
        asked = "import storqual, storqual_core; print(storqual.__file__); print(storqual_core.__file__)"
        argv = [sys.executable, "-c", asked]
        said = subprocess.run(argv, cwd=self.folder, env=self._env(), stdout=subprocess.PIPE, text=True, check=True)
        if not all(Path(line).is_relative_to(self.folder) for line in said.stdout.split()):
            raise TrialError(f"tests in {self.folder} would run the code of {said.stdout.split()[0]}")

    def _env(self) -> dict[str, str]:
        library = self.folder / "library"
        return {
            **os.environ,
            "PYTHONPATH": f"{library}:{library / 'module_utils'}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }

    def passes(self, tests: list[str], chosen: str, limit_s: float) -> bool | None:
        """Whether the tests pass; None when they use more than `limit_s` seconds of a processor, or never end.

        The clock says little on a machine with other work. Raises TrialError when no test is named.
        """
        argv = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", *_PLUGINS]
        argv += ["-m", "not bench and not long and not pages", *(["-k", chosen] if chosen else []), *tests]
        child = subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self._env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (int(limit_s), int(limit_s)))
        try:
            code = child.wait(timeout=_CLOCK_PER_S * limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if code in _NO_TESTS:
            raise TrialError(f"no test is named by {' '.join(tests)} {chosen}")
        return None if code < 0 else code == 0

    def write(self, change: Change) -> None:
        self._put(self.folder / change.path.relative_to(self.tree), change.text)

    def put_back(self, change: Change) -> None:
        """Undo `write`."""
        self._put(self.folder / change.path.relative_to(self.tree), change.path.read_text(encoding="utf-8"))

    def _put(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Python takes compiled code for current by size and second: each version gets a second of its own
        moment = next(self._moments)
        os.utime(path, (moment, moment))
