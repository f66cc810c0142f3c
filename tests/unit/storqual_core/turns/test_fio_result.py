# SPDX-License-Identifier: Apache-2.0
"""What fio did is read from its result, its exit status and what it was asked, together."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.turns.fio_result import FioResult, read_result
from tests.support.fake_fio import job, result

STATUSES = {"ok", "refused", "killed", "short", "io_error", "lost"}


def read(output: str, *, exit_status: int = 0, asked_s: float = 1.0, errors: str = "") -> FioResult:
    """Read a result that was asked for one second."""
    return read_result(output, exit_status=exit_status, asked_s=asked_s, errors=errors)


def test_a_good_run_is_its_counts() -> None:
    found = read(result(job(ios=1000, bins={"250880": 990, "905216": 10})))
    assert (found.status, found.reason, found.version, found.jobs_ios) == ("ok", "", "fio-3.33", (1000,))
    assert found.primitives == json.loads(Path(__file__).with_name("fio_3_job.json").read_text(encoding="utf-8"))


def test_jobs_and_drives_are_added_bin_by_bin() -> None:
    found = read(
        result(
            job(ios=100, bins={"1000": 90, "2000": 10}, runtime_ms=1000),
            job(ios=300, bins={"2000": 299, "9000": 1}, runtime_ms=1001),
        )
    )
    assert found.primitives["read_bins"] == {"1000": 90, "2000": 309, "9000": 1}
    assert found.primitives["read_ios"] == 400
    assert found.primitives["read_lat_sum_ns"] == 400 * 250_000
    assert found.primitives["runtime_ns"] == 1_001_000_000


@pytest.mark.parametrize(
    ("output", "exit_status", "status", "said"),
    [
        (result(job(ios=0, runtime_ms=0)), 0, "refused", "did no I/O at all: it refused the job"),
        (result(job(), job(ios=0, drive="0x5b")), 0, "refused", "did no I/O on 0x5b"),
        (result(job(runtime_ms=600)), 128, "killed", "ended by a signal after 0.6 of 1 s"),
        (result(job(runtime_ms=600)), -15, "killed", "ended by SIGTERM"),
        ("", -9, "killed", "ended by SIGKILL; it left no result"),
        ("", 137, "killed", "ended by SIGKILL"),
        (result(job(runtime_ms=899)), 0, "short", "ran 0.899 of 1 s on 0x5000c50015ea71a0"),
        (result(job(), job(runtime_ms=100, drive="0x5b")), 0, "short", "ran 0.1 of 1 s on 0x5b"),
        (result(job(runtime_ms=900)), 0, "ok", ""),
        (result(job(error=5)), 1, "io_error", "0x5000c50015ea71a0: Input/output error (exit status 1)"),
        (result(job(error=61)), 1, "io_error", "No data available"),
        (result(job(total_err=3)), 0, "io_error", "3 errors"),
        (result(job(ios=0, error=2)), 1, "io_error", "No such file or directory"),
        (result(job()), 1, "io_error", "exit status 1 and named no error"),
        ("fio: engine libaio not loadable\nfio: failed to load engine\n", 1, "refused", "failed to load engine"),
        ("", 1, "refused", "did not run (exit status 1): it printed nothing"),
        ("", 0, "lost", "its result cannot be read: it printed nothing"),
        (result(job())[:-40], 0, "lost", "its result cannot be read"),
        ('{"jobs": []}', 0, "lost", "its result cannot be read"),
        ('{"jobs": [{"read": {"total_ios": "many"}}]}', 0, "lost", "total_ios (many)"),
        (result(job()).replace('"total_ios": 1000', '"iops": 1000.0'), 0, "lost", "read.total_ios (missing)"),
    ],
)
def test_exit_status_result_and_time_decide_together(output: str, exit_status: int, status: str, said: str) -> None:
    found = read(output, exit_status=exit_status)
    assert found.status == status
    assert said in found.reason
    assert bool(found.reason) == (status != "ok")


def test_a_field_that_is_no_number_makes_the_sample_no_sample() -> None:
    text = result(job()).replace("250000.0", "NaN")
    found = read(text)
    assert (found.status, found.reason) == ("lost", "fio's result has fields that cannot be read: read.mean (nan)")


def test_notes_around_the_result_are_kept_and_the_dangerous_one_is_a_doubt() -> None:
    note = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1"
    found = read(f"{note}\n{result(job())}fio: done\n", errors="warning: odd\n")
    assert found.status == "ok"
    assert found.notes == (note, "fio: done", "warning: odd")
    assert found.suspect == (f"fio: {note}",)


def test_fio_2_counts_in_microseconds_and_kib() -> None:
    old = json.loads(Path(__file__).with_name("fio_2_job.json").read_text(encoding="utf-8"))
    found = read(result(old, version="fio-2.18-59-g618e"))
    assert found.status == "ok"
    expected = read(result(job(bins={"250000": 1000}))).primitives
    assert {key: value for key, value in found.primitives.items() if not key.startswith("write")} == {
        key: value for key, value in expected.items() if not key.startswith("write")
    }


@pytest.mark.parametrize("version", ["fio-2.21", "fio-2.99", "fio-3.1", "fio-3.17-9-gc3e5"])
def test_releases_that_do_not_tell_how_many_latencies_there_are_are_read(version: str) -> None:
    """Each of them counts bytes."""
    bare = without(job(bins={"250000": 1000}), "read", "lat_ns", "N")
    bare["read"]["io_kbytes"] = 4000
    if version == "fio-2.21":
        bare["read"]["lat"] = {"max": 900, "mean": 250.0, "bins": {"250": 1000}}
        del bare["read"]["lat_ns"]
    found = read(result(bare, version=version))
    assert (found.status, found.primitives) == ("ok", read(result(job(bins={"250000": 1000}))).primitives)


def test_of_several_results_the_last_complete_one_counts() -> None:
    text = result(job(ios=10)) + result(job(ios=20)) + result(job(ios=30))[:-50]
    assert read(text).primitives["read_ios"] == 20


GOOD = result(job(), job(way="write", drive="0x5b"))


@given(cut=st.integers(0, len(GOOD)), exit_status=st.integers(-70, 260))
def test_a_result_cut_anywhere_is_never_good(cut: int, exit_status: int) -> None:
    """Only the whole text with exit status 0 is."""
    found = read(GOOD[:cut], exit_status=exit_status)
    assert found.status in STATUSES
    assert (found.status == "ok") == (exit_status == 0 and cut >= len(GOOD) - 1)


@given(
    at=st.integers(0, len(GOOD)), length=st.integers(0, 40), other=st.text(max_size=40), exit_status=st.integers(0, 1)
)
def test_a_garbled_result_raises_nothing(at: int, length: int, other: str, exit_status: int) -> None:
    found = read(GOOD[:at] + other + GOOD[at + length :], exit_status=exit_status)
    assert found.status in STATUSES
    assert bool(found.reason) == (found.status != "ok")


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["jobs", "read", "write", "lat_ns", "bins", "mean", "N", "total_ios", "runtime", "error"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.integers(-10, 200))
def test_any_json_raises_nothing(body: Any, exit_status: int) -> None:
    found = read(json.dumps({"fio version": "fio-3.33", "jobs": [body]}, indent=1), exit_status=exit_status)
    assert found.status in STATUSES
    assert all(isinstance(value, (int, dict)) for value in found.primitives.values())


@given(st.text())
def test_any_text_raises_nothing(text: str) -> None:
    assert read(text).status == "lost"


def test_deep_nesting_and_endless_digits_are_no_result() -> None:
    assert read("{" * 100_000).status == "lost"
    assert read('{"jobs": [' + "[" * 100_000).status == "lost"
    assert read('{"jobs": [{"error": ' + "9" * 10_000 + "}]}").status in ("lost", "io_error")


def recordings() -> list[Path]:
    """Fio's outputs recorded by others, kept outside the project."""
    beside = Path(__file__).resolve().parents[5] / "shared" / "transcripts"
    folder = Path(os.environ.get("STORQUAL_TRANSCRIPTS") or beside) / "fio"
    return sorted(folder.iterdir()) if folder.is_dir() else []


@pytest.mark.skipif(not recordings(), reason="recorded outputs of fio are not here (STORQUAL_TRANSCRIPTS)")
def test_recorded_results_are_read() -> None:
    """Every recording is either a result with I/Os and latencies, or no result with fio's sentence."""
    for path in recordings():
        text = path.read_text(encoding="utf-8", errors="replace")
        has_result = '"jobs"' in text
        found = read(text, exit_status=0 if has_result else 1, asked_s=0.001)
        # storqual asks for histograms (json+); one of the recordings was made without
        good = "lost" if "fio-3.34" in text and '"bins"' not in text else "ok"
        assert found.status == (good if has_result else "refused"), (path.name, found.reason)
        if has_result:
            ios = found.primitives["read_ios"] + found.primitives["write_ios"]
            way = "read" if found.primitives["read_ios"] else "write"
            mean_ns = found.primitives[f"{way}_lat_sum_ns"] / found.primitives[f"{way}_ios"]
            assert ios > 0, path.name
            assert 1_000 < mean_ns < 10**10, path.name
            size = (found.primitives["read_bytes"] + found.primitives["write_bytes"]) / ios
            assert 500 < size < 2**21, path.name
        else:
            assert "libaio" in found.reason
        assert read(text, exit_status=128).status == "killed"


def without(entry: dict[str, Any], *path: str) -> dict[str, Any]:
    """The job without one field."""
    copy = json.loads(json.dumps(entry))
    place = copy
    for word in path[:-1]:
        place = place[word]
    del place[path[-1]]
    return dict(copy)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (result(without(job(), "read", "io_bytes")), "read.io_bytes (nothing moved by 1000 I/Os)"),
        (result(without(job(), "read", "lat_ns", "bins")), "read.bins (none for 1000 latencies)"),
        (result(job(bins={})), "read.bins (none for 1000 latencies)"),
        (result(job(bins={"250880": 999})), "read.bins (999 latencies, N says 1000)"),
        (result(job(bins={"250880": 1000, "905216": 1})), "read.bins (1001 latencies, N says 1000)"),
        (result(without(job(), "read", "lat_ns", "N")), "read.bins (1000 latencies, N says 0)"),
        (result(job()).replace('"total_ios": 1000', '"total_ios": 2000, "total_ios": 1000'), "read (a key is in"),
        (result(job()).replace('"250880": 1000', '"250880": 1, "250880": 1000'), "read.lat_ns.bins (a key is in"),
        (result(job()).replace('"error": 0', '"error": 5, "error": 0', 1), "a job (a key is in it twice)"),
    ],
)
def test_a_result_that_does_not_agree_with_itself_is_no_measurement(output: str, said: str) -> None:
    found = read(output)
    assert found.status == "lost"
    assert said in found.reason


def test_what_fio_itself_repeats_is_no_contradiction() -> None:
    """An option given twice, and the percentiles that nobody asked for."""
    twice = '"job options": {"rw": "read", "rw": "randread"}, "ctx"'
    assert read(result(job()).replace('"ctx"', twice, 1)).status == "ok"
    percentiles = '"percentile": {"0.00": 0, "0.00": 0}, "min"'
    assert read(result(job()).replace('"min"', percentiles, 1)).status == "ok"


def test_a_result_without_any_latency_needs_no_histogram() -> None:
    """With gtod_reduce fio takes no times."""
    quiet = job()
    quiet["read"]["lat_ns"] = {"min": 0, "max": 0, "mean": 0.0, "N": 0}
    assert read(result(quiet)).status == "ok"


def test_a_sum_that_is_printed_beside_its_parts_is_not_counted_twice() -> None:
    """unified_rw_reporting=both; with unified_rw_reporting=1 the sum is all there is."""
    one = job(ios=1000)
    both = {**one, "mixed": one["read"]}
    assert read(result(both)).primitives == read(result(one)).primitives
    assert read(result(both)).jobs_ios == (1000,)
    alone = {**one, "read": one["write"], "mixed": one["read"]}
    assert (read(result(alone)).primitives["mixed_ios"], read(result(alone)).jobs_ios) == (1000, (1000,))


def test_latencies_that_were_not_measured_are_none_of_0() -> None:
    """gtod_reduce, disable_lat: fio prints 0 for each figure of them."""
    unmeasured = job(ios=1000)
    unmeasured["read"]["lat_ns"] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    found = read(result(unmeasured))
    assert (found.status, found.primitives["read_ios"]) == ("ok", 1000)
    assert not [name for name in found.primitives if "lat" in name or "bins" in name]
    partly = read(result(unmeasured, job(ios=10)))
    assert "read_lat_sum_ns" not in partly.primitives


def test_a_mean_of_nothing_is_no_reason_to_lose_a_result_and_a_count_of_nothing_is_none() -> None:
    """fio prints what printf makes of 0/0, which no JSON has."""
    text = result(job())
    means = text.replace('"read": {', '"read": {"bw_dev": -nan, "bw_mean": inf, ')
    assert means != text
    assert read(means).primitives == read(text).primitives
    counts = re.sub('"total_ios": [1-9][0-9]*', '"total_ios": nan', text)
    assert counts != text
    assert (read(counts).status, read(counts).reason) == (
        "lost",
        "fio's result has fields that cannot be read: read.total_ios (nan)",
    )


def test_a_byte_order_mark_is_no_reason_to_lose_a_result() -> None:
    assert read("\ufeff" + result(job())).primitives == read(result(job())).primitives


def test_text_inside_the_result_is_quoted() -> None:
    line = "fio: io_u error on file /dev/sdz: Input/output error: read offset=4096, buflen=4096"
    text = json.dumps(json.loads(result(job())), indent=1)
    inside = text.replace('\n  "read"', f'\n{line}\n  "read"').replace('\n   "read"', f'\n{line}\n   "read"')
    assert inside != text
    for exit_status in (0, 1):
        found = read(inside, exit_status=exit_status)
        assert found.status in ("lost", "refused")
        assert line in found.reason


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_result_that_was_cut_is_told_as_one(kept: float) -> None:
    text = json.dumps(json.loads(result(job())), indent=1)
    found = read(text[: int(len(text) * kept)])
    assert found.status == "lost"
    assert "it ends before it is whole, after" in found.reason
