# SPDX-License-Identifier: Apache-2.0
"""What happens to a tool's output on its way: cut off, mixed with other output, printed under another locale."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence


_NOISE = (
    "\n",
    "WARNING: something\n",
    "\x1b[31mred\x1b[0m\n",
    "\ufffd\ufffd\n",
    "{\n",
    ": :: =\n",
    "\t\n",
    "[0:0:0:0]\n",
)
_LOCALES = (
    lambda text: re.sub(r"(\d)\.(\d)", r"\1,\2", text),
    lambda text: re.sub(r"(\d)(\d{3})\b", "\\1\u202f\\2", text),
    lambda text: re.sub(r"(\d)(\d{3})\b", "\\1\ufffd\ufffd\ufffd\\2", text),
    lambda text: text.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
    lambda text: text.replace("yes", "oui").replace("Yes", "Oui").replace("Status", "État"),
    lambda text: text.replace("\n", "\r\n"),
)


@st.composite
def mangled(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """One of `texts`: cut off, with lines of another one or noise in between, or localised; sometimes all of it."""
    text = draw(st.sampled_from(list(texts)))
    if draw(st.booleans()):
        start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        text = draw(st.sampled_from((text[:end], text[start:], text[start:end])))
    if draw(st.booleans()):
        lines = text.splitlines(keepends=True)
        others = [*draw(st.sampled_from(list(texts))).splitlines(keepends=True), *_NOISE]
        for place in draw(st.lists(st.integers(0, len(lines)), max_size=6)):
            lines.insert(place, draw(st.sampled_from(others)))
        text = "".join(lines)
    if draw(st.booleans()):
        text = draw(st.sampled_from(_LOCALES))(text)
    return text
