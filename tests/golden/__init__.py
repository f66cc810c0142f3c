# SPDX-License-Identifier: Apache-2.0
"""Fixed run directories, and what the report and the terminal say of them."""

import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from storqual.report import build_report
from storqual.report.render import style_sheet
from storqual.report.summary import print_summary

__all__ = ["FOLDER", "NAMES", "accept", "expected_files", "make", "rendered"]

FOLDER = Path(__file__).resolve().parent
_KEPT = ("run.json", "verdict.json", "samples.jsonl", "events.jsonl", "checks.jsonl")
_POINTS = ("rand_read[bs=4k,drives=1,iodepth=1]", "seq_write[bs=64k,drives=4,iodepth=16]")
_PANIC = "BUG: unable to handle page fault\nKernel panic - not syncing: Fatal exception in interrupt"
_SHAPES: dict[str, dict[str, Any]] = {
    "pass": {"launches": 2, "runtime_s": 3.0},
    "fail": {
        "effect": {_POINTS[0]: -0.1},
        "skipped": {f"mpt/{_POINTS[1]}": "the drive is reserved until Monday"},
        "adapters": ("sym", "mpt"),
        "findings": [
            {
                "kind": "adapter_reset",
                "lines": ["sym0: SCSI BUS reset detected"],
                "count": 1,
                "adapter": "sym",
                "point": _POINTS[0],
                "time": "2026-11-21T10:02:03.000Z",
            }
        ],
    },
    "error": {
        "missing": _POINTS,
        "kind": "local",
        "events": [{"kind": "kernel_panic", "bench": "vbench", "session": "s02", "text": _PANIC}],
    },
}
NAMES = tuple(_SHAPES)


def make(name: str) -> None:
    """Write the run directory `name` again, with the generator of tests as it is now."""
    from tests.support.judged_reports import judged  # noqa: PLC0415 - only for making

    with tempfile.TemporaryDirectory() as folder:
        made = judged(Path(folder), **{"adapters": ("sym",), "points": _POINTS, "noise": 0.002, **_SHAPES[name]})
        (FOLDER / name).mkdir(exist_ok=True)
        for file in _KEPT:
            shutil.copy(made / file, FOLDER / name / file)


def rendered(name: str, folder: Path) -> dict[str, str]:
    """What the report and the terminal say of the run `name`, made in `folder`; the style sheet is left out."""
    run = folder / name
    shutil.copytree(FOLDER / name, run)
    page = build_report(run).read_text(encoding="utf-8").replace(style_sheet(), "(report.css)\n")
    out = io.StringIO()
    documents = [json.loads((run / file).read_text(encoding="utf-8")) for file in ("verdict.json", "run.json")]
    print_summary(*documents, Path("report.html"), file=out)
    return {f"{name}.report.html": page, f"{name}.summary.txt": out.getvalue()}


def expected_files(name: str) -> tuple[str, ...]:
    """The files that say what is expected of the run `name`."""
    return (f"{name}.report.html", f"{name}.summary.txt")


def accept(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for file, text in rendered(name, Path(folder)).items():
            (FOLDER / file).write_text(text, encoding="utf-8")
            (FOLDER / f"{file}.got").unlink(missing_ok=True)
