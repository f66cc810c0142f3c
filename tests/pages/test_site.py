# SPDX-License-Identifier: Apache-2.0
"""The documentation site as a lab without a network opens it: from disk, on a screen and on a phone."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.browser import Browser

pytestmark = pytest.mark.pages

REPOSITORY = Path(__file__).resolve().parents[2]
SEARCH = Path(__file__).with_suffix(".search").read_text(encoding="utf-8")
BROKEN_KEYS = """
[...document.querySelectorAll("td code")]
  .filter((code) => /^\\w+$/.test(code.textContent) && code.getClientRects().length > 1)
  .map((code) => code.textContent)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [str(Path(sys.executable).parent / "mkdocs"), "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(words, cwd=REPOSITORY, stdin=subprocess.DEVNULL, check=True, timeout=300)
    return folder


@pytest.mark.parametrize(
    ("page", "word", "found"),
    [
        ("index.html", "waiver", "how-to/release-manager/waivers.html"),
        ("reference/keys.html", "rotation_rate", "reference/keys.html"),
        ("tutorial/local-files.html", "execution environment", "how-to/technician/ansible.html"),
    ],
)
def test_a_search_finds_a_page_without_a_server(
    chromium: Browser, site: Path, page: str, word: str, found: str
) -> None:
    chromium.show(site / page, width=1280, height=900)
    answer = chromium.call(
        "Runtime.evaluate", expression=SEARCH.replace("WORD", f'"{word}"'), awaitPromise=True, returnByValue=True
    )
    links = answer["result"]["value"]
    assert any(link.endswith(found) for link in links), links


@pytest.mark.parametrize("page", ["keys", "settings", "metrics", "faults"])
def test_no_key_of_the_reference_is_broken_inside_on_a_phone(chromium: Browser, site: Path, page: str) -> None:
    chromium.show(site / "reference" / f"{page}.html", width=390, height=844)
    answer = chromium.call("Runtime.evaluate", expression=BROKEN_KEYS, returnByValue=True)
    assert answer["result"]["value"] == []
