# SPDX-License-Identifier: Apache-2.0
"""The image's name is the digest of all its inputs, and the recipe is complete."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from storqual.virtual_bench import image
from storqual.virtual_bench.image import AptSources, image_digest
from storqual_core.kit.errors import ToolError

RECIPE = Path(image.__file__).parent / "recipe"
SOURCES = AptSources("here", "Types: deb\n")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe to change."""
    return Path(shutil.copytree(RECIPE, tmp_path / "recipe"))


def test_the_digest_is_the_same_for_the_same_inputs(recipe: Path) -> None:
    assert image_digest(SOURCES, recipe) == image_digest(SOURCES, RECIPE)


@pytest.mark.parametrize("file", ["packages", "customize", "boot_disc.cfg", "tree/etc/default/grub"])
def test_a_changed_file_is_another_image(recipe: Path, file: str) -> None:
    with (recipe / file).open("a") as handle:
        handle.write("\n")
    assert image_digest(SOURCES, recipe) != image_digest(SOURCES, RECIPE)


def test_a_renamed_file_is_another_image(recipe: Path) -> None:
    (recipe / "tree/etc/default/grub").rename(recipe / "tree/etc/default/grub2")
    assert image_digest(SOURCES, recipe) != image_digest(SOURCES, RECIPE)


def test_a_file_that_may_be_executed_is_another_image(recipe: Path) -> None:
    (recipe / "tree/etc/default/grub").chmod(0o755)
    assert image_digest(SOURCES, recipe) != image_digest(SOURCES, RECIPE)


def test_other_sources_are_another_image() -> None:
    assert image_digest(SOURCES) != image_digest(AptSources("here", "Types: deb\nEnabled: yes\n"))


def test_how_the_archive_is_reached_does_not_change_the_image() -> None:
    assert image_digest(SOURCES) == image_digest(AptSources("there", SOURCES.text, ('Acquire::Retries "3";',)))


def test_files_are_packed_as_root_readable_by_all_whatever_the_umask(recipe: Path, tmp_path: Path) -> None:
    """A checkout made with umask 077 gives the same guest."""
    for file in (recipe / "tree").rglob("*"):
        file.chmod(file.stat().st_mode & 0o700)
    image._pack_tree(recipe / "tree", tmp_path / "tree.tar")
    with tarfile.open(tmp_path / "tree.tar") as archive:
        for member in archive:
            assert (member.uid, member.gid) == (0, 0)
            assert member.mode in {0o644, 0o755}
            assert not member.name.startswith("/")


def test_the_recipe_names_no_package_archive() -> None:
    for file in RECIPE.rglob("*"):
        if file.is_file():
            assert "://" not in file.read_text(encoding="utf-8"), file


def test_the_image_holds_no_key() -> None:
    for file in RECIPE.rglob("*"):
        if file.is_file():
            assert "PRIVATE KEY" not in file.read_text(encoding="utf-8"), file
    assert "rm -f /etc/ssh/ssh_host_*" in (RECIPE / "customize").read_text(encoding="utf-8")


def test_the_scripts_of_the_recipe_are_shell() -> None:
    """A mistake in one would show as a bench that does not boot."""
    for file in RECIPE.rglob("*"):
        if file.is_file() and file.read_bytes().startswith(b"#!"):
            checked = subprocess.run(["sh", "-n", str(file)], capture_output=True, text=True, check=False)
            assert checked.returncode == 0, checked.stderr
            assert file.stat().st_mode & 0o100, f"{file} is not executable"


def test_a_machine_without_the_tools_is_told_what_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "choose_sources", lambda: SOURCES)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("STORQUAL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ToolError, match=r"`mmdebstrap` is not installed .*; `make setup-bench` installs what"):
        image.ensure_image()
    assert [path.name for path in (tmp_path / "cache" / "bench-image").iterdir()] == ["lock"]
