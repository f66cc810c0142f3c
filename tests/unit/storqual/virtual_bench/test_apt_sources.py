# SPDX-License-Identifier: Apache-2.0
"""Only Debian's own archive for the guest's release is taken from a machine's sources."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storqual.virtual_bench.image import AptSources, choose_sources, debian_entries

DEB822 = """# a comment
Types: deb
URIs: http://mirror.invalid/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://other.invalid/node
Suites: nodistro
Components: main

Enabled: no
Types: deb
URIs: http://mirror.invalid/security
Suites: bookworm-security
Components: main

Types: deb-src
URIs: http://mirror.invalid/debian
Suites: bookworm
Components: main
"""


def test_foreign_disabled_and_source_entries_are_left_out() -> None:
    kept = debian_entries("", DEB822)
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
