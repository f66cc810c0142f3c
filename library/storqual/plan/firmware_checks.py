# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the firmware of drops before a bench is touched: files, versions, the way back between arms."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from storqual.model.drop import Drop, Firmware, Rollback
from storqual.model.yaml_file import Document, Place, read_yaml

__all__ = ["arm_problems", "image_problems"]


def image_problems(drop: Drop, path: Path) -> Iterator[str]:
    """Images without a version, and files that are not there or not what their SHA-256 says."""
    if not drop.firmware:
        return
    document = read_yaml(path)
    listed = isinstance(document.data.get("firmware"), list)
    for number, image in enumerate(drop.firmware):
        place: Place = ("firmware", number) if listed else ("firmware",)
        if image.version is None:
            told = "firmware without `version`"
            yield document.problem(place, told, "what the adapter or drive tells when it runs the image")
        yield from _file_problems(document, place, image, drop.folder)
        entry = document.data["firmware"][number] if listed else document.data["firmware"]
        several = isinstance(entry.get("rollback"), list)
        for position, each in enumerate(image.rollback or ()):
            inner: Place = (*place, "rollback", position) if several else (*place, "rollback")
            yield from _file_problems(document, inner, each, drop.folder)


def _file_problems(document: Document, place: Place, image: Firmware | Rollback, folder: str) -> Iterator[str]:
    file = Path(folder, image.file)
    if not file.is_file():
        yield document.problem((*place, "file"), f"no file {str(file)!r}", "the image")
    else:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != image.sha256:
            yield document.problem((*place, "sha256"), f"{image.sha256}", f"{digest}, which is that of {file}")
    if image.signature is not None:
        for name, text in (("file", image.signature.file), ("key", image.signature.key)):
            if not Path(folder, text).is_file():
                yield document.problem((*place, "signature", name), f"no file {text!r}", "one beside the image")


def arm_problems(drops: Sequence[tuple[Drop, Path]]) -> Iterator[str]:
    """Firmware that only one of two arms declares: the other one could not be measured with its own again."""
    with_images = [(drop, path) for drop, path in drops if drop.firmware]
    for drop, path in with_images if len(with_images) < len(drops) else ():
        document = read_yaml(path)
        others = ", ".join(other.name for other, _ in drops if other is not drop)
        told = f"firmware, which drop {others} does not declare"
        yield document.problem(("firmware",), told, "both arms with theirs, so that a bench can go to and fro")
