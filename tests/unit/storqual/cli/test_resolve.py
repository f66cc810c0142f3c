# SPDX-License-Identifier: Apache-2.0
"""What a drop means for a bench, for a person."""

from pathlib import Path

import pytest

from storqual.cli import main
from tests.support.make_lab import make_lab

EVERYTHING = {
    "driver": {
        "dkms": {"package": "acme-dkms.deb", "module": "sym_driver", "version": "1.2"},
        "options": {"mpt": {"mpt_can_queue": 128}},
    },
    "nvram": {"execution_throttle": 32},
    "drive": {"WCE": 1, "queue_depth": 4},
    "os": {"governor": "performance"},
}


def told(capsys: pytest.CaptureFixture[str], lab: Path, drop: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["resolve", "-i", str(lab / "hosts.json"), "--bench", "b1", "--drop", drop])
    printed = capsys.readouterr()
    assert ended.value.code == 0, printed.err
    return printed.out


def test_nothing_that_a_drop_declares_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_lab(tmp_path, candidate=EVERYTHING)
    (tmp_path / "drops" / "acme-dkms.deb").write_bytes(b"")
    out = told(capsys, tmp_path, "candidate")
    for text in (
        *("acme-dkms.deb", "mpt_can_queue=128", "execution_throttle=32", "WCE=1  queue_depth=4"),
        "governor=perf",
    ):
        assert text in out, out
    assert not set(out) & set("{}[]'"), out


def test_a_drop_that_declares_nothing_shows_no_empty_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_lab(tmp_path)
    out = told(capsys, tmp_path, "candidate")
    assert "{}" not in out
    assert "sym_driver" in out


def test_the_files_of_a_kernel_are_told_by_their_names_and_must_be_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later entry replaces an earlier kernel whole: files and a package do not meet."""
    name = "kernel-6.12.0-1.x86_64.rpm"
    kernels = [{"kernel": {"package": "kernel", "version": "1-2"}}, {"kernel": {"files": [name]}}]
    make_lab(tmp_path, candidate={"driver": kernels})
    with pytest.raises(SystemExit) as ended:
        main(["resolve", "-i", str(tmp_path / "hosts.json"), "--bench", "b1", "--drop", "candidate"])
    assert (ended.value.code, f"{name}' does not exist" in capsys.readouterr().err) == (3, True)
    (tmp_path / "drops" / name).write_bytes(b"")
    (line,) = [line for line in told(capsys, tmp_path, "candidate").splitlines() if "driver.kernel" in line]
    assert line.split()[1:] == [f"files={name}"]
