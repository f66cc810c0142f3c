# SPDX-License-Identifier: Apache-2.0
"""Images of ours are told by name, and the distribution's own is afterwards what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual_core.provision.boot import (
    booted_image,
    image_name,
    own_images,
    put_native_back,
    remove_images,
    unchanged,
)


def test_a_name_tells_kernel_and_build() -> None:
    one, other = image_name("6.1.0-1-amd64", b"one"), image_name("6.1.0-1-amd64", b"other")
    assert one.startswith("initrd.storqual-6.1.0-1-amd64-")
    assert one != other
    assert one == image_name("6.1.0-1-amd64", b"one")


def test_the_command_line_names_the_image_that_was_booted() -> None:
    assert booted_image(["root=/dev/sda", "storqual.initramfs=initrd.storqual-1", "quiet"]) == "initrd.storqual-1"
    assert booted_image(["root=/dev/sda"]) == ""


def test_only_images_of_ours_are_removed(tmp_path: Path) -> None:
    for name in ("initrd.img-6.1", "initrd.storqual-6.1-a", "initrd.storqual-6.1-b", "vmlinuz-6.1"):
        (tmp_path / name).write_bytes(b"")
    assert remove_images(str(tmp_path), ["initrd.storqual-6.1-b"]) == ["initrd.storqual-6.1-a"]
    assert own_images(str(tmp_path)) == ["initrd.storqual-6.1-b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("initrd.img-6.1", "initrd.storqual-6.1-b", "vmlinuz-6.1")
    ]


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """The distribution's initramfs, beside a folder for the bench's state."""
    (tmp_path / "state").mkdir()
    (tmp_path / "initrd.img-6.1").write_bytes(b"as found")
    return tmp_path / "initrd.img-6.1"


def test_what_a_package_made_anew_is_put_back(native: Path, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    steps: list[str] = []

    def package() -> None:
        with unchanged(native, state, steps):
            native.write_bytes(b"made anew")
            raise OSError("it broke")

    with pytest.raises(OSError, match="it broke"):
        package()
    assert native.read_bytes() == b"as found"
    assert steps == ["/boot/initrd.img-6.1 put back as it was before the package"]
    number = native.stat().st_ino
    with unchanged(native, state, steps):
        pass
    assert (len(steps), native.stat().st_ino) == (1, number)
    assert list((tmp_path / "state").iterdir()) == []


def test_a_copy_that_a_power_cut_left_is_the_one_that_counts(native: Path, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    cut = unchanged(native, state, [])
    cut.__enter__()
    native.write_bytes(b"made anew")
    steps: list[str] = []
    with unchanged(native, state, steps):
        assert native.read_bytes() == b"as found"
        native.write_bytes(b"made anew once more")
    assert native.read_bytes() == b"as found"
    assert len(steps) == 2
    assert put_native_back(native, state) == []
