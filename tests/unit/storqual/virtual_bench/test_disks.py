# SPDX-License-Identifier: Apache-2.0
"""A drive that keeps what is written to it has a file of its size; no other drive has one."""

from __future__ import annotations

from pathlib import Path

from storqual.virtual_bench.description import describe
from storqual.virtual_bench.disks import prepare_drives
from storqual.virtual_bench.places import BenchPlaces


def test_each_drive_that_keeps_data_has_a_file_and_a_changed_size_is_a_new_drive(tmp_path: Path) -> None:
    drives = [
        {"serial": "A", "size": "1MiB"},
        {"serial": "B", "size": "1MiB", "virtual": {"service_time": "4ms"}},
        {"serial": "C", "size": "2MiB"},
    ]
    places = BenchPlaces(tmp_path)
    adapters = {"sym": {"pci": "0000:00:05.0", "drives": drives}}
    prepare_drives(places, describe("vbench", adapters, {"adapters": {"sym": {"device": "lsi53c895a"}}}))
    assert {file.name: file.stat().st_size for file in places.drive("x").parent.iterdir()} == {
        "sym-0.img": 2**20,
        "sym-2.img": 2**21,
    }
    places.drive("sym-0").write_bytes(b"kept".ljust(2**20, b"\0"))
    places.drive("sym-2").write_bytes(b"of another size")
    prepare_drives(places, describe("vbench", adapters, {"adapters": {"sym": {"device": "lsi53c895a"}}}))
    assert places.drive("sym-0").read_bytes().startswith(b"kept")
    assert places.drive("sym-2").read_bytes() == bytes(2**21)
