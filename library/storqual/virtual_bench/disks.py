# SPDX-License-Identifier: Apache-2.0
"""The files behind a bench's disks: its own layer over the shared image, one sparse file for each drive with data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual_core.command import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from storqual.virtual_bench.description import BenchDescription
    from storqual.virtual_bench.image import BenchImage
    from storqual.virtual_bench.places import BenchPlaces

__all__ = ["prepare_drives", "prepare_overlay"]


def prepare_overlay(overlay: Path, image: BenchImage, say: Callable[[str], None]) -> bool:
    """Make the bench's own layer over `image` when there is none, or when the one there is over another image.

    Whether it was made. What a bench changed on its root disk is lost with an image that changed; it is said.
    """
    stamp = overlay.with_suffix(".image")
    if overlay.is_file() and stamp.is_file() and stamp.read_text(encoding="ascii").strip() == image.digest:
        return False
    if overlay.exists():
        say("the bench image has changed: the bench starts from a fresh root disk")
        overlay.unlink()
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.root), str(overlay)]).expect()
    stamp.write_text(image.digest + "\n", encoding="ascii")
    return True


def prepare_drives(places: BenchPlaces, description: BenchDescription) -> None:
    """Make missing drive files; a drive whose declared size changed is a new, empty drive."""
    places.drive("x").parent.mkdir(parents=True, exist_ok=True)
    for drive in (drive for drive in description.drives if not drive.service_time):
        file = places.drive(drive.device)
        if file.is_file() and file.stat().st_size == drive.size:
            continue
        with file.open("wb") as handle:
            handle.truncate(drive.size)
