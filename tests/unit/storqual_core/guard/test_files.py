# SPDX-License-Identifier: Apache-2.0
"""File targets are made by storqual, lie in one folder, and are known by their inode."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storqual_core.guard import files, hold
from storqual_core.guard.claims import Claim
from storqual_core.guard.files import make_file
from storqual_core.kit.errors import GuardRefusalError, StorqualError

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1 << 20


def claim(state: Path, name: str = "drive0", **changes: object) -> Claim:
    """The claim on a file of the targets folder."""
    path = str(state / "targets" / name)
    return Claim(
        **{"id": path, "wwn": "", "serial": "", "vendor": "", "model": "", "size": SIZE, "file": path, **changes}
    )  # type: ignore[arg-type]


def test_a_file_is_made_once_and_given_out(tmp_path: Path) -> None:
    mine = claim(tmp_path)
    assert make_file(mine, tmp_path)
    assert not make_file(mine, tmp_path)
    with hold.hold([mine], purpose="write", state_dir=tmp_path) as held:
        assert dict(held) == {mine.id: mine.file}
        assert (held.window(mine.id).offset, held.window(mine.id).size) == (0, SIZE)
        with (
            pytest.raises(GuardRefusalError, match="another program opened it"),
            hold.hold([mine], purpose="write", state_dir=tmp_path),
        ):
            pytest.fail("given out twice")
        with pytest.raises(StorqualError, match="cannot be stamped"):
            held.stamp(mine.id)
    assert not any(Path(mine.file).read_bytes())


def replace(path: Path) -> None:
    """Put another file in its place."""
    other = path.with_name("other")
    other.write_bytes(bytes(SIZE))
    other.replace(path)


def symlink(path: Path) -> None:
    """Put a link to precious data in its place."""
    precious = path.parent.parent / "precious"
    path.replace(precious)
    path.symlink_to(precious)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "it does not exist; run the preflight of a run, which creates it"),
    "symbolic-link": (symlink, "it is a symbolic link; claim the file itself"),
    "replaced": (replace, "it is another file than the claimed one"),
    "other-size": (lambda path: os.truncate(path, SIZE - 1), "its size is 1048575 bytes, the claim says 1048576"),
    "hard-link": (lambda path: os.link(path, path.parent / "b"), "it has 2 names (hard links)"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "it is not a regular file"),
    "record-lost": (lambda path: (path.parent / ".claims.json").unlink(), "storqual did not make it"),
    "record-damaged": (lambda path: (path.parent / ".claims.json").write_text("{"), "cannot be read"),
}


@pytest.mark.parametrize("state", BAD)
def test_anything_else_in_its_place_is_refused(tmp_path: Path, state: str) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    arrange, expected = BAD[state]
    arrange(Path(mine.file))
    said = [str(refusal) for refusal in hold.check([mine], purpose="write", state_dir=tmp_path)]
    assert any(expected in sentence for sentence in said), said
    with pytest.raises(GuardRefusalError), hold.hold([mine], purpose="write", state_dir=tmp_path):
        pytest.fail("given out")


@pytest.mark.parametrize("state", ["replaced", "symbolic-link", "hard-link", "folder", "missing"])
def test_a_file_that_is_replaced_after_the_check_is_not_opened(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was examined is what is opened, or nothing."""
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    arrange, _ = BAD[state]
    opened = hold.open_file
    monkeypatch.setattr(hold, "open_file", lambda found: (arrange(Path(found.path)), opened(found))[1])
    with (
        pytest.raises(GuardRefusalError, match=r"it cannot be opened: (it is a different file now|No such file)"),
        hold.hold([mine], purpose="write", state_dir=tmp_path),
    ):
        pytest.fail("given out")


def test_a_file_that_is_replaced_while_it_is_held_stays_the_one_that_is_written(tmp_path: Path) -> None:
    mine = claim(tmp_path)
    make_file(mine, tmp_path)
    with hold.hold([mine], purpose="write", state_dir=tmp_path) as held:
        symlink(Path(mine.file))
        precious = tmp_path / "precious"
        Path(mine.file).unlink()
        Path(mine.file).write_bytes(b"somebody's")
        Path(held.opened(mine.id)).write_bytes(b"measured")
    assert precious.read_bytes() == b"measured"
    assert Path(mine.file).read_bytes() == b"somebody's"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "{state}/drive0", "{state}/targets/../drive0", "{state}/targets/.claims.json"]
)
def test_a_file_elsewhere_is_refused_and_not_made(tmp_path: Path, path: str) -> None:
    """Only the folder `targets` of the state directory."""
    (tmp_path / "targets").mkdir()
    mine = claim(tmp_path, file=path.format(state=tmp_path))
    assert "it is not in" in str(hold.check([mine], purpose="write", state_dir=tmp_path)[0])
    with pytest.raises(GuardRefusalError, match="it is not in"):
        make_file(mine, tmp_path)


def test_a_file_that_is_there_already_is_not_adopted(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "drive0").write_bytes(b"precious")
    with pytest.raises(GuardRefusalError, match="storqual did not make it"):
        make_file(claim(tmp_path), tmp_path)
    assert (tmp_path / "targets" / "drive0").read_bytes() == b"precious"


def test_what_takes_the_name_while_a_file_is_made_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = claim(tmp_path)
    real = files.replace_json

    def meanwhile(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        Path(mine.file).write_bytes(b"precious")

    monkeypatch.setattr(files, "replace_json", meanwhile)
    with pytest.raises(StorqualError, match="could not be made"):
        make_file(mine, tmp_path)
    assert Path(mine.file).read_bytes() == b"precious"
