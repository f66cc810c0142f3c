# SPDX-License-Identifier: Apache-2.0
"""The report on paper as one file: report.html through WeasyPrint, with the digest of the evidence on each page."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from storqual_core.errors import BadInputError, StorqualError

__all__ = ["write_pdf"]

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def write_pdf(report: Path, digest: str, target: Path) -> Path:
    """Write `report` (an HTML page of this project) as PDF/UA to `target`; `digest` is the evidence's SHA-256.

    Nothing is fetched. Raises BadInputError when WeasyPrint is not installed, StorqualError when it cannot draw.
    """
    if not _DIGEST.match(digest):
        raise StorqualError(f"{digest!r} is no SHA-256 of evidence")
    try:
        from weasyprint import CSS, HTML  # noqa: PLC0415 - an extra that most machines do without
        from weasyprint.urls import URLFetcher  # noqa: PLC0415
    except (ImportError, OSError) as problem:
        raise BadInputError(
            [f"--pdf needs WeasyPrint, which is not here ({problem}); install storqual with its extra: storqual[pdf]"]
        ) from None
    # links to points that are folded on paper lead nowhere, which it would tell of each on standard error
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)
    # no protocol is allowed: the page is whole, and a report must not depend on what some server says
    fetcher: Any = URLFetcher(allowed_protocols=())
    foot = CSS(string=_FOOT.format(first=digest[:32], second=digest[32:]), url_fetcher=fetcher)
    try:
        page = HTML(string=report.read_text(encoding="utf-8"), url_fetcher=fetcher, media_type="print")
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
