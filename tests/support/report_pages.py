# SPDX-License-Identifier: Apache-2.0
"""A page as a tree, by the standard library's own parser: what a browser would find in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

BATCHES = {
    *("br", "p", "li", "td", "th", "dt", "dd", "div", "h1", "h2", "h3", "h4", "caption", "summary", "pre"),
    *("text",),
}
VOID = {"meta", "link", "br", "wbr", "img", "hr", "input"}


@dataclass
class Node:
    """An element: its name, attributes, children and direct texts."""

    name: str
    attributes: dict[str, str]
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, name: str, class_: str | None = None) -> list[Node]:
        """Elements of that name (and class) in it."""
        return [
            node
            for node in self.walk()
            if node.name == name and (class_ is None or class_ in node.attributes.get("class", "").split())
        ]

    def text(self) -> str:
        """Everything in it that is text, white space put together."""
        return " ".join("".join(self.inner).split())

    def ancestors(self) -> Iterator[Node]:
        """The elements around it, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


class Page(HTMLParser):
    """Parses a page; raises AssertionError where elements are not closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.declarations: list[str] = []
        self.comments: list[str] = []
        self.root = Node("", {})
        self._open = [self.root]
        self.feed(source)
        self.close()
        assert len(self._open) == 1, f"not closed: {[node.name for node in self._open]}"

    def handle_decl(self, decl: str) -> None:
        self.declarations.append(decl)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element; an attribute given twice is an error."""
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}: {names}"
        node = Node(tag, {name: value or "" for name, value in attrs}, self._open[-1])
        self._open[-1].children.append(node)
        if tag in BATCHES:
            self.handle_data(" ")
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close an element; only the one opened last."""
        assert self._open[-1].name == tag, f"</{tag}> closes <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].texts.append(data)
        for node in self._open:
            node.inner.append(data)

    def find(self, ident: str) -> Node:
        return next(node for node in self.root.walk() if node.attributes.get("id") == ident)

    @property
    def header(self) -> str:
        return self.root.all("header")[0].text()

    def section(self, name: str) -> Node:
        """The section that the heading `name` labels."""
        return next(node for node in self.root.all("section") if node.attributes.get("aria-labelledby") == name)


def read_page(path: Path) -> Page:
    """Parse the page at `path`."""
    return Page(path.read_text(encoding="utf-8"))
