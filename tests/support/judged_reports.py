# SPDX-License-Identifier: Apache-2.0
"""Judged run directories for tests of the report: campaigns by make_run.py, verdicts by plain arithmetic.

The verdict is not the judge's: the report is tested with numbers that a second hand made, in every outcome.
"""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.metrics import METRICS, Primitives, Value
from tests.support.make_run import make_run
from tests.support.synthetic_shape import point_name

PANIC = """[    4.512207] BUG: unable to handle page fault for address: ffffa3c100ff0010
[    4.512661] #PF: supervisor read access in kernel mode
[    4.513302] CPU: 0 PID: 131 Comm: (udev-worker) Tainted: G           OE 6.12.0-1-amd64 #1
[    4.514188] RIP: 0010:sym_probe+0x1a4/0x5c0 [sym53c8xx]
[    4.519914] Kernel panic - not syncing: Fatal exception in interrupt"""


def points_of(
    workloads: Iterable[str] = ("seq_read", "seq_write", "rand_read", "rand_write"),
    sizes: Iterable[int] = (4096, 65536, 524288),
    drives: Iterable[int] = (1, 4),
    depths: Iterable[int] = (1, 16),
) -> tuple[str, ...]:
    drives, depths, sizes = tuple(drives), tuple(depths), tuple(sizes)
    return tuple(
        point_name(workload, bs=size, drives=number, iodepth=depth)
        for workload in workloads
        for number in drives
        for depth in depths
        for size in sizes
    )


QUICK = (
    *("rand_read[bs=4k,drives=1,iodepth=1]", "rand_read[bs=64k,drives=4,iodepth=16]"),
    *("rand_write[bs=4k,drives=4,iodepth=16]", "seq_read[bs=4k,drives=4,iodepth=1]"),
    *("seq_read[bs=512k,drives=1,iodepth=16]", "seq_write[bs=64k,drives=1,iodepth=1]"),
    "seq_write[bs=512k,drives=4,iodepth=16]",
)


def judged(
    folder: Path,
    *,
    margin: float = 3.0,
    waived: Sequence[str] = (),
    required: Sequence[str] = ("iops",),
    reason: str = "",
    owner: str = "J. Ortega",
    patch: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    **options: Any,
) -> Path:
    """A run by `make_run(**options)` with its verdict; `waived` are criterion ids, `patch` replaces keys of it."""
    run_dir = make_run(folder, **options)
    document = json.loads((run_dir / "run.json").read_text())
    samples = [json.loads(line) for line in (run_dir / "samples.jsonl").read_text().splitlines()]
    by_point: defaultdict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for sample in samples:
        by_point[sample["bench"], sample["adapter"], sample["point"]].append(sample)
    criteria = [
        _criterion(
            planned, metric, by_point[_key(planned)], margin=margin, required=metric in required, reason=reason
        )
        for metric in ("iops", "cpu_us_per_io")
        for planned in document["plan"]["points"]
        if not planned["skipped"]
    ]
    for row in criteria:
        if row["id"] in waived and row["outcome"] == "FAIL":
            accepted = {"reason": "known, fixed in the next drop", "reference": "BUG-4711", "expiry": "2027-03-31"}
            row["waiver"] = {"owner": owner, **accepted, "max_loss": 0.15}
    criteria += [_check(json.loads(line)) for line in (run_dir / "checks.jsonl").read_text().splitlines()]
    verdict = _verdict(document, criteria, list(warnings))
    (run_dir / "verdict.json").write_text(json.dumps({**verdict, **(patch or {})}, indent=1) + "\n")
    return run_dir


def value_of(metric: str, sample: Mapping[str, Any]) -> float:
    """IOPS by hand; CPU time per I/O, which has several sources, by the product's own definition."""
    primitives = sample["primitives"]
    if metric == "iops":
        return (primitives.get("read_ios", 0) + primitives.get("write_ios", 0)) / (primitives["runtime_ns"] / 1e9)
    found = METRICS[metric].value(Primitives(primitives, sample["series"]))
    assert isinstance(found, Value)
    return found.value


def _criterion(
    planned: Mapping[str, Any],
    metric: str,
    samples: Sequence[Mapping[str, Any]],
    *,
    margin: float,
    required: bool,
    reason: str,
) -> dict[str, Any]:
    arms = {
        arm: [one for one in samples if one["arm"] == arm and one["status"] == "ok"]
        for arm in ("baseline", "candidate")
    }
    values = {arm: [value_of(metric, one) for one in found] for arm, found in arms.items()}
    margin = margin if required else 20.0
    row: dict[str, Any] = {
        "id": f"{metric}@{planned['adapter']}/{planned['point']}",
        "bench": planned["bench"],
        "adapter": planned["adapter"],
        "point": planned["point"],
        "metric": metric,
        "unit": {"iops": "IOPS", "cpu_us_per_io": "us"}[metric],
        "better": "higher" if metric == "iops" else "lower",
        "against": "baseline",
        "reference": None,
        "outcome": "ERROR",
        "reason": "no finished launch of the candidate",
        "candidate": None,
        "shift_percent": None,
        "ci95_percent": None,
        "margin_percent": margin,
        "detectable_percent": None,
        "samples": {arm: len(found) for arm, found in values.items()},
        "sessions": {arm: len({one["session"] for one in found}) for arm, found in arms.items()},
        "waiver": None,
        "required": required,
    }
    if values["baseline"]:
        row["reference"] = sum(values["baseline"]) / len(values["baseline"])
    bad = next((one for one in samples if one["status"] != "ok"), None)
    if bad is not None:
        row["reason"] = f"launch {bad['id']} was {bad['status']}"
    if bad is not None or not all(values.values()):
        return row
    means = {arm: sum(found) / len(found) for arm, found in values.items()}
    shift = (1 if metric == "iops" else -1) * (means["candidate"] / means["baseline"] - 1) * 100
    spread = math.sqrt(sum(_variance(found) / len(found) for found in values.values())) * 100 + 0.02
    low, high = shift - 2.6 * spread, shift + 2.6 * spread
    outcome, why = "INCONCLUSIVE", "the interval reaches over the margin; 4 more pairs of sessions would be needed"
    if low > -margin * 0.75:
        outcome, why = "PASS", "the whole interval is within the margin"
    elif low > -margin:
        outcome, why = "MARGINAL", "the interval is within the margin, its worse end close to it"
    elif high < -margin:
        outcome, why = "FAIL", "the whole interval is beyond the margin, confirmed by a second measurement"
    row.update(
        candidate=means["candidate"],
        shift_percent=shift,
        ci95_percent=[low, high],
        detectable_percent=3.2 * spread,
        outcome=outcome,
        reason=reason or why,
    )
    return row


def _check(check: Mapping[str, Any]) -> dict[str, Any]:
    names = "metric unit reference candidate shift_percent ci95_percent margin_percent detectable_percent waiver"
    place = {name: check.get(name) for name in ("bench", "adapter", "point")}
    return {
        "id": check["id"],
        **place,
        **dict.fromkeys(names.split()),
        "better": "higher",
        "against": "check",
        "outcome": check["outcome"],
        "reason": check.get("reason", ""),
        "samples": {},
        "sessions": {},
        "required": True,
    }


def _key(planned: Mapping[str, Any]) -> tuple[str, str, str]:
    return (planned["bench"], planned["adapter"], planned["point"])


def _variance(values: Sequence[float]) -> float:
    """Relative variance; of a single value a typical one."""
    mean = sum(values) / len(values)
    return sum((value / mean - 1) ** 2 for value in values) / (len(values) - 1) if len(values) > 1 else 1e-4


def _verdict(document: Mapping[str, Any], criteria: list[dict[str, Any]], warnings: list[str]) -> dict[str, Any]:
    counted = Counter(row["outcome"] for row in criteria if row["required"] and not row["waiver"])
    sectors = document["guard"]["sectors_written_outside_claims"]
    holes = sum(not entry["reason"] for entry in document["coverage"]["skipped"])
    outcome, code = "PASS", 0
    if sectors:
        outcome, code = "ERROR", 2
    elif counted["FAIL"]:
        outcome, code = "FAIL", 1
    elif counted["ERROR"]:
        outcome, code = "ERROR", 2
    elif counted["INCONCLUSIVE"] or holes:
        outcome, code = "INCONCLUSIVE", 2
    elif counted["MARGINAL"]:
        outcome = "MARGINAL"
    warnings += [
        f"{row['id']} failed and is waived until {row['waiver']['expiry']}" for row in criteria if row["waiver"]
    ]
    return {
        "schema": "storqual.verdict/1",
        "run": document["run"],
        "outcome": outcome,
        "exit_code": code,
        "as_of": document["finished"],
        "inputs": {name: hashlib.sha256(name.encode()).hexdigest() for name in ("suite", "samples", "waivers")},
        "criteria": criteria,
        "coverage": document["coverage"],
        "sectors_written_outside_claims": sectors,
        "warnings": warnings,
    }
