# SPDX-License-Identifier: Apache-2.0
"""Hooks of MkDocs: adds the pages that are made from code and from the project's READMEs."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from reference import PAGES
from sources import PROJECT, SOURCES, page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the pictures that READMEs show."""
    for path, source in SOURCES.items():
        files.append(File.generated(config, path, content=page(source)))
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    for picture in sorted((PROJECT / "suites" / "pictures").glob("*.png")):
        files.append(File.generated(config, f"reference/pictures/{picture.name}", abs_src_path=str(picture)))
    report = PROJECT / "templates" / "pictures" / "report.png"
    files.append(File.generated(config, "pictures/report.png", abs_src_path=str(report)))
    return files
