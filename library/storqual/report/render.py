# SPDX-License-Identifier: Apache-2.0
"""The templates' environment: everything is escaped, nothing may be missing, control characters become visible."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from storqual.resources import templates_folder
from storqual.text_safety import visible_text

if TYPE_CHECKING:
    from storqual.report.view import Page

__all__ = ["render", "render_template", "style_sheet"]


def _printed(value: object) -> object:
    """What a template prints: markup made by the chart builder as it is, all else as visible text to be escaped."""
    return value if isinstance(value, Markup) else visible_text(str(value))


def _breakable(text: str, after: str = "[,/.") -> Markup:
    """A point's name, a dotted name or a version, with leave to break after each of these characters."""
    parts = re.split(f"(?<=[{re.escape(after)}])", visible_text(text))
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


def render(page: Page) -> str:
    """The page as HTML."""
    return _environment().get_template("report.html.j2").render(page=page, style=page.style)


def render_template(template: str, style: str, **values: object) -> str:
    """Another page of the project, with its own style sheet as `style`; escaped like the report."""
    return _environment().get_template(template).render(style=style_sheet(style), **values)
