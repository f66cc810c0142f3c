# SPDX-License-Identifier: Apache-2.0
"""A release names one version everywhere, and the formats that it promises to read are those that the code writes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from storqual import __version__

REPOSITORY = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
NAMES_WHEEL = ("README.md", "docs/tutorial/local-files.md", "docs/how-to/technician/ansible.md")


def test_one_version_is_named_everywhere() -> None:
    assert __version__ == VERSION
    for page in NAMES_WHEEL:
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        assert set(re.findall(r"storqual-(?:bench-)?(\d+\.\d+\.\d+)", text)) == {VERSION}, page


def test_the_changelog_begins_with_a_dated_section_of_this_version() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    (first, *_) = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", text, re.MULTILINE)
    assert first[0] == "Unreleased" or (first[0] == VERSION and first[1]), first
    assert re.search(rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d{{2}}-\d{{2}}$", text, re.MULTILINE)


def test_every_format_has_its_number_in_the_list_that_is_kept() -> None:
    form = re.compile(r"\bstorqual\.[a-z_]+/[0-9]+\b")
    library = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "library").rglob("*.py"))
    written = {found for text in library for found in re.findall(r'"(storqual\.[a-z_]+/[0-9]+)"', text)}
    listed = set(form.findall((REPOSITORY / "docs/reference/run-files.md").read_text(encoding="utf-8")))
    assert written == listed
