# SPDX-License-Identifier: Apache-2.0
"""A drive that keeps what is written to it has a file of its size; no other drive has one."""

import os
import subprocess
from pathlib import Path

import pytest

from storqual.virtual_bench.description import describe
from storqual.virtual_bench.disks import make_keys, prepare_drives, prepare_overlay, ssh_config_text
from storqual.virtual_bench.image import BenchImage
from storqual.virtual_bench.places import BenchPlaces, cache_folder, make_private, socket_folder
from storqual_core.kit.errors import StorqualError


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


def _effective(config: Path, name: str) -> dict[str, str]:
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


def test_sockets_of_two_checkouts_are_apart(tmp_path: Path) -> None:
    assert socket_folder(tmp_path / "a") != socket_folder(tmp_path / "b")


def test_a_socket_path_fits_however_deep_the_checkout_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket address has room for 107 bytes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/4294967294")
    deep = tmp_path / Path(*["a-long-folder-name"] * 20)
    assert len(os.fsencode(socket_folder(deep) / "monitor")) <= 107


def test_one_folder_reached_by_two_paths_is_one_bench(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert BenchPlaces.of(tmp_path / "link") == BenchPlaces.of(tmp_path / "real" / ".." / "real")


def test_a_socket_folder_is_for_its_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "storqual-0" / "bench"
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o022 == 0
    make_private(folder)


def test_a_socket_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "storqual-0" / "bench"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(StorqualError, match="writable by others"):
        make_private(folder)


def test_a_socket_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Somebody else could have laid it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "storqual-0").mkdir(mode=0o700)
    (tmp_path / "storqual-0" / "bench").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorqualError):
        make_private(tmp_path / "storqual-0" / "bench")


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORQUAL_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("STORQUAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert cache_folder() == tmp_path / "there" / "storqual"


def test_efi_variables_stay_with_the_root_disk_and_start_anew_with_a_new_one(tmp_path: Path) -> None:
    image, places = BenchImage(tmp_path / "image"), BenchPlaces.of(tmp_path / "state")
    places.state.mkdir()
    (image.folder / "kept/OVMF").mkdir(parents=True)
    for part in ("CODE", "VARS"):
        (image.folder / f"kept/OVMF/OVMF_{part}_4M.fd").write_bytes(b"first")
    image.root.write_bytes(bytes(1 << 20))
    assert prepare_overlay(places, image, print)
    places.variables.write_bytes(b"chosen")
    assert not prepare_overlay(places, image, print)
    assert places.variables.read_bytes() == b"chosen"
    places.overlay.unlink()
    assert prepare_overlay(places, image, print)
    assert places.variables.read_bytes() == b"first"
