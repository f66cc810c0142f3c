# SPDX-License-Identifier: Apache-2.0
"""The examples of the format pages are read by the loaders that they explain."""

import re
from pathlib import Path

import pytest

from storqual.inputs import load_drop, load_gate, load_suite, load_trust, load_waivers
from storqual.inputs.product import load_product

REPOSITORY = Path(__file__).resolve().parents[4]
LOADERS = {
    "suite": load_suite,
    "drop": load_drop,
    "gate": load_gate,
    "waivers": load_waivers,
    "keys": load_trust,
    "product": load_product,
}
BLOCK = re.compile(r"^```yaml (\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLES = [
    (kind, text)
    for page in ("suites/README.md", "inventories/README.md")
    for kind, text in BLOCK.findall((REPOSITORY / page).read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("kind", "text"), EXAMPLES, ids=[kind for kind, _ in EXAMPLES])
def test_an_example_is_good(kind: str, text: str, tmp_path: Path) -> None:
    """As a reader would copy it."""
    path = tmp_path / f"example.{kind}.yml"
    path.write_text(text, encoding="utf-8")
    assert LOADERS[kind](path)


def test_there_is_an_example_of_each() -> None:
    assert {kind for kind, _ in EXAMPLES} == set(LOADERS)
