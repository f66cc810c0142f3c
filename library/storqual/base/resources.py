# SPDX-License-Identifier: Apache-2.0
"""Where the project's own files are: in a checkout beside `library/`, in an installed wheel inside the package."""

from __future__ import annotations

from pathlib import Path


def project_root() -> Path:
    """The folder that holds ansible.cfg, playbooks/, roles/, suites/ and templates/."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    if (checkout / "ansible.cfg").is_file() and (checkout / "playbooks").is_dir():
        return checkout
    return package / "_data"


def suites_folder() -> Path:
    return project_root() / "suites"


def templates_folder() -> Path:
    return project_root() / "templates"


def example_run() -> Path:
    """A finished run for practice, as a compressed archive (`python -m tests.golden make` makes it)."""
    return templates_folder() / "example-run.tar.xz"
