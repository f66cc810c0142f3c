# SPDX-License-Identifier: Apache-2.0
"""What was qualified: adapters with the driver of both arms as it was read back, benches, suite, kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storqual.report.figures import DASH
from storqual.report.rows import place_name
from storqual.report.view import AdapterIdentity
from storqual.report.words import BENCH_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from storqual.report.material import Material

__all__ = ["identities", "subject"]


def identities(material: Material) -> tuple[AdapterIdentity, ...]:
    """Each adapter under test with its driver in both arms, as it was read back from the bench."""
    seen = {(str(entry.get("bench")), arm): entry for arm, entry in material.provisioned()}
    found: list[AdapterIdentity] = []
    tested = {(key[0], key[1]) for key in material.points}
    for bench_name, bench in material.run.benches.items():
        for alias, adapter in (bench.get("adapters") or {}).items():
            if (bench_name, alias) not in tested:
                continue
            driver = str(adapter.get("driver") or DASH)
            builds = [_build(seen.get((bench_name, arm)), driver) for arm in ("baseline", "candidate")]
            found.append(
                AdapterIdentity(
                    alias=alias,
                    bench=bench_name,
                    model=str(adapter.get("model") or DASH),
                    place=str(adapter.get("pci") or ""),
                    firmware=_firmware(bench, alias),
                    driver=driver,
                    baseline=builds[0][0],
                    candidate=builds[1][0],
                    same=builds[0][1] is not None and builds[0][1] == builds[1][1],
                )
            )
    return tuple(found)


def _firmware(bench: Mapping[str, Any], alias: str) -> str:
    """The firmware that the adapter showed before and after, as its driver tells it; empty where it tells none."""
    environment = bench.get("environment") or {}
    looks = [((environment.get(when) or {}).get("adapters") or {}).get(alias) or {} for when in ("before", "after")]
    return " then ".join(dict.fromkeys(str(look["firmware"]) for look in looks if look.get("firmware")))


def _build(entry: Mapping[str, Any] | None, driver: str) -> tuple[str, str | None]:
    """A driver's build in words, and what makes two builds the same (None when it was not read)."""
    if entry is None:
        return "not provisioned", None
    details = (entry.get("drivers") or {}).get(driver) or {}
    parts = [f"kernel {entry['kernel']}"] if entry.get("kernel") else []
    if details.get("version"):
        parts.append(f"version {details['version']}")
    srcversion = details.get("srcversion")
    if srcversion:
        parts.append(f"srcversion {srcversion}")
    return ", ".join(parts) or DASH, str(srcversion or entry.get("kernel") or "") or None


def subject(material: Material) -> Iterable[str]:
    """What was compared, in a line or two."""
    run = material.run
    names = list(dict.fromkeys(place_name(list(run.benches), key[0], key[1]) for key in material.points))
    adapters = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "no adapter"
    kinds = [f"{name} ({_kind(bench).lower()})" for name, bench in run.benches.items()]
    yield f"{adapters} on {', '.join(kinds)}; suite {run.suite.name}, profile {run.suite.profile}"
    kernels: dict[str, list[str]] = {}
    for arm, entry in material.provisioned():
        if entry.get("kernel"):
            kernels.setdefault(arm, []).append(str(entry["kernel"]))
    told = {arm: " and ".join(dict.fromkeys(names)) for arm, names in kernels.items()}
    first, second = told.get("baseline"), told.get("candidate")
    if "baseline" not in material.arms and second:
        yield f"Kernel {second}"
    elif first and second:
        yield f"Kernel {first} in both arms" if first == second else f"Kernel {second} against {first}"
    elif first or second:
        yield f"Kernel {first or second}; the {'candidate' if first else 'baseline'} was not provisioned"


def _kind(bench: Mapping[str, Any]) -> str:
    kind = str(bench.get("kind") or "hardware")
    return BENCH_KINDS.get(kind, (kind, ""))[0]
