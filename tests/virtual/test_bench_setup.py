# SPDX-License-Identifier: Apache-2.0
"""From an installed system to a bench: prepared, each part tried, a campaign whose only right is the sudo rule."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.run import iter_events
from storqual.virtual_bench.image import ensure_image
from storqual.virtual_bench.package_cache import fetch_packages
from tests.support.live_bench import GATE, REPOSITORY, discard, over_ssh, own_lab, play, qualified

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

BENCH, USER = "gatebench", "storqual"
STATE = REPOSITORY / ".cache" / "bench" / "setup"
LACKING = ("sudo", "python3-apt")
"""What an installed system has from its archive, and the guest of a virtual bench has not."""
SSHD = "AuthorizedKeysFile /run/storqual/authorized_keys .ssh/authorized_keys"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def add_archive() -> None:
    """Give the guest an archive of packages, as an installed system has one, and accounts of users."""
    image = ensure_image(print)
    fetched = {file.path: file for package in LACKING for file in fetch_packages(image, package)}
    entries = []
    for path, file in fetched.items():
        fields = subprocess.run(["dpkg-deb", "--field", path], capture_output=True, text=True, check=True).stdout
        data = Path(path).read_bytes()
        over_ssh(STATE, BENCH, f"mkdir -p /srv/archive; cat > /srv/archive/{file.package}.deb", data=data)
        where = f"Filename: ./{file.package}.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        entries.append(f"{fields.strip()}\n{where}")
    over_ssh(STATE, BENCH, "cat > /srv/archive/Packages", data="\n".join(entries).encode())
    archive = "echo 'deb [trusted=yes] file:/srv/archive ./' > /etc/apt/sources.list.d/archive.list; apt-get update"
    over_ssh(STATE, BENCH, archive)
    # a restart ends when connections are taken again, a reload earlier
    over_ssh(STATE, BENCH, f"echo '{SSHD}' > /etc/ssh/sshd_config.d/00-users.conf; systemctl restart ssh")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bench of an installed system that is on."""
    folder = tmp_path_factory.mktemp("setup")
    switch = [str(REPOSITORY / ".venv/bin/storqual"), "bench", "switch", "--folder", str(STATE)]
    found = folder / "lab"
    power = {"on": [*switch, "-i", str(found), "on"], "off": [*switch, "off"], "state": [*switch, "state"]}
    discard(STATE)
    own_lab(folder, GATE, STATE, storqual_power=[{"command": power}])
    code, output = play(folder / "log", found, "bench_up.yml")
    assert code == 0, output[-3000:]
    add_archive()
    yield found
    discard(STATE)


def set_up(lab: Path, *words: str) -> tuple[int, str]:
    return play(lab.parent / "log", lab, "setup.yml", *words)


def health(output: str) -> dict[str, str]:
    """Of each part whether it works, as the play showed it."""
    rows = [line.split(": ", 3) for line in output.splitlines() if line.startswith(f"{BENCH}: ")]
    return {row[1]: row[2] for row in rows if len(row) > 3}


def test_a_bench_is_prepared_each_part_is_tried_and_a_campaign_needs_no_other_right(lab: Path) -> None:
    before = over_ssh(STATE, BENCH, BOOT_ID)
    keys = [(STATE / "keys" / "client_ed25519.pub").read_text(encoding="utf-8").strip()]
    given = json.dumps({"bench_setup_keys": keys, "bench_setup_console": "ttyS0,115200n8"})
    code, output = set_up(lab, "-e", "prepare=true", "-e", given)
    assert code == 0, output[-3000:]
    # a second time nothing is left to do
    code, output = set_up(lab, "-e", "prepare=true", "-e", given)
    assert code == 0, output[-3000:]
    assert " changed=0 " in output, output[-3000:]
    assert over_ssh(STATE, BENCH, BOOT_ID) == before

    code, output = set_up(lab, "-e", "prove=true")
    assert code == 0, output[-3000:]
    works = {"power": "works", "console": "works", "watchdog": "works", "pstore": "works", "kdump": "absent"}
    assert health(output) == works, output[-3000:]
    assert over_ssh(STATE, BENCH, BOOT_ID) != before
    assert "panic=10 console=tty0 console=ttyS0,115200n8" in over_ssh(STATE, BENCH, "cat /proc/cmdline")

    own_lab(lab.parent / "user", lab, STATE, ansible_user=USER, ansible_become=True)
    # nothing but the rule lets it become root
    assert over_ssh(STATE, BENCH, f"sudo -n -u {USER} sudo -n id || echo refused").strip().endswith("refused")
    words = ["--baseline", "bare", "--candidate", "bare_too", "--suite", GATE / "live.suite.yml"]
    words += ["--adapters", "vscsi", "--profile", "quick"]
    code, output, run = qualified(lab.parent / "runs", lab.parent / "user" / "lab", *words)
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["coverage"]["measured"] == verdict["coverage"]["planned"] > 0, output[-3000:]
    assert [entry["outcome"] for entry in verdict["criteria"] if entry["outcome"] == "ERROR"] == [], output[-3000:]
    assert any(event.kind == "restored" for event in iter_events(run)), output[-3000:]
