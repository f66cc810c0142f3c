# SPDX-License-Identifier: Apache-2.0
"""The host key of a bench is known before it is powered on, and its ssh_config says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from storqual.virtual_bench.disks import make_keys, ssh_config_text
from storqual.virtual_bench.places import BenchPlaces


def _effective(config: Path, name: str) -> dict[str, str]:
    """What ssh itself understands of the file."""
    said = subprocess.run(["ssh", "-G", "-F", str(config), name], capture_output=True, text=True, check=True).stdout
    return {key.lower(): value for key, _, value in (line.partition(" ") for line in said.splitlines())}


@pytest.mark.parametrize("folder", ["plain", "with space", 'quote"and%percent', "#hash=equal"])
def test_ssh_reads_back_what_was_meant(tmp_path: Path, folder: str) -> None:
    places = BenchPlaces.of(tmp_path / folder)
    keys = make_keys(places, "vbench")
    config = tmp_path / "ssh_config"
    config.write_text(ssh_config_text("vbench", keys, 40022))
    told = _effective(config, "vbench")
    assert (told["hostname"], told["port"], told["user"]) == ("127.0.0.1", "40022", "root")
    assert told["stricthostkeychecking"] in {"true", "yes"}
    assert told["hostkeyalias"] == "storqual-vbench"
    assert told["globalknownhostsfile"] == "/dev/null"


def test_keys_are_made_once_and_the_private_ones_are_private(tmp_path: Path) -> None:
    places = BenchPlaces.of(tmp_path)
    first = make_keys(places, "vbench")
    before = first.client.read_bytes(), first.host.read_bytes()
    second = make_keys(places, "vbench")
    assert (second.client.read_bytes(), second.host.read_bytes()) == before
    for key in (first.client, first.host):
        assert key.stat().st_mode & 0o077 == 0


def test_the_known_host_is_the_key_that_the_bench_will_have(tmp_path: Path) -> None:
    """Known before first contact, so checking is never off."""
    keys = make_keys(BenchPlaces.of(tmp_path), "vbench")
    alias, algorithm, key = keys.known_hosts.read_text().split()
    assert alias == "storqual-vbench"
    assert keys.host.with_suffix(".pub").read_text().split()[:2] == [algorithm, key]


def test_two_benches_do_not_share_a_key(tmp_path: Path) -> None:
    one, two = (make_keys(BenchPlaces.of(tmp_path / name), "vbench") for name in ("one", "two"))
    assert one.client.read_bytes() != two.client.read_bytes()
    assert one.host.read_bytes() != two.host.read_bytes()
