# SPDX-License-Identifier: Apache-2.0
"""What a tool's next release may print: the same facts with other labels, other order, other sections, other units.

Each variant of a recorded text must be read right, or be refused; read wrong it must never be. What a renamed label
held may be missing in its field when it is kept among what was not understood.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

_LABEL = re.compile(r"^(?P<indent>\s*)(?P<label>[A-Za-z][^:=\n\"{}\[\]]*?)(?P<gap>\s*):(?P<value>(?:\s.*)?)$")
_SIZE = re.compile(r"\b(?P<number>\d+(?:\.\d+)?) (?P<unit>[MG])B\b")
_GAP = re.compile(r"(?<=\S) {2,}(?=[^\s:=])")
_UNREAD = ("settings", "notes", "counters", "lines")
_RENAMED = "Novelty Of Tomorrow"
_SECTION = "Module Of Tomorrow"
_LIST = "List Of Tomorrow"
_FACTS = re.compile(r"^(?P<heading>\s*[a-z]+drive \S+|\s*array \w+) \(", re.IGNORECASE | re.MULTILINE)
_MOST = 40


@dataclass(frozen=True)
class Variant:
    """A text as a later release may print it; `lost` is the value whose label was renamed."""

    name: str
    text: str
    lost: str = ""


def variants(text: str) -> Iterator[Variant]:
    """Every variant of a text: of its JSON where it has some, of its lines otherwise."""
    start = text.find("{")
    try:
        document = json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        document = None
    yield from _of_lines(text) if document is None else _of_json(text[:start], document)


def _of_lines(text: str) -> Iterator[Variant]:
    lines = text.split("\n")
    found = {place: match for place, line in enumerate(lines) if (match := _LABEL.match(line))}
    # a colon within brackets ends no label, and a heading with its facts in brackets is none
    found = {place: match for place, match in found.items() if match["value"].strip() or "(" not in match["label"]}
    labelled = {
        place: match for place, match in found.items() if match["label"].count("(") == match["label"].count(")")
    }

    def changed(change: Callable[[re.Match[str]], str]) -> str:
        return "\n".join(change(labelled[place]) if place in labelled else line for place, line in enumerate(lines))

    def spelt(spell: Callable[[str], str]) -> str:
        return changed(lambda m: f"{m['indent']}{spell(m['label'])}{m['gap']}:{m['value']}")

    yield Variant("labels in capitals", spelt(str.upper))
    yield Variant("labels in small letters", spelt(str.lower))
    yield Variant("wider columns", changed(lambda m: f"{m['indent']}{m['label']}{m['gap']}        :{m['value']}"))
    yield Variant("other units", _SIZE.sub(_other_unit, text))
    yield Variant("headings with their facts padded", _FACTS.sub(r"\g<heading>   (", text))
    yield Variant("line ends of DOS", "\r\n".join(lines))
    yield Variant("blanks at the ends of lines", "\n".join(f"{line}  " if line.strip() else line for line in lines))
    yield Variant("tabs as blanks", text.expandtabs(8))
    # what a label names may hold blanks of its own
    tables = [":" not in line and len(_GAP.findall(line)) > 1 for line in lines]
    rows = "\n".join(_GAP.sub(r"\g<0>   ", line) if row else line for line, row in zip(lines, tables, strict=True))
    if rows != text:
        yield Variant("rows of tables further apart", rows)
    yield Variant("the command's echo in front", f"bench1:~ # tool --option\n{text}")
    step = max(1, len(labelled) // _MOST)
    for place, match in list(labelled.items())[::step]:
        new = [*lines]
        new[place] = f"{match['indent']}{_RENAMED}{match['gap']}:{match['value']}"
        yield Variant(f"renamed {match['label']!r} in line {place + 1}", "\n".join(new), match["value"].strip())
        after = labelled.get(place + 1)
        numbered = match["label"][-1:].isdigit()
        # the order of what has one name may mean something, and the first label of a block may begin an object
        first = place - 1 not in labelled
        if (
            after is not None
            and after["indent"] == match["indent"]
            and after["label"] != match["label"]
            and not numbered
            and not first
            and not _is_continued(lines, place + 1)
        ):
            new = [*lines]
            new[place], new[place + 1] = new[place + 1], new[place]
            yield Variant(f"reordered lines {place + 1} and {place + 2}", "\n".join(new))
    yield from _with_more_in_between(lines, labelled)
    borders = [place for place, line in enumerate(lines) if not line.strip()]
    for place in borders[:: max(1, len(borders) // _MOST)]:
        section = [_SECTION, "   State                    : Failed", "   Size                     : 1 MB", ""]
        # within an object its further labels may be taken for the new section's
        yield Variant(
            f"a section in line {place + 1}", "\n".join([*lines[:place], "", *section, *lines[place:]]), "?"
        )


def _is_continued(lines: list[str], place: int) -> bool:
    """Whether the value in a line goes on in the next one, which is further in and has no label: both move as one."""
    line, after = lines[place], "".join(lines[place + 1 : place + 2])
    deeper = len(after) - len(after.lstrip()) > len(line) - len(line.lstrip())
    return bool(after.strip()) and deeper and ":" not in after.partition(",")[0]


def _with_more_in_between(lines: list[str], labelled: dict[int, re.Match[str]]) -> Iterator[Variant]:
    """A list within an object, and a paragraph for people beside one."""
    within = [
        place
        for place, match in labelled.items()
        if match["indent"] and labelled.get(place - 1) and labelled[place - 1]["indent"] == match["indent"]
    ]
    for place in within[:: max(1, len(within) // _MOST)]:
        indent = labelled[place]["indent"]
        more = [f"{indent}{_LIST}", f"{indent}   Entry   1: Basic, 1024 MiB"]
        yield Variant(f"a list in line {place + 1}", "\n".join([*lines[:place], *more, *lines[place:]]))
    borders = [place for place, line in enumerate(lines) if not line.strip()]
    for place in borders[:: max(1, len(borders) // _MOST)]:
        notice = ["", "Warning: something that people should know, which goes on", "in a second line.", ""]
        yield Variant(f"a notice in line {place + 1}", "\n".join([*lines[:place], *notice, *lines[place:]]))


def _other_unit(match: re.Match[str]) -> str:
    """The same size in the next unit."""
    number, unit = float(match["number"]), match["unit"]
    return match[0] if number < 1024 else f"{number / 1024:.3f} {'G' if unit == 'M' else 'T'}B"


def _of_json(front: str, document: Any) -> Iterator[Variant]:
    def written(body: Any) -> str:
        return f"{front}{json.dumps(body, indent=1)}\n"

    def spelt(body: Any, spell: Callable[[str], str], depth: int = 0) -> Any:
        if isinstance(body, list):
            return [spelt(inner, spell, depth) for inner in body]
        if isinstance(body, dict):
            # the outermost names say what tool it is
            return {(spell(key) if depth else key): spelt(inner, spell, depth + 1) for key, inner in body.items()}
        return body

    def reordered(body: Any) -> Any:
        if isinstance(body, list):
            return [reordered(inner) for inner in body]
        return {key: reordered(body[key]) for key in reversed(list(body))} if isinstance(body, dict) else body

    def with_section(body: Any) -> Any:
        if isinstance(body, list):
            return [with_section(inner) for inner in body]
        if isinstance(body, dict):
            return {**{key: with_section(inner) for key, inner in body.items()}, _SECTION: {"State": "-", "Size": 1}}
        return body

    yield Variant("names in capitals", written(spelt(document, str.upper)))
    yield Variant("names in small letters", written(spelt(document, str.lower)))
    yield Variant("another order", written(reordered(document)))
    yield Variant("new sections", written(with_section(document)))
    yield Variant("numbers as texts", written(_as_texts(document)))
    yield Variant("in one line", f"{front}{json.dumps(document)}\n")
    yield Variant("a message behind it", f"{written(document)}NOTICE: something\n")
    names = sorted(set(_names(document)))
    for name in names[:: max(1, len(names) // _MOST)]:
        yield Variant(
            f"renamed {name!r}",
            written(spelt(document, lambda key, name=name: _RENAMED if key == name else key)),
            "?",
        )


def _as_texts(body: Any) -> Any:
    """The same document with its whole numbers written as texts."""
    if isinstance(body, list):
        return [_as_texts(inner) for inner in body]
    if isinstance(body, dict):
        return {key: _as_texts(inner) for key, inner in body.items()}
    return str(body) if type(body) is int else body


def _names(body: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(body, list):
        for inner in body:
            yield from _names(inner, depth)
    elif isinstance(body, dict):
        for key, inner in body.items():
            if depth:
                yield key
            yield from _names(inner, depth + 1)


def wrongly_read(right: Any, read: Any, variant: Variant) -> list[str]:
    """Where what was read contradicts what is right; empty when it is right, or only lacks what the variant hid."""
    return list(_differences(_plain(right), _plain(read), variant, ""))


def _plain(found: Any) -> Any:
    if is_dataclass(found) and not isinstance(found, type):
        return _plain(asdict(found))
    if isinstance(found, (list, tuple)):
        listed = [_plain(each) for each in found]
        named = all(isinstance(each, dict) and {"position", "id", "index", "address"} & set(each) for each in listed)
        return sorted(listed, key=_name_of) if named else listed
    return {str(key): _plain(value) for key, value in found.items()} if isinstance(found, dict) else found


def _name_of(facts: dict[str, Any]) -> str:
    return str(facts.get("position") or facts.get("id") or facts.get("index") or facts.get("address"))


def _missing(read: Any, variant: Variant, place: str) -> bool:
    """Whether a value only lacks what the variant hid, or is what was hidden, as printed."""
    if not variant.lost or (read in ([], {}) and place.endswith((".drives", ".volumes", ".adapters"))):
        return False
    told = str(read)
    unresolved = ".members[" in place and told in variant.text
    return read in (None, "", 0, [], {}) or unresolved or (variant.lost != "?" and variant.lost in told)


def _fewer(read: Any, right: Any, variant: Variant) -> bool:
    """Whether texts of a list only lack what the variant hid."""
    texts = [isinstance(found, list) and all(isinstance(each, str) for each in found) for found in (read, right)]
    return bool(variant.lost) and all(texts) and set(read) < set(right)


def _readable(right: Any, read: Any) -> tuple[Any, Any]:
    """Objects of a list without those that are told to be unreadable; and those that they must be."""
    if not (isinstance(read, list) and any(isinstance(each, dict) and each.get("unread") for each in read)):
        return right, read
    known = [each for each in read if not each.get("unread")]
    names = [_name_of(each) for each in known]
    return [each for each in right if _name_of(each) in names], known


def _without_more(right: list[Any], read: list[Any]) -> list[Any]:
    """Events without the lines behind their right text, which are for people to read; another event's are left."""
    if not all(isinstance(event, dict) and event.get("sequence") and event.get("text") for event in [*right, *read]):
        return read
    shown = []
    for one, other in zip(right, read, strict=True):
        more = other["text"].removeprefix(one["text"])
        others = [each["text"] for each in right if each is not one]
        own = more != other["text"] and not any(text in more for text in others)
        shown.append({**other, "text": one["text"]} if own else other)
    return shown


def _differences(right: Any, read: Any, variant: Variant, place: str) -> Iterator[str]:
    if isinstance(read, dict) and read.get("unread"):
        return
    right, read = _readable(right, read)
    if isinstance(right, dict) and isinstance(read, dict):
        if read.get("size_range") and right.get("size") and _overlap(_sizes(right), read["size_range"]):
            right, read = (
                {k: v for k, v in each.items() if k not in ("size", "size_range")} for each in (right, read)
            )
        for key in right:
            if key not in _UNREAD:
                yield from _differences(right[key], read.get(key), variant, f"{place}.{key}")
    elif isinstance(right, list) and isinstance(read, list) and len(right) == len(read):
        for number, (one, other) in enumerate(zip(right, _without_more(right, read), strict=True)):
            yield from _differences(one, other, variant, f"{place}[{number}]")
    elif right != read and not _missing(read, variant, place) and not _fewer(read, right, variant):
        yield f"{variant.name}: {place} is {str(read)[:60]!r}, right is {str(right)[:60]!r}"


def _sizes(facts: dict[str, Any]) -> Any:
    return facts.get("size_range") or (facts["size"], facts["size"])


def _overlap(one: Any, other: Any) -> bool:
    return bool(one[0] <= other[1] and other[0] <= one[1])
