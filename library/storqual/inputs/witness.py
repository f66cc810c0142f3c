# SPDX-License-Identifier: Apache-2.0
"""How an inventory names a witness: the second place that is told what is collected."""

from __future__ import annotations

from urllib.parse import urlsplit

WITNESS_FORMS = "syslog://host[:port], ssh://[user@]host[:port]/path/of/file, rfc3161+https://host/path"


def witness_problem(place: str) -> str:
    """Why `place` names no witness; empty when it does."""
    try:
        parts = urlsplit(place)
        _ = parts.port
    except ValueError as problem:
        return str(problem)
    known = parts.scheme in ("syslog", "ssh", "rfc3161+http", "rfc3161+https")
    host = parts.hostname or ""
    # what ssh would take for an option is no name
    if not known or not host or host.startswith("-") or (parts.username or "").startswith("-"):
        return f"expected {WITNESS_FORMS}"
    if parts.scheme == "ssh" and len(parts.path) < 2:
        return "expected the path of a file behind the host"
    return ""
