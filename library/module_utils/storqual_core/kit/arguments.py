# SPDX-License-Identifier: Apache-2.0
"""Arguments that several Ansible modules take, declared once; `plugins/doc_fragments` explains them."""

from __future__ import annotations

from typing import Any, Mapping

Spec = Mapping[str, Mapping[str, Any]]

WORDS: Mapping[str, Any] = {"type": "list", "elements": "str", "default": []}
"""A list of words that may be empty."""

STATE_DIR: Spec = {"state_dir": {"type": "path", "default": "/var/lib/storqual"}}
"""For every module that works on a bench."""

STEP: Spec = {**STATE_DIR, "run": {"type": "str", "default": "provision"}}
"""For a step that is taken back by a restore."""

ADAPTERS: Spec = {"adapters": {"type": "dict", "required": True}}

FIRMWARE: Spec = {
    "tool": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
    "sha256": {"type": "str", "required": True},
    "version": {"type": "str", "required": True},
    "component": {"type": "str", "default": "firmware"},
    "signature": {"type": "path", "default": ""},
    "key": {"type": "path", "default": ""},
    "from": WORDS,
    "rollback": {"type": "list", "elements": "dict", "default": []},
    "activation": {"type": "str", "choices": ["none", "reset", "reboot", "power cycle"], "default": "reset"},
    "consent": WORDS,
    "state": {"type": "str", "choices": ["present", "proven"], "default": "present"},
    "soak_s": {"type": "float", "default": 30},
    "log_rules": {"type": "list", "elements": "dict"},
}
"""For a module that flashes."""
