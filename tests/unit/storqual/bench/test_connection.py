# SPDX-License-Identifier: Apache-2.0
"""The connection to a bench that is this machine: commands, files, and a stream that survives a cut."""

import json
import threading
import time
from pathlib import Path

import pytest

from storqual.bench.follow import Connection, ConnectionLostError, stream


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Connection:
    """A bench that is this machine; each command says hello before it answers, as sudo by Ansible does."""
    monkeypatch.setattr("storqual.bench.follow._AGAIN_S", 0.05)
    return Connection("bench", lambda command: ["sh", "-c", f"echo hello-$$; {command}"], ["true"], "hello")


def tell(path: Path, *bodies: dict[str, object]) -> None:
    with path.open("a", encoding="ascii") as file:
        for body in bodies:
            file.write(json.dumps(body) + "\n")


def test_a_file_is_put_whole_and_a_command_answers(link: Connection, tmp_path: Path) -> None:
    link.put(b"con\0tent", str(tmp_path / "new folder" / "file"))
    assert (tmp_path / "new folder" / "file").read_bytes() == b"con\0tent"
    assert link.run("echo here") == "here\n"


def test_a_command_that_fails_or_does_not_end_is_an_error(link: Connection) -> None:
    with pytest.raises(ConnectionLostError, match="ended with 3: no such thing"):
        link.run("echo no such thing >&2; exit 3")
    with pytest.raises(ConnectionLostError, match=r"within 0\.2 s"):
        link.run("sleep 5", limit_s=0.2)


def test_a_stream_goes_on_behind_the_last_whole_line_after_the_connection_was_cut(
    link: Connection, tmp_path: Path
) -> None:
    path = tmp_path / "stream.jsonl"
    tell(path, {"kind": "io", "n": 1})
    with path.open("a", encoding="ascii") as file:
        file.write('{"kind": "io", ')
    seen: list[int] = []
    lines = stream(link, str(path), limit_s=30)
    first = next(line for line in lines if line is not None)
    seen.append(first["n"])
    link.cut()
    with path.open("a", encoding="ascii") as file:
        file.write('"n": 2}\n')
    tell(path, {"kind": "io", "n": 3}, {"kind": "end", "n": 4})
    seen += [line["n"] for line in lines if line is not None]
    assert seen == [1, 2, 3, 4]


def test_a_line_that_grows_while_it_is_read_is_given_once_and_whole(link: Connection, tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    path.touch()

    def write() -> None:
        for number in range(20):
            text = json.dumps({"kind": "end" if number == 19 else "io", "n": number, "fill": "x" * 5000}) + "\n"
            for part in (text[:3000], text[3000:]):
                with path.open("a", encoding="ascii") as file:
                    file.write(part)
                time.sleep(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    assert [line["n"] for line in stream(link, str(path), limit_s=30) if line is not None] == list(range(20))
    writer.join()


def test_a_stream_without_an_end_ends_with_its_limit(link: Connection, tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    tell(path, {"kind": "io", "n": 1})
    began = time.monotonic()
    assert [line for line in stream(link, str(path), limit_s=1.0) if line is not None] == [{"kind": "io", "n": 1}]
    assert time.monotonic() - began < 20
