# SPDX-License-Identifier: Apache-2.0
"""The collector for RPM benches, on a bench made of files: what it writes can be read, and names nobody."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from storqual_core.tools import bls, rpm, sestatus
from tests.support.fake_rpm import RpmBench

SCRIPT = Path(__file__).with_name("rpm_bench.sh")
RELEASE = f"5.14.0-70.13.1.el9_0.{os.uname().machine}"
MACHINE_ID = "4d684a4a6166439a867e701ded4f7e10"
SECRETS = (
    MACHINE_ID,
    *("lab-sn-0815", "2b1b0c5e-6d1b-4a4f-8a52-0a1b2c3d4e5f", "0x5000c500a1b2c3d4", "naa.5000c500a1b2c3d4"),
    *("00:1b:21:ab:cd:ef", "10.11.12.13", "fe80:1:2:3:4:5:6:77", "iqn.2001-05.com.vendor:tgt-7"),
    "grub.pbkdf2.sha512.10000.AB.CD",
)
ANSWERS = {
    "uname": f'[ "$1" = -n ] && echo lab-sn-0815.example.com || echo {RELEASE}',
    "rpm": r"""case "$*" in
*--scripts*) echo 'echo lab-sn-0815' ;;
*--qf*) printf 'kernel-core\t0\t5.14.0\t70.13.1.el9_0\tx86_64\t1700000000\n' ;;
esac""",
    "sestatus": "echo 'SELinux status:                 disabled'",
    "multipath": "echo 'host lab-sn-0815 0x5000c500a1b2c3d4 naa.5000c500a1b2c3d4'; exit 1",
    "lsinitrd": "seq 100000",
    "mokutil": "exec sleep 600",
}


@pytest.fixture
def bench(tmp_path: Path) -> RpmBench:
    bench = RpmBench(tmp_path / "bench", [RELEASE], RELEASE, variables={"saved_entry": f"{MACHINE_ID}-{RELEASE}"})
    (bench.folder / "etc").mkdir(exist_ok=True)
    (bench.folder / "etc" / "machine-id").write_text(f"{MACHINE_ID}\n")
    words = " ".join(f"x={secret}" for secret in SECRETS[1:])
    bench.write_entry(f"{MACHINE_ID}-{RELEASE}", RELEASE, options=f"root=/dev/sda ip=10.11.12.13 {words}")
    return bench


def collected(bench: RpmBench, tmp_path: Path) -> str:
    """What the script writes; of programs it finds those of `ANSWERS`, and the plain tools that it is made of."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in ("sh", "sed", "awk", "cat", "ls", "tr", "seq", "sleep", "timeout", "printf"):
        where = shutil.which(tool)
        assert where
        (programs / tool).symlink_to(where)
    for name, body in ANSWERS.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    # a program that hangs is not waited for as long as on a bench; those of this machine are out of reach
    text = SCRIPT.read_text(encoding="utf-8").replace("\nlimit=60\n", "\nlimit=1\n")
    text = text.replace("PATH=$PATH:/usr/sbin:/sbin\n", "")
    ended = subprocess.run(
        ["/bin/sh", "-s", str(bench.folder)],
        input=text,
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def part(text: str, question: str) -> str:
    return text.partition(f"### {question}\n")[2].partition("\n###")[0] + "\n"


def test_the_answers_are_those_that_our_readers_read_and_name_nobody(bench: RpmBench, tmp_path: Path) -> None:
    text = collected(bench, tmp_path)
    assert [secret for secret in SECRETS if secret in text] == []
    assert "example.com" not in text
    other = re.findall(r"[0-9a-f]{32}", text)
    # upstream's GRUB takes a name that begins with a digit for a number: that it did is kept
    assert {each[0].isdigit() for each in other} == {True}
    (entry,) = re.findall(r"### file (/boot/loader/entries/[0-9]\S+)", text)
    read = bls.parse_entry(part(text, f"file {entry}"), entry)
    assert (read.value("linux"), read.problems()) == (f"/vmlinuz-{RELEASE}", [])
    question = next(
        line[4:] for line in text.splitlines() if line.startswith("### rpm -q --qf") and "provides" in line
    )
    (package,) = rpm.parse_packages(part(text, question)).packages
    assert (package.name, package.version) == ("kernel-core", "5.14.0")
    assert not sestatus.parse_status(part(text, "sestatus")).enabled


def test_an_answer_that_is_long_late_or_wrong_does_not_hold_the_others_up(bench: RpmBench, tmp_path: Path) -> None:
    text = collected(bench, tmp_path)
    assert len(part(text, f"lsinitrd --kver {RELEASE}").splitlines()) < 500
    assert "### cut here" in text
    assert "### mokutil --sb-state\n### status 124\n" in text
    assert "### multipath -t\nhost bench" in text
    assert text.rstrip().endswith("### status 1")
    assert "### zypper --version\n### not installed\n" in text


def test_nothing_is_changed(bench: RpmBench, tmp_path: Path) -> None:
    def everything() -> dict[str, tuple[int, bytes]]:
        files = [path for path in bench.folder.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = everything()
    collected(bench, tmp_path)
    assert everything() == before
