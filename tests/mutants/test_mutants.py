# SPDX-License-Identifier: Apache-2.0
"""The list of mutants fits the code, and a mutant is found by its code alone."""

from pathlib import Path

import pytest

from tests.mutants.mutant import PACKAGES, Mutant, NotApplicableError, Sources, read_areas, read_mutants

pytestmark = pytest.mark.slow

TREE = Path(__file__).resolve().parents[2]
CODE = Path(__file__).with_suffix(".code").read_text(encoding="utf-8")


def mutant(was: str, now: str) -> Mutant:
    """A mutant of `CODE`."""
    return Mutant(name="x/y", says="", area="judge", was=was, now=now, dies=True)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    folder = tmp_path / PACKAGES[0]
    folder.mkdir(parents=True)
    (folder / "held.py").write_text(CODE, encoding="utf-8")
    return Sources(tmp_path)


def test_each_mutant_changes_one_place_of_the_code() -> None:
    """What was renamed or merged is renamed in the list too, and never silently left out."""
    sources, problems = Sources(TREE), []
    for one in read_mutants():
        try:
            sources.change(one)
        except NotApplicableError as problem:
            problems.append(f"{one.name}: {problem}")
    assert not problems, "\n".join(problems)


def test_each_area_names_tests_that_are_there() -> None:
    """A test that moved would notice nothing."""
    areas = read_areas()
    assert {one.area for one in read_mutants()} == set(areas)
    assert [path for paths in areas.values() for path in paths if not (TREE / path).exists()] == []


def test_layout_and_comments_do_not_count(sources: Sources) -> None:
    """Code that was formatted otherwise is still found; what replaces it is indented like it."""
    change = sources.change(mutant("if low>=limit: return True", "if low > limit:\n    return True"))
    assert "    if low > limit:\n        return True\n    return (" in change.text
    assert sources.change(mutant("return (low >= limit)", "return False")).text.endswith("\n    return False\n")


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("low > limit", "low", "nowhere"),
        ("low >= limit", "low > limit", "held.py:3, held.py:6"),
        ("return True", "return (True", "no Python"),
    ],
)
def test_code_that_is_not_in_one_place_is_refused(sources: Sources, was: str, now: str, said: str) -> None:
    """A mutant that changes nothing would survive, one that changes two places proves nothing."""
    with pytest.raises(NotApplicableError, match=said):
        sources.change(mutant(was, now))
