# SPDX-License-Identifier: Apache-2.0
"""The bench program is unpacked by rules: plain files inside its folder, not too many, not too large."""

import zipfile
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.turns.main import unpacked


def packed(folder: Path, *names: str, kind: int = 0, content: bytes = b"x") -> Path:
    path = folder / "core.pyz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = kind << 16
            archive.writestr(entry, content)
    return path


def test_plain_files_are_unpacked(tmp_path: Path) -> None:
    folder = unpacked(packed(tmp_path, "__main__.py", "storqual_core/__init__.py", kind=0o100644), tmp_path)
    assert (folder / "storqual_core" / "__init__.py").read_bytes() == b"x"


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "a//b", ".hidden", "a\\b", "a/", "-rf"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError, match="is not a plain file in it"):
        unpacked(packed(tmp_path, "__main__.py", name), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["core.pyz"]


@pytest.mark.parametrize("kind", [0o120777, 0o020666, 0o060666, 0o010644])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    with pytest.raises(ToolError, match="is not a plain file in it"):
        unpacked(packed(tmp_path, "link", kind=kind, content=b"/etc"), tmp_path)
    assert not (tmp_path / "core").exists()


def test_too_many_and_too_large_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="more than 2000 files or 64 MiB"):
        unpacked(packed(tmp_path, *(f"f{number}" for number in range(2001))), tmp_path)
    with pytest.raises(ToolError, match="more than 2000 files or 64 MiB"):
        unpacked(packed(tmp_path, "large", content=bytes((64 << 20) + 1)), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["core.pyz"]
