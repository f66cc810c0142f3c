# SPDX-License-Identifier: Apache-2.0
"""What happens to a tool's output on its way: cut off, mixed with other output, printed under another locale."""

import random
import re
from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

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

ODD_NUMBERS = ("9" * 5000, "9" * 400, "1" * 41, "1e400", "-0", "\u00b2\u00b3", "\u0663\u0664", "0x" + "f" * 5000)
"""What `int` and `float` refuse, make infinite, or read although nobody printed it."""


def with_odd_number(text: str, odd: str) -> Iterator[str]:
    """`text` with `odd` for all its numbers, and for each of them; of lines that differ in digits only, for one."""
    yield re.sub("[0-9]+", odd, text)
    seen = set()
    for match in re.finditer("[0-9]+", text):
        before = re.sub("[0-9]+", "#", text[text.rfind("\n", 0, match.start()) + 1 : match.start()])
        if before not in seen:
            seen.add(before)
            yield text[: match.start()] + odd + text[match.end() :]


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


def lost_lines(text: str, chance: random.Random) -> str:
    """Lines deleted, doubled, swapped, or cut off at the end: none that was not there."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        if not lines:
            break
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        how = chance.randrange(4)
        if how == 0:
            del lines[at]
        elif how == 1:
            lines.insert(at, lines[at])
        elif how == 2:
            lines[at], lines[other] = lines[other], lines[at]
        else:
            del lines[at:]
    return "".join(lines)


def noisy(
    text: str,
    chance: random.Random,
    lines: Sequence[str],
    characters: Sequence[str] = "\x00\t\r 0aZ:-[]()=*\ufffd\u0663\u2028",
) -> str:
    """Characters changed, added or cut out, other `lines` in between, other line ends."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        how = chance.randrange(4)
        if how == 0:
            text = text[:at] + chance.choice(characters) + text[at + chance.randint(0, 1) :]
        elif how == 1:
            text = text[:at] + text[at + chance.randint(1, 40) :]
        elif how == 2:
            text = text[:at] + chance.choice(lines) + text[at:]
        else:
            text = text.replace("\n", "\r\n")
    return text
