# SPDX-License-Identifier: Apache-2.0
"""Tampering before signing: what a sample says that was measured, and what it was."""

from __future__ import annotations

import random
from pathlib import Path

from tests.attacks.before.tampering import document, edited, kind


@kind
def a_primitive_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        counts = source.choice(samples)["primitives"]
        name = source.choice([name for name, value in counts.items() if isinstance(value, int)])
        counts[name] = max(round(counts[name] * source.choice((0, 0.5, 0.99, 1.01, 2))), 0) + source.choice((1, 7))


@kind
def a_primitive_is_taken_out(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        counts = source.choice(samples)["primitives"]
        del counts[source.choice(list(counts))]


@kind
def a_primitive_is_put_in(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["primitives"][source.choice(("open_loop", "member_read_ios", "trim_ios"))] = 1


@kind
def what_was_read_back_is_forged(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        looked = {"of": "write", "sectors": 4096, "compared": 16, "unwritten": 0, "wrong": 0, "took_ns": 7}
        if "sectors" in sample["data"]:
            looked = source.choice(({"reason": "not planned for this launch"}, {**sample["data"], "sectors": 4096}))
        sample["data"] = looked


@kind
def a_second_of_the_series_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        series = source.choice(samples)["series"]["iops"]
        series[source.randrange(len(series))] *= source.choice((0.5, 1.001, 1.5))


@kind
def a_series_is_shorter(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["series"]["iops"].pop()


@kind
def the_baselines_figures_are_copied_over_the_candidates(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples if source.random() < 0.5 else samples[:4]:
            own = (one for one in samples if one["arm"] == "baseline" and one["point"] == sample["point"])
            if sample["arm"] == "candidate":
                better = next(own)
                sample.update(primitives=better["primitives"], series=better["series"])


@kind
def the_baselines_figures_and_raw_files_are_copied(run: Path, _source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples:
            own = (one for one in samples if one["arm"] == "baseline" and one["point"] == sample["point"])
            if sample["arm"] == "candidate":
                better = next(own)
                sample.update({name: better[name] for name in ("primitives", "series", "raw")})


@kind
def a_name_of_a_sample_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample, other = source.sample(samples, 2)
        name = source.choice(("bench", "adapter", "arm", "configuration", "session", "block", "point"))
        sample[name] = other[name] if other[name] != sample[name] else f"{sample[name]}x"


@kind
def a_number_of_a_sample_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        name = source.choice(("n", "runtime_s", "seed"))
        sample[name] += source.choice((1, 2))


@kind
def the_arms_change_places(run: Path, _source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples:
            sample["arm"] = {"baseline": "candidate", "candidate": "baseline"}[sample["arm"]]


@kind
def the_arms_change_places_in_the_batches_too(run: Path, source: random.Random) -> None:
    the_arms_change_places(run, source)
    for path in (run / "blocks").iterdir():
        with document(path) as block:
            for launch in block["turns"]:
                launch["arm"] = {"baseline": "candidate", "candidate": "baseline"}[launch["arm"]]


@kind
def a_sample_is_renamed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        sample["id"] = f"{sample['block']}/{source.choice((7, 99, 'x'))}"


@kind
def a_start_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["start"] = f"2026-11-20T10:00:{source.randrange(60):02d}Z"


@kind
def a_status_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["status"] = source.choice(("lost", "short", "killed", "refused", "fine"))


@kind
def words_of_a_sample_are_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        sample[source.choice(("suspect", "notes"))] = ["nothing to see"]


@kind
def a_sample_is_made_lost(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        asked = {"asked_runtime_ns": 5_000_000_000}
        source.choice(samples).update(status="lost", raw=[], series={"iops": []}, primitives=asked)


@kind
def a_sample_is_invented(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        one = source.choice(samples)
        samples.append({**one, "id": f"{one['block']}/{len(samples) + 7}", "n": one["n"] + 10})


@kind
def a_sample_names_no_raw_files(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples if source.random() < 0.3 else [source.choice(samples)]:
            sample["raw"] = []


@kind
def a_sample_names_the_raw_files_of_another(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        one, other = source.sample(samples, 2)
        one["raw"] = other["raw"]


@kind
def a_sample_says_a_former_schema(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples if source.random() < 0.5 else [source.choice(samples)]:
            sample["schema"] = "storqual.sample/1"
