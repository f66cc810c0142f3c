# SPDX-License-Identifier: Apache-2.0
"""A firmware image as its roles take it: which files go to the bench, and what the module is told about them."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["firmware_inputs"]


def firmware_inputs(image: Mapping[str, Any]) -> dict[str, Any]:
    """`adapters` and `drives` it is for, `copies` (from, to), `firmware` with paths below the bench's state folder.

    The folder of each file is its image's digest: two images of one name do not meet, and what is there stays right.
    """
    copies: list[dict[str, str]] = []
    own = _on_bench(image, copies)
    return {
        "adapters": list(image.get("adapters") or ()),
        "drives": list(image.get("drives") or ()),
        "copies": copies,
        "file": image["file"],
        "firmware": {
            **own,
            "tool": image["tool"],
            "component": image.get("component") or "firmware",
            "activation": image["activation"],
            "from": list(image.get("from") or ()),
            "boards": list(image.get("boards") or ()),
            "rollback": [
                {**_on_bench(each, copies), "component": image.get("component") or "firmware"}
                for each in image.get("rollback") or ()
            ],
        },
    }


def _on_bench(image: Mapping[str, Any], copies: list[dict[str, str]]) -> dict[str, str]:
    """One image and its signature below the state folder; what must be copied there is added to `copies`."""
    signature = image.get("signature") or {}
    named = {"path": image["file"], "signature": signature.get("file", ""), "key": signature.get("key", "")}
    found = {"sha256": image["sha256"], "version": image.get("version") or ""}
    for name, source in named.items():
        found[name] = f"firmware/{image['sha256']}/{PurePath(source).name}" if source else ""
        if source:
            copies.append({"from": source, "to": found[name]})
    return found
