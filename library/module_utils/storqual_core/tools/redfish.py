# SPDX-License-Identifier: Apache-2.0
"""Redfish: what a management controller answers: a version of its firmware inventory, the words of an error.

Asking is done on the control node by `community.general`; nothing here runs a command.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Sequence

from ..kit.errors import ToolError
from ..kit.labelled_text import as_list, as_mapping, as_text, plain_label, respelt, the_object

# an informational message may be the cause: that a job is under way
_WELL = re.compile(r"ok |informational .*success|.*\.success\Z")
_SPELT = {plain_label(name): name for name in ("Message", "MessageId", "MessageArgs", "Severity", "Resolution")}
# an image that is kept to go back to, or to go on to, beside the one that runs (Dell: `Installed-…`)
_KEPT = re.compile(r"(?:previous|available|current)-|.* (?:disabled|standbyspare|absent)\Z")


def parse_error(text: str) -> str:
    """The messages of an error body, each with its id and what to do. Raises ToolError for a text that has none.

    Some controllers tell them without an error around them, beside messages that all is well.
    """
    body = the_object(text, "redfish")
    error = as_mapping(body.get("error", body))
    # of the request, or of a property (`PowerState@Message.ExtendedInfo`); one message may stand without a list
    info = [as_list(value) or [value] for name, value in error.items() if name.endswith("@Message.ExtendedInfo")]
    listed = [each for values in info for each in values] or as_list(body.get("Messages"))
    infos = [as_mapping(respelt(each, _SPELT)) for each in listed]
    message = as_text(error.get("message"))
    sentences = [sentence for sentence in map(_sentence, infos) if sentence]
    # beside ids alone it is the message, unless it says that the others are
    if message and (not sentences or not ("ExtendedInfo" in message or any(each.get("Message") for each in infos))):
        sentences.insert(0, message)
    if not sentences:
        raise ToolError("redfish printed an error without a message")
    return "; ".join(sentences)


def _sentence(info: Mapping[str, Any]) -> str:
    message, name, remedy = (as_text(info.get(key)) for key in ("Message", "MessageId", "Resolution"))
    if _WELL.match(f"{as_text(info.get('Severity') or info.get('MessageSeverity'))} {message or name}".lower()):
        return ""
    arguments = ", ".join(as_text(each) for each in as_list(info.get("MessageArgs")))
    # what a message that is told by its id alone is about
    name = f"{name}: {arguments}" if arguments and not message else name
    # some controllers tell the id alone, and "None" where there is nothing to do
    text = f"{message} ({name})" if message and name else message or name
    return " ".join(part for part in (text, remedy) if part and part.strip(" .").lower() != "none") if text else ""


def find_version(entries: Sequence[Any], target: str) -> str:
    """The version of the one entry of a firmware inventory whose id or name is `target`. Raises ToolError.

    Images that a controller keeps beside the one that runs, by the same name, do not count.
    """
    listed = [as_mapping(entry) for entry in entries]
    named = [entry for entry in listed if target in (as_text(entry.get("Id")), as_text(entry.get("Name")))]
    matches = [entry for entry in named if not _kept(entry)] or named
    versions = {as_text(entry.get("Version")) for entry in matches if as_text(entry.get("Version"))}
    if len(versions) != 1:
        known = ", ".join(sorted({as_text(entry.get("Name")) for entry in listed} - {""})) or "nothing"
        raise ToolError(f"{len(versions)} versions of {target!r} are in the firmware inventory, which has {known}")
    return versions.pop()


def _kept(entry: Mapping[str, Any]) -> bool:
    state = as_text(as_mapping(entry.get("Status")).get("State"))
    return _KEPT.match(f"{as_text(entry.get('Id'))} {state}".lower()) is not None
