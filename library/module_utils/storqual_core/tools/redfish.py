# SPDX-License-Identifier: Apache-2.0
"""Redfish: what a management controller answers: a version of its firmware inventory, the words of an error.

Asking is done on the control node by `community.general`; nothing here runs a command.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..kit.errors import ToolError
from ..kit.json_text import as_list, as_mapping, as_text, the_object

_WELL = ("ok", "informational")


def parse_error(text: str) -> str:
    """The messages of an error body, each with its id and what to do. Raises ToolError for a text that has none.

    Some controllers tell them without an error around them, beside messages that all is well.
    """
    body = the_object(text, "redfish")
    error = as_mapping(body.get("error", body))
    told = [_sentence(as_mapping(info)) for info in as_list(error.get("@Message.ExtendedInfo"))]
    message = as_text(error.get("message"))
    found = [sentence for sentence in told if sentence] or ([message] if message else [])
    if not found:
        raise ToolError("redfish printed an error without a message")
    return "; ".join(found)


def _sentence(info: Mapping[str, Any]) -> str:
    if as_text(info.get("Severity") or info.get("MessageSeverity")).lower() in _WELL:
        return ""
    message, name, remedy = (as_text(info.get(key)) for key in ("Message", "MessageId", "Resolution"))
    # some controllers tell the id alone, and "None" where there is nothing to do
    said = f"{message} ({name})" if message and name else message or name
    return " ".join(part for part in (said, remedy) if part and part.strip(" .").lower() != "none") if said else ""


def find_version(entries: Sequence[Any], target: str) -> str:
    """The version of the one entry of a firmware inventory whose id or name is `target`. Raises ToolError."""
    listed = [as_mapping(entry) for entry in entries]
    found = [entry for entry in listed if target in (as_text(entry.get("Id")), as_text(entry.get("Name")))]
    versions = {as_text(entry.get("Version")) for entry in found if as_text(entry.get("Version"))}
    if len(versions) != 1:
        known = ", ".join(sorted({as_text(entry.get("Name")) for entry in listed} - {""})) or "nothing"
        raise ToolError(f"{len(versions)} versions of {target!r} are in the firmware inventory, which has {known}")
    return versions.pop()
