# SPDX-License-Identifier: Apache-2.0
"""Texts that try to be more than text, and a run directory in which every free field says them."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tests.support.sealed_run import chained, lines_of

_HTML = (
    *("<script>alert(1)</script>", "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>"),
    *("<svg onload=alert(1)>", "<svg><script>alert(1)</script></svg>"),
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<style>*{background:url(//x.example)}</style>",
    *("</style><script>alert(1)</script>", "</title><script>alert(1)</script>"),
    *("<!--><script>alert(1)</script>-->", "<![CDATA[<script>alert(1)</script>]]>"),
    "<base href=//x.example/>",
    "<meta http-equiv=refresh content=0;url=//x.example>",
    *("<link rel=stylesheet href=//x.example>", "<object data=//x.example></object>"),
    *("<a href=javascript:alert(1)>x</a>", "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;"),
    "<plaintext>",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
)
_ATTRIBUTE = (
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    '" style="background:url(//x.example)',
    '" autofocus onfocus=alert(1) x="',
    "` onload=alert(1) `",
    "\" xmlns:xlink='x' xlink:href=\"javascript:alert(1)",
)
_URL = (
    *("javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,<script>alert(1)</script>"),
    "//x.example/%0d%0a",
)
_TEMPLATE = (
    "{{ 7*7 }}",
    "{% import os %}",
    "{{ lookup('pipe', 'id') }}",
    "{{ self.__init__.__globals__ }}",
    "${7*7}",
    "#{7*7}",
    "{# comment #}",
    "<%= 7*7 %>",
    "!!python/object/apply:os.system ['id']",
    "*alias &anchor",
)
_CSV = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    '=HYPERLINK("//x.example")',
    "\t=1+1",
    "\r=1+1",
)
_TERMINAL = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;file:///etc/passwd\x1b\\x\x1b]8;;\x1b\\",
    "\x9b31m",
    "\x1b[2J\x1b[H",
    "\rPASS",
    "a\x08b",
    "[bold red]rich[/]",
    "[/]",
)
_CONTROL = (
    "\x00",
    "\x01\x02\x03",
    "\x0b\x0c\x1f\x7f",
    "\x80\x85\x9f",
    "\u202eSSAP\u202c",
    "\u200b\u2060\ufeff",
    "\u2028\u2029",
    "\ufffe",
)
_LONG = ("A" * 300, "ñ" * 40, "💥" * 12, "]]>", "%s%n%x", "../../../../etc/passwd", "'; DROP TABLE runs;--")
_FAMILIES = (_HTML, _ATTRIBUTE, _URL, _TEMPLATE, _CSV, _TERMINAL, _CONTROL, _LONG)
_PREFIXES = ("", "ST336607LW", " ", "\n", "0x5000c500", "]")

PAYLOADS = tuple(prefix + payload for family in _FAMILIES for prefix, payload in product(_PREFIXES, family))
"""Some five hundred: each family with each beginning that a device string may have."""


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", text))


# what must stay for the files to belong together; all else is said by devices, drops, suites and people
_STRUCTURE = _words(
    "schema kind status outcome against better metric unit change boot arm time created finished as_of start run "
    "previous sha256 path file design when configuration arms"
)
_DATA_KEYS = _words("vbench sym mpt sym53c8xx mptsas cpu model accelerator package storqual ansible python")
_MAPPINGS = _words("benches adapters drivers environment manifest versions facts before after cpu kernel fio")


def chunks(count: int) -> list[tuple[str, ...]]:
    """The payloads in `count` parts, so that each part fits into every field of a small run."""
    return [PAYLOADS[at::count] for at in range(count)]


def _mark(text: str, payloads: Sequence[str]) -> str:
    """A text with every payload behind it: the same text in two files stays the same."""
    return text + "".join(payloads)


def _infected(value: Any, payloads: Sequence[str], name: str = "") -> Any:
    if isinstance(value, str):
        # a digest holds the files together, under whatever name it stands
        kept = name in _STRUCTURE or re.fullmatch("[0-9a-f]{64}", value)
        return value if kept else _mark(value, payloads)
    if isinstance(value, list):
        return [_infected(one, payloads, name) for one in value]
    if isinstance(value, dict):
        return {
            _mark(key, payloads) if name in _MAPPINGS and key in _DATA_KEYS else key: _infected(
                inner, payloads, key if name != "benches" else ""
            )
            for key, inner in value.items()
        }
    return value


def infect(run: Path, payloads: Sequence[str]) -> None:
    """Rewrite run.json, verdict.json, samples and events of `run` so that every free text says the payloads."""
    for name in ("run.json", "verdict.json"):
        document = json.loads((run / name).read_text())
        _write(run / name, _infected(document, payloads))
    samples = [_infected(json.loads(line), payloads) for line in (run / "samples.jsonl").read_text().splitlines()]
    (run / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    chained(run / "events.jsonl", [_infected(event, payloads) for event in lines_of(run / "events.jsonl")])


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value))
