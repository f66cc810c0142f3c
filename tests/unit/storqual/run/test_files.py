# SPDX-License-Identifier: Apache-2.0
"""Files of a run as readers get them: what is opened, what is refused, and how much of it is read."""

import gzip
import json
import os
from pathlib import Path

import pytest

from storqual.base.files import NoJsonError, OddFileError, digest_of, parse_json, unpacked
from storqual.run import read_run
from storqual.run.files import (
    LIMITS,
    FileLimit,
    file_digest,
    limit_of,
    oddities,
    read_bytes,
    read_lines,
    read_packed_lines,
    read_text,
)
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.derive import per_second
from tests.support.make_run import make_run
from tests.support.odd_files import ODD, remove

_PACKED = gzip.compress(b"{}\n", mtime=0)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("run.json", "run.json"),
        ("raw/0a.launch.gz", "raw/"),
        ("inputs/suite.yml", "inputs/.yml"),
        ("inputs/inventory.json", "inputs/.json"),
        ("inputs/test_cabling.py", "inputs/"),
        ("turns/a.1.json", "turns/.json"),
        ("raw/1.stream.jsonl.gz", "raw/.stream.jsonl.gz"),
        ("judgements/0a/verdict.json", "judgements/verdict.json"),
        ("annex/judgements/0a/verdict.json", "annex/verdict.json"),
        ("signoff.director.json", "signoff."),
        ("robot/b1/log.html", ""),
        ("whatever", ""),
    ],
)
def test_each_kind_of_file_has_its_limit(name: str, key: str) -> None:
    assert limit_of(name) is LIMITS[key]


def test_a_finished_run_is_far_below_its_limits(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert oddities(run) == []
    sizes = {path.relative_to(run).as_posix(): path.stat().st_size for path in run.rglob("*") if path.is_file()}
    assert {name for name, size in sizes.items() if size > limit_of(name).most / 100} == set()


@pytest.mark.parametrize("name", ["../x", "/etc/hostname", "raw/../run.json", "", "raw/", "a//b", "a\0b", "raw/."])
def test_nothing_outside_of_a_run_is_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_bytes(b"x")
    (tmp_path / "run" / "raw").mkdir(parents=True)
    with pytest.raises(OddFileError):
        read_bytes(tmp_path / "run", name)


def test_an_input_elsewhere_is_not_read(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    document = json.loads((run / "run.json").read_bytes())
    document["inputs"]["suite"]["file"] = "../../etc/hostname"
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadInputError, match="no file in inputs/"):
        read_run(run).input_file("suite")


def test_a_folder_on_the_way_may_not_be_a_link_but_the_run_may(tmp_path: Path) -> None:
    (tmp_path / "run" / "raw").mkdir(parents=True)
    (tmp_path / "run" / "raw" / "a").write_bytes(b"x")
    (tmp_path / "latest").symlink_to("run")
    assert read_bytes(tmp_path / "latest", "raw/a") == b"x"
    (tmp_path / "run" / "blocks").symlink_to("raw")
    with pytest.raises(OddFileError, match="link or no folder"):
        read_bytes(tmp_path / "run", "blocks/a")


def test_a_person_may_name_a_link_and_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to("a")
    os.mkfifo(tmp_path / "c")
    assert read_regular(tmp_path / "b", 1) == b"x"
    with pytest.raises(BadInputError, match="pipe"):
        read_regular(tmp_path / "c", 1)
    with pytest.raises(BadInputError, match="at most 0"):
        read_regular(tmp_path / "b", 0)


def test_hashing_stops_one_byte_behind_what_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "grows"
    path.write_bytes(b"12345")
    handle = os.open(path, os.O_RDONLY)
    with path.open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(OddFileError, match="more than 5 bytes"):
        digest_of(handle, 5, "grows")


@pytest.mark.parametrize(
    "text",
    [
        *(
            b"",
            b"{",
            b"NaN",
            b"[-Infinity]",
            b"1e400",
            b"9" * 5000,
            b"\xef\xbb\xbf1",
            "{}".encode("utf-16"),
            b'"\xff"',
        ),
        *(b"[" * 1000 + b"]" * 1000, b"[" * 65 + b"]" * 65, b'{"a":' * 65 + b"1" + b"}" * 65, b"[1,2,3,4]", b"1 2"),
    ],
)
def test_what_is_no_json_of_a_run_is_refused_in_one_way(text: bytes) -> None:
    with pytest.raises(NoJsonError):
        parse_json(text, 2)


def test_json_of_a_run_is_read() -> None:
    assert parse_json(b'{"a":[1,{"b":null}],"c":1.5}', 3) == {"a": [1, {"b": None}], "c": 1.5}
    assert parse_json(b"[" * 64 + b"]" * 64, 0)


def test_one_packed_file_is_unpacked_within_its_limit() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert unpacked(packed, 1000) == b"x" * 1000
    for data in (packed * 2, packed + b"x", packed[:-1], b""):
        with pytest.raises(EOFError):
            unpacked(data, 10_000)
    with pytest.raises(EOFError, match="more than 999 bytes"):
        unpacked(packed, 999)


@pytest.mark.parametrize("data", [b"{}\n" * 50, b"{}\n" * 3 + b"{", b"{}\n" + b" " * 100 + b"{}\n", b"x\n"])
def test_packed_lines_are_read_within_their_limits(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "turns/", FileLimit(1000, "a test", line=50, unpacked=100))
    assert list(read_packed_lines(gzip.compress(b"{}\n" * 30), "turns/a.gz")) == [{}] * 30
    with pytest.raises((OddFileError, NoJsonError)):
        list(read_packed_lines(gzip.compress(data), "turns/a.gz"))


@pytest.mark.parametrize("packed", [_PACKED * 2, _PACKED[:-1], _PACKED + b"x"], ids=["two", "cut", "more"])
def test_packed_lines_are_of_one_whole_file(packed: bytes) -> None:
    with pytest.raises(OddFileError, match="complete"):
        list(read_packed_lines(packed, "turns/a.gz"))


def test_lines_and_values_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "events.jsonl", FileLimit(1000, "a test", line=10, all_values=3))
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"123456789\n[1,2]\ntorn")
    assert list(read_lines(tmp_path, path.name)) == [(1, b"123456789"), (2, b"[1,2]")]
    path.write_bytes(b"1\n1234567890\n")
    with pytest.raises(OddFileError, match=r"events\.jsonl:2: this line"):
        list(read_lines(tmp_path, path.name))
    path.write_bytes(b"[1,2]\n" * 4)
    with pytest.raises(OddFileError, match=r"events\.jsonl:4: up to here"):
        list(read_lines(tmp_path, path.name))


def test_a_text_is_utf_8_without_nul(tmp_path: Path) -> None:
    for data in (b"\xff", b"a\0b"):
        (tmp_path / "report.html").write_bytes(data)
        with pytest.raises(OddFileError, match=r"report\.html"):
            read_text(tmp_path, "report.html")


def test_folders_that_lie_too_deep_are_told_and_not_gone_into(tmp_path: Path) -> None:
    ODD["nested folders"](tmp_path / "raw")
    (sentence,) = oddities(tmp_path)
    remove(tmp_path / "raw")
    assert sentence.startswith("raw/d/d/")
    assert "deep" in sentence


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    assert file_digest(tmp_path, "x") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(("runtime_ns", "interval_ms"), [(10**30, 1000), (10**15, 1), (2 * 10**18, 1000)])
def test_an_absurd_run_time_makes_no_series(runtime_ns: int, interval_ms: int) -> None:
    assert per_second(["1000, 5, 0"], jobs_ios=[5], runtime_ns=runtime_ns, interval_ms=interval_ms) == []
