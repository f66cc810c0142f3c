# SPDX-License-Identifier: Apache-2.0
"""Files of disc images by their long names; an image that is cut or changed is refused or told as it is."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.kit.iso9660 import list_files

LONG = "kmod-mpt3sas-47.00.00.00_el9.4-1.x86_64.rpm"
FILES = {
    "rhdd3": b"Driver Update Disk version 3\n",
    f"rpms/x86_64/{LONG}": b"a package" * 500,
    f"rpms/x86_64/{'n' * 200}.rpm": b"its name goes on elsewhere",
    "rpms/x86_64/repodata/empty": b"",
}


def image(folder: Path, *options: str) -> Path:
    if shutil.which("xorriso") is None:
        pytest.skip("xorriso is not installed")
    for name, content in FILES.items():
        place = folder / "tree" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    made = folder / "dd.iso"
    words = ["xorriso", "-as", "mkisofs", "-quiet", "-V", "OEMDRV", *options, "-o", str(made), str(folder / "tree")]
    subprocess.run(words, check=True, capture_output=True)
    return made


@pytest.mark.parametrize("options", [("-R",), ("-R", "-J"), ("-J", "-joliet-long")])
def test_files_have_their_long_names(tmp_path: Path, options: tuple[str, ...]) -> None:
    made = image(tmp_path, *options)
    found = {each.path: each.read(str(made)) for each in list_files(str(made))}
    if "-R" in options:
        assert found == FILES
    else:
        # a name of Joliet's has at most 103 characters
        assert found[f"rpms/x86_64/{LONG}"] == FILES[f"rpms/x86_64/{LONG}"]
        assert len(found) == len(FILES)


def test_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.iso"
    for content in (b"", b"a package", bytes(100_000)):
        file.write_bytes(content)
        with pytest.raises(ToolError, match=r"x\.iso"):
            list_files(str(file))
    with pytest.raises(ToolError, match="No such file"):
        list_files(str(tmp_path / "gone.iso"))


def test_a_cut_image_is_refused_or_read_as_far_as_it_goes(tmp_path: Path) -> None:
    made = image(tmp_path, "-R")
    whole = made.read_bytes()
    cut = tmp_path / "cut.iso"
    for size in range(0, len(whole), 997):
        cut.write_bytes(whole[:size])
        try:
            found = {each.path: each.read(str(cut)) for each in list_files(str(cut))}
        except ToolError:
            continue
        assert found == FILES


def test_a_changed_image_ends_in_a_sentence_or_in_files(tmp_path: Path) -> None:
    made = image(tmp_path, "-R", "-J")
    whole = made.read_bytes()
    chance = random.Random(4)
    begin = 16 * 2048
    told = []
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(begin, len(data))] = chance.randrange(256)
        made.write_bytes(data)
        try:
            for each in list_files(str(made)):
                each.read(str(made))
        except ToolError as problem:
            told.append(str(problem))
    assert told
    assert all("dd.iso" in sentence for sentence in told)
