# SPDX-License-Identifier: Apache-2.0
"""A lab's year of campaigns, for tests of what is shown of it."""

import json
from pathlib import Path

from storqual.run import REFERENCE_POINT
from tests.support.judged_reports import QUICK, judged

POINTS = QUICK[:3]


def campaign(folder: Path, number: int, *, level: float = 0.0, **options: object) -> Path:
    """The campaign of a month, with the baseline of all points moved by `level` (a fraction)."""
    run = judged(
        folder, run=f"2026{number:02d}21T100000Z-synthetic-000{number % 10}", points=POINTS, noise=0.002, **options
    )
    for name, change in (
        ("run.json", lambda found: found.update(created=f"2026-{number:02d}-21T09:59:00.000Z")),
        (
            "verdict.json",
            lambda found: [
                row.update(reference=row["reference"] * (1 + level)) for row in found["criteria"] if row["reference"]
            ],
        ),
    ):
        document = json.loads((run / name).read_text())
        change(document)
        (run / name).write_text(json.dumps(document))
    return run


def with_reference(run: Path, drive: str, rate: float) -> Path:
    """The run with a golden reference drive that gave `rate` I/Os per second at its beginning and its end."""
    document = json.loads((run / "run.json").read_text())
    document["benches"]["vbench"]["reference"] = drive
    (run / "run.json").write_text(json.dumps(document))
    lines = (run / "samples.jsonl").read_text().splitlines()
    for number, line in ((1, lines[0]), (2, lines[-1])):
        sample = json.loads(line)
        counts = sample["primitives"]
        counts.update(read_ios=round(rate * counts["runtime_ns"] / 1e9), write_ios=0)
        lines.append(json.dumps({**sample, "id": f"{sample['block']}/ref{number}", "point": REFERENCE_POINT}))
    (run / "samples.jsonl").write_text("\n".join(lines) + "\n")
    return run


def make_year(folder: Path) -> Path:
    """Eleven campaigns: a bad drop, a waived one, one not judged, and a bench that lost 20 % in October."""
    for number in range(1, 8):
        campaign(folder, number, level=0.002 * (-1) ** number, seed=number)
    campaign(folder, 8, effect=-0.1, seed=8, kernels={"baseline": "6.1.0-47-amd64", "candidate": "6.13.0-1-amd64"})
    waived = [f"iops@sym/{POINTS[0]}"]
    campaign(folder, 9, effect={f"sym/{POINTS[0]}": -0.1}, waived=waived, seed=9)
    campaign(folder, 10, level=-0.2, seed=10)
    (campaign(folder, 11, seed=11) / "verdict.json").unlink()
    return folder
