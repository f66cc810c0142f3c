# SPDX-License-Identifier: Apache-2.0
"""The templates' environment: everything is escaped, nothing may be missing, control characters become visible."""

import logging
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from storqual.base.files import templates_folder
from storqual.base.text import page_with_minus, typeset_text
from storqual.run.files import read_text
from storqual_core.kit.errors import BadInputError, StorqualError


def _printed(value: object) -> object:
    """What a template prints: markup made by the chart builder as it is, all else as visible text to be escaped."""
    return value if isinstance(value, Markup) else typeset_text(str(value))


def _breakable(text: str, after: str = "[,/.") -> Markup:
    """A point's name, a dotted name or a version, with leave to break after each of these characters."""
    parts = re.split(f"(?<=[{re.escape(after)}])", typeset_text(text))
    return Markup("<wbr>").join(parts)


@cache
def _environment() -> jinja2.Environment:
    # `select_autoescape()` would look at the end of the name and leave `report.html.j2` unescaped
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_folder()),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["breakable"] = _breakable
    return environment


@cache
def style_sheet(name: str = "report.css") -> Markup:
    """One of the project's own style sheets; it holds no text from anywhere else."""
    text = (templates_folder() / name).read_text(encoding="utf-8")
    if "</" in text:
        raise ValueError(f"{name} would end its own element")
    return Markup(text)  # noqa: S704 - a file of this project, checked above


def render_template(template: str, style: str, **values: object) -> str:
    """A page of the project, with its own style sheet as `style`; escaped, and with true minus signs."""
    return page_with_minus(_environment().get_template(template).render(style=style_sheet(style), **values))


_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


_FOR_PAPER = re.compile(r'<section class="sign".*?</section>', re.DOTALL)
_END = "</main>"


def with_signatures(page: str, lines: Sequence[str]) -> str:
    """A report with who has signed it, in place of the lines for signatures on paper; unchanged without any."""
    if not lines:
        return page
    signatures = _environment().get_template("report/signatures.html.j2").render(lines=lines)
    if _FOR_PAPER.search(page):
        return _FOR_PAPER.sub(lambda _: signatures, page, count=1)
    head, end, tail = page.rpartition(_END)
    return f"{head}{signatures}{end}{tail}"


def write_pdf(report: Path, digest: str, target: Path, *, signatures: Sequence[str] = ()) -> Path:
    """Write `report` (an HTML page of this project) as PDF/UA to `target`; `digest` is the evidence's SHA-256.

    `signatures` says who has signed, a line each; a report is made before it is signed. Nothing is fetched. Raises
    BadInputError when WeasyPrint is not installed, StorqualError when it cannot draw.
    """
    if not _DIGEST.match(digest):
        raise StorqualError(f"{digest!r} is no SHA-256 of evidence")
    try:
        from weasyprint import CSS, HTML  # noqa: PLC0415 - an extra that most machines do without
        from weasyprint.urls import URLFetcher  # noqa: PLC0415
    except (ImportError, OSError) as problem:
        how = "install storqual with its extra: storqual[pdf] (in a checkout: make setup-pages)"
        raise BadInputError([f"--pdf needs WeasyPrint, which is not installed ({problem}); {how}"]) from None
    # links to points that are folded on paper lead nowhere, which it would tell of each on standard error
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)
    # no protocol is allowed: the page is whole, and a report must not depend on what some server says
    fetcher: Any = URLFetcher(allowed_protocols=())
    foot = CSS(string=_FOOT.format(first=digest[:32], second=digest[32:]), url_fetcher=fetcher)
    try:
        text = with_signatures(read_text(report.parent, report.name), signatures)
        page = HTML(string=text, url_fetcher=fetcher, media_type="print")
        document = page.render(stylesheets=[foot], pdf_variant="pdf/ua-1")
        # for a program that looks for it: what stands on each sheet is drawn, not written
        document.metadata.description = f"evidence SHA-256 {digest}"
        document.write_pdf(str(target), pdf_variant="pdf/ua-1")
    except (OSError, ValueError) as problem:
        raise StorqualError(f"{target}: the report could not be drawn as PDF ({problem})") from None
    return target


# two lines: the digest is longer than a margin box is wide
_FOOT = """
@page {{ @bottom-left {{ content: "evidence SHA-256 {first}\\A {second}"; white-space: pre; font: 6pt monospace; }} }}
"""
