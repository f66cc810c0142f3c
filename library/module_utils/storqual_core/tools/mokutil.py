# SPDX-License-Identifier: Apache-2.0
"""mokutil: whether Secure Boot checks what is loaded, and the keys that this machine knows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, line_error, numbered_lines


@dataclass(frozen=True)
class SecureBoot:
    """`enabled` is None on a machine without EFI variables; `remark` says what weakens the check."""

    enabled: bool | None
    remark: str = ""


_STATES = {
    "SecureBoot enabled": SecureBoot(enabled=True),
    "SecureBoot disabled": SecureBoot(enabled=False),
    "EFI variables are not supported on this system": SecureBoot(enabled=None),
    "This system doesn't support Secure Boot": SecureBoot(enabled=None),
}
_REMARKS = ("SecureBoot validation is disabled in shim", "Platform is in Setup Mode", "but shim is in insecure mode")


def parse_state(text: str) -> SecureBoot:
    """`mokutil --sb-state`. Raises ToolError for another text, and for two states at once."""
    state: SecureBoot | None = None
    remarks: list[str] = []
    for number, printed in numbered_lines(text):
        line = printed.strip()
        remark = next((known for known in _REMARKS if line.endswith(known)), "")
        known = _STATES.get(line[: -len(remark)].rstrip(" ,.") if remark else line.rstrip("."))
        if (known is None and line != remark) or (known and state and known != state):
            raise line_error("mokutil --sb-state", number, line, "a state of Secure Boot, or the same one")
        state = known or state
        remarks += [remark] if remark else []
    if state is None:
        raise ToolError(f"mokutil --sb-state told no state of Secure Boot: {first_line(text)}")
    return SecureBoot(state.enabled, "; ".join(dict.fromkeys(remarks)))


@dataclass(frozen=True)
class Key:
    """A certificate by the first ten digits of its SHA-1 digest, and the name it is issued to."""

    digest: str
    name: str


_SHORT = re.compile(r"([0-9a-f]{10}) (\S.*)")
_BLOCK = re.compile(r"\[key ([0-9]{1,6})\]")
_FINGERPRINT = re.compile(r"SHA1 Fingerprint: ((?:[0-9A-Fa-f]{2}:){19}[0-9A-Fa-f]{2})")
_SUBJECT = re.compile(r"Subject:.*?\bCN ?= ?(.+?)(?:, *[A-Za-z]+ ?=.*|/emailAddress=.*)?$")
_EMPTY = re.compile(r"(?:MokListRT|MokNew|MokDel|MokListXRT|db|dbx|PK|KEK)\S* is empty|EFI variable .* is empty")


def parse_keys(text: str) -> tuple[Key, ...]:
    """`mokutil --db` and its like, with `--short` or without. Raises ToolError for another text."""
    keys: list[Key] = []
    blocks: list[dict[str, str]] = []
    empty = False
    for number, printed in numbered_lines(text):
        line = printed.strip()
        short, block = _SHORT.fullmatch(line), _BLOCK.fullmatch(line)
        if block:
            if int(block.group(1)) != len(blocks) + 1:
                raise line_error("mokutil", number, line, f"key {len(blocks) + 1}")
            blocks.append({})
        elif blocks:
            for name, shape in (("digest", _FINGERPRINT), ("name", _SUBJECT)):
                match = shape.match(line)
                if match:
                    blocks[-1].setdefault(name, match.group(1))
        elif short:
            keys.append(Key(*short.groups()))
        elif _EMPTY.fullmatch(line):
            empty = True
        else:
            raise line_error("mokutil", number, line, "a key (ten digits of its digest, its name)")
    for count, values in enumerate(blocks, start=1):
        if "digest" not in values:
            raise ToolError(f"mokutil: key {count} has no SHA1 Fingerprint: the text is cut, or of another command")
        keys.append(Key(values["digest"].replace(":", "").lower()[:10], values.get("name", "").strip()))
    if bool(keys) == empty:
        raise ToolError(f"mokutil told keys and none at once, or nothing: {first_line(text)}")
    return tuple(keys)
