# SPDX-License-Identifier: Apache-2.0
"""The small synthetic outputs of tools, by tool and file name."""

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "unit" / "storqual_core" / "tools" / "fixtures"


def fixture_text(tool: str, name: str) -> str:
    return (_FOLDER / tool / name).read_text(encoding="utf-8")


def fixture_texts(tool: str) -> list[str]:
    """Every output of a tool, in the order of the names."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((_FOLDER / tool).iterdir())]
    assert texts, f"no output of {tool} in {_FOLDER}"
    return texts
