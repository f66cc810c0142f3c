# SPDX-License-Identifier: Apache-2.0
"""The bench program is the same file wherever and whenever it is built from the same sources."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import storqual_core
from storqual.bench.program import build_program, program_bytes


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "storqual_core"
    shutil.copytree(Path(storqual_core.__file__).parent, copy)
    (copy / "__pycache__").mkdir(exist_ok=True)
    (copy / "__pycache__" / "guard.cpython-38.pyc").write_bytes(b"x")
    for path in copy.rglob("*.py"):
        os.utime(path, (0, 0))
        path.chmod(0o600)
    assert program_bytes(copy) == program_bytes()


def test_another_content_is_another_file(tmp_path: Path) -> None:
    """The name carries the digest, so a bench never runs an older program under a newer name."""
    copy = tmp_path / "storqual_core"
    shutil.copytree(Path(storqual_core.__file__).parent, copy)
    first = build_program(tmp_path, core=copy)
    assert build_program(tmp_path, core=copy) == first
    errors = copy / "kit" / "errors.py"
    errors.write_text(errors.read_text(encoding="utf-8") + "\n# more\n", encoding="utf-8")
    second = build_program(tmp_path, core=copy)
    assert second != first
    assert {first.name[:5], second.name[:5]} == {"core-"}
    assert os.access(first, os.X_OK)


def test_the_program_needs_nothing_but_python(tmp_path: Path) -> None:
    program = build_program(tmp_path)
    with zipfile.ZipFile(program) as archive:
        assert archive.namelist()[0] == "__main__.py"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", str(program)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    usage = "usage: core.pyz start|run|status|stop BATCH.json, or core.pyz lease STATE_DIR REQUEST\n"
    assert (ended.returncode, ended.stderr) == (3, usage)
