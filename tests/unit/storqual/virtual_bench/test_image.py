# SPDX-License-Identifier: Apache-2.0
"""The image's name is the digest of all its inputs, and the recipe is complete."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.inputs.inventory import Guest
from storqual.virtual_bench import image
from storqual.virtual_bench.image import (
    FLAVOURS,
    AptSources,
    choose_sources,
    debian_entries,
    image_digest,
    unstable_sources,
)
from storqual_core.kit.errors import BadInputError, ToolError

RECIPE = Path(image.__file__).parent / "recipe"
SOURCES = AptSources("here", "Types: deb\n")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECIPE, tmp_path / "recipe"))


def digest(recipe: Path, flavour: str = "deb") -> str:
    return image_digest(SOURCES, flavour, recipe)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_digest_is_the_same_for_the_same_inputs(recipe: Path, flavour: str) -> None:
    assert digest(recipe, flavour) == digest(RECIPE, flavour)


@pytest.mark.parametrize("file", ["packages", "customize", "tree/etc/default/grub"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_changed_file_of_all_is_another_image_of_each_flavour(recipe: Path, flavour: str, file: str) -> None:
    with (recipe / "common" / file).open("a") as handle:
        handle.write("\n")
    assert digest(recipe, flavour) != digest(RECIPE, flavour)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_changed_file_of_one_flavour_is_another_image_of_that_one_only(recipe: Path, flavour: str) -> None:
    """A change for benches of RPMs costs nobody else a new image."""
    with (recipe / flavour / "customize").open("a") as handle:
        handle.write("\n")
    assert [other for other in FLAVOURS if digest(recipe, other) != digest(RECIPE, other)] == [flavour]


def test_another_name_another_mode_and_other_sources_are_another_image_each(recipe: Path) -> None:
    file = recipe / "common/tree/etc/default/grub"
    file.chmod(0o755)
    executable = digest(recipe)
    file.rename(file.with_name("grub2"))
    other = image_digest(AptSources("here", "Types: deb\nEnabled: yes\n"))
    assert len({digest(RECIPE), executable, digest(recipe), other}) == 4


def test_a_flavour_that_is_none_is_refused() -> None:
    with pytest.raises(BadInputError, match="flavour: expected one of deb, rpm, rpm-suse, uefi, found 'pacman'"):
        image.ensure_image(flavour="pacman")


def test_an_inventory_may_name_each_flavour_that_there_is() -> None:
    assert get_args(Guest.model_fields["flavour"].annotation) == tuple(FLAVOURS)


DEB822 = Path(__file__).with_suffix(".deb822").read_text(encoding="utf-8")


def test_the_unstable_release_is_that_of_the_same_archive() -> None:
    archive = "Types: deb\nURIs: http://lab.invalid/debian\nSigned-By: /usr/share/keyrings/lab.gpg\n"
    assert unstable_sources(DEB822) == f"{archive}Suites: sid\nComponents: main\n"
    assert [unstable_sources(text) for text in ("http://lab.invalid/debian", "")] == ["http://lab.invalid/debian", ""]


def test_how_the_archive_is_reached_does_not_change_the_image() -> None:
    assert image_digest(SOURCES) == image_digest(AptSources("there", SOURCES.text, ('Acquire::Retries "3";',)))


def test_files_are_packed_as_root_readable_by_all_whatever_the_umask(recipe: Path, tmp_path: Path) -> None:
    """A checkout made with umask 077 gives the same guest."""
    for file in recipe.rglob("tree/**/*"):
        file.chmod(file.stat().st_mode & 0o700)
    image._pack_tree([recipe / layer / "tree" for layer in ("common", "rpm")], tmp_path / "tree.tar")
    with tarfile.open(tmp_path / "tree.tar") as archive:
        for member in archive:
            assert (member.uid, member.gid) == (0, 0)
            assert member.mode in {0o644, 0o755}
            assert not member.name.startswith("/")


def test_the_recipe_names_no_package_archive_and_holds_no_key() -> None:
    for file in RECIPE.rglob("*"):
        if file.is_file():
            assert not re.search(r"(?<!file)://|PRIVATE KEY", file.read_text(encoding="utf-8")), file
    assert "rm -f /etc/ssh/ssh_host_*" in (RECIPE / "common/customize").read_text(encoding="utf-8")


def test_the_scripts_of_the_recipe_are_readable() -> None:
    """A mistake in one would show as a bench that does not boot."""
    for file in RECIPE.rglob("*"):
        if file.is_file() and file.read_bytes().startswith(b"#!"):
            if b"python" in file.read_bytes().splitlines()[0]:
                compile(file.read_text(encoding="utf-8"), file, "exec")
            else:
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


FOREIGN = Path(__file__).with_suffix(".sources").read_text(encoding="utf-8")


def test_foreign_disabled_and_source_entries_are_left_out() -> None:
    kept = debian_entries("", FOREIGN)
    assert kept.count("URIs:") == 1
    assert "bookworm-updates" in kept
    assert "debian-archive-keyring" in kept
    assert "comment" not in kept


def test_one_line_entries_become_deb822_with_their_key() -> None:
    kept = debian_entries(
        "deb [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/debian bookworm main contrib\n", ""
    )
    assert kept == (
        "Types: deb\nURIs: http://mirror.invalid/debian\nSuites: bookworm\nComponents: main contrib\n"
        "Signed-By: /k.gpg\n"
    )


def test_comments_other_releases_and_other_publishers_are_no_sources() -> None:
    text = """
# deb http://a.invalid bookworm main
deb http://b.invalid trixie main
deb http://c.invalid bookworm-pgdg main
"""
    assert debian_entries(text, "") == ""


@given(text=st.text(max_size=300), deb822=st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str, deb822: str) -> None:
    debian_entries(text, deb822)


def test_a_mirror_that_is_named_wins() -> None:
    """A lab with a mirror of its own says so once."""
    sources = choose_sources({"STORQUAL_DEBIAN_MIRROR": "http://lab.invalid/debian"})
    assert isinstance(sources, AptSources)
    assert (sources.origin, sources.text) == ("STORQUAL_DEBIAN_MIRROR", "http://lab.invalid/debian")


FOLDER = Path(image.__file__).parent / "recipe/common/tree/usr/lib/python3/dist-packages"
PROGRAM = Path(__file__).with_suffix(".program").read_text(encoding="utf-8")


def imported(kept: Path, archive: Path) -> list[str]:
    """Import the archive's module in an interpreter of its own; what it printed."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(kept), str(archive)],
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.split()


def archive_with(path: Path, source: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("told_value.py", source)
    return path


def test_source_is_compiled_once_and_again_when_it_changed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = archive_with(tmp_path / "first.zip", "VALUE = 1\n")
    assert imported(kept, first) == ["compiled", "1"]
    assert imported(kept, first) == ["1"]
    assert imported(kept, archive_with(tmp_path / "second.zip", "VALUE = 2\n")) == ["compiled", "2"]


def test_what_was_cut_short_is_compiled_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    archive = archive_with(tmp_path / "some.zip", "VALUE = 3\n")
    imported(kept, archive)
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:5])
    assert imported(kept, archive) == ["compiled", "3"]


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert imported(blocked / "kept", archive_with(tmp_path / "some.zip", "VALUE = 4\n"))[-1] == "4"
