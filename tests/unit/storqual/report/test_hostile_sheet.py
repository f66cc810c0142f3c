# SPDX-License-Identifier: Apache-2.0
"""A bench whose every text is hostile has a sheet like any other: the texts are on it, nothing in it is active."""

import copy
import re
from typing import Any

import pytest

from storqual.base.files import templates_folder
from storqual.base.text import visible_text
from storqual.history.past_runs import LastResult
from storqual.report.sheet import make_sheet, render_sheet
from tests.golden.sheet import FACTS, LAST, bench_of
from tests.support.hostile_payloads import chunks
from tests.support.report_pages import Page

TEMPLATE = (templates_folder() / "sheet.html.j2").read_text(encoding="utf-8")
ELEMENTS = set(re.findall(r"<([a-z0-9]+)", TEMPLATE))
ATTRIBUTES = {
    *("aria-hidden", "aria-label", "charset", "class", "content", "href", "http-equiv", "id", "lang", "name"),
    *("rel", "role", "scope"),
}
ATTRIBUTES |= {"tabindex"}
# what the sheet matches by: a drive that calls itself otherwise is another drive
KEYS = {"schema", "id", "name", "node", "wwn", "serial", "pci", "adapter", "hctl", "size", "kind", "scheduler"}


def infected(value: Any, text: str, name: str = "") -> Any:
    """A fact set in which every free text says `text`."""
    if isinstance(value, str):
        return value if name in KEYS else value + text
    if isinstance(value, dict):
        return {key: infected(inner, text, key) for key, inner in value.items()}
    return [infected(part, text, name) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("payloads", chunks(4))
def test_a_sheet_of_hostile_strings_is_inert(payloads: tuple[str, ...]) -> None:
    text = "".join(payloads)
    facts = infected(copy.deepcopy(FACTS), text)
    facts["drives"][2]["serial"] += text
    last = LastResult(**{**vars(LAST), **dict.fromkeys(("suite", "baseline", "candidate", "outcome"), text)})
    sheet = make_sheet(bench_of(), facts, made="2026-11-21", drop=text, drift=[text], last=last)
    source = render_sheet(sheet)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", source)
    page = Page(source)
    for node in page.root.walk():
        assert node.name in ELEMENTS | {""}, node.name
        assert set(node.attributes) <= ATTRIBUTES, node.attributes
        assert node.attributes.get("href", "data:,") in ("data:,", "#content")
    assert not page.comments
    assert not {"script", "img", "svg", "iframe"} & ELEMENTS
    assert " ".join(visible_text(text).split()) in page.root.text()
