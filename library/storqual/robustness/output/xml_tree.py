# SPDX-License-Identifier: Apache-2.0
"""XML that a foreign program wrote, as a tree: no document type, no entities, what came before an error is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

_DEEPEST = 100


@dataclass
class Element:
    """One element, its text without that of the elements in it."""

    name: str
    attributes: dict[str, str]
    parts: list[Element] = field(default_factory=list)
    text: str = ""

    def named(self, *names: str) -> Iterator[Element]:
        """All elements of these names below this one, in order."""
        for part in self.parts:
            if part.name in names:
                yield part
            yield from part.named(*names)


class _RefusedError(Exception):
    """The document has what no report of tests needs."""


def read_xml(text: str) -> tuple[Element, str]:
    """A root above all that was read, and why the reading ended early, empty when it did not."""
    root = Element("", {})
    open_elements = [root]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > _DEEPEST:
            raise _RefusedError(f"more than {_DEEPEST} levels")
        element = Element(name, attributes)
        open_elements[-1].parts.append(element)
        open_elements.append(element)

    def doctype(*_: object) -> None:
        raise _RefusedError("a document type, which a report of tests does not need")

    def data(text: str) -> None:
        open_elements[-1].text += text

    # the text was decoded already: what its first line says of an encoding is no longer so
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _name: open_elements.pop() and None
    parser.CharacterDataHandler = data
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)  # noqa: FBT003 - it takes no names
    except (expat.ExpatError, _RefusedError) as problem:
        return root, f"XML: {problem}"
    return root, ""
