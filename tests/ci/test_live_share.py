# SPDX-License-Identifier: Apache-2.0
"""Which long live tests a run takes: by what changed, in turn, within a budget; and what is kept of their results."""

import subprocess
from pathlib import Path

import pytest

from tests.live.__main__ import candidates, outcomes_of, read_map, read_passed
from tests.live.choice import (
    ALWAYS_S,
    DIRECT,
    IMPORTED,
    IN_TURN,
    SETUP_S,
    About,
    Chosen,
    Passed,
    choose,
    file_of,
    nearness,
    record,
)

REPOSITORY = Path(__file__).resolve().parents[2]
RAID = About(("storqual_core.provision.raid", "storqual_core.tools.mdadm"), ("roles/provision",), 300.0)
FILES = {name: About((), (), 300.0) for name in ("a.py", "b.py", "c.py")}
TESTS = [f"{name}::test_{number}" for name in FILES for number in range(3)]


def imports(module: str) -> list[str]:
    return {"storqual_core.tools.mdadm": ["storqual_core.kit.command"]}.get(module, [])


@pytest.mark.parametrize(
    ("changed", "near"),
    [
        ("tests/virtual/test_raid.py", DIRECT),
        ("roles/provision/tasks/main.yml", DIRECT),
        ("library/module_utils/storqual_core/provision/raid/volume_plan.py", DIRECT),
        ("library/module_utils/storqual_core/tools/mdadm.py", DIRECT),
        ("library/module_utils/storqual_core/kit/command.py", IMPORTED),
        ("library/module_utils/storqual_core/tools/mdadm_other.py", IN_TURN),
        ("roles/provision_other/tasks/main.yml", IN_TURN),
        ("README.md", IN_TURN),
    ],
)
def test_a_change_is_near_to_what_it_touches_or_what_imports_it(changed: str, near: int) -> None:
    assert nearness("tests/virtual/test_raid.py", RAID, imports, ["x.md", changed]) == near


def chosen(
    passed: dict[str, Passed],
    near: dict[str, int] | None = None,
    ages: dict[str, int] | None = None,
    commit: str = "c1",
    minutes: float = 20.0,
) -> list[Chosen]:
    return choose(
        TESTS,
        FILES,
        passed,
        lambda file, _commit: (near or {}).get(file, IN_TURN),
        ages or {"old": 9, "new": 1},
        commit=commit,
        budget_s=60 * minutes,
    )


ALL = dict.fromkeys(TESTS, Passed("new", 240.0))


def test_beside_those_in_turn_what_a_change_touches_comes_first_then_what_imports_it() -> None:
    found = chosen(ALL, {"b.py": DIRECT, "c.py": IMPORTED}, minutes=35)
    nearest = [one for one in found if one.reason != "its turn"]
    assert {one.test for one in found} >= {test for test in TESTS if test.startswith("b.py")}
    assert {one.reason for one in nearest if one.test.startswith("b.py")} == {"what it is about was changed"}
    assert {one.reason for one in nearest if one.test.startswith("c.py")} <= {"something below was changed"}
    assert not [one for one in nearest if one.test.startswith("a.py")]


def test_what_changes_often_does_not_take_the_minutes_of_the_others() -> None:
    passed = {**ALL, TESTS[4]: Passed("old", 240.0)}
    assert TESTS[4] in {one.test for one in chosen(passed, {"a.py": DIRECT}, minutes=15)}


def test_the_longest_not_passed_comes_first_where_nothing_changed() -> None:
    found = chosen({**ALL, TESTS[4]: Passed("old", 240.0)})
    assert TESTS[4] in {one.test for one in found}
    assert {one.reason for one in found} == {"its turn"}
    unknown = {test: one for test, one in ALL.items() if test != TESTS[7]}
    assert TESTS[7] in {one.test for one in chosen(unknown)}


def test_eight_minutes_are_chosen_where_nothing_changed_and_not_more() -> None:
    found = chosen(ALL, minutes=60)
    spent = sum(one.seconds for one in found)
    assert ALWAYS_S - 240 - SETUP_S < spent <= ALWAYS_S


def test_the_budget_holds_and_one_test_is_chosen_in_any_case() -> None:
    for minutes in (1, 15, 20, 40):
        found = chosen(ALL, dict.fromkeys(FILES, DIRECT), minutes=minutes)
        assert found
        assert len(found) == 1 or sum(one.seconds for one in found) <= 60 * minutes


def test_the_tests_of_a_file_keep_their_order_whatever_each_is_chosen_for() -> None:
    last_of_b_first = {**ALL, TESTS[5]: Passed("old", 240.0)}
    found = [one.test for one in chosen(last_of_b_first, {"b.py": DIRECT}, minutes=40)]
    assert [test for test in found if test.startswith("b.py")] == TESTS[3:6]
    for commit in map(str, range(20)):
        taken = [one.test for one in chosen({}, commit=commit, minutes=60)]
        for file in FILES:
            of_file = [test for test in taken if test.startswith(file)]
            assert of_file == sorted(of_file, key=TESTS.index)


def test_where_nothing_is_on_record_each_commit_takes_others_and_all_have_their_turn() -> None:
    takes = [frozenset(one.test for one in chosen({}, commit=f"commit {number}")) for number in range(60)]
    assert len(set(takes)) > 20
    assert frozenset().union(*takes) == set(TESTS)


def test_a_test_that_is_not_known_to_have_passed_is_near_by_the_last_change() -> None:
    asked = []
    found = choose(
        TESTS,
        FILES,
        {},
        lambda file, commit: asked.append(commit) or (DIRECT if file == "c.py" else IN_TURN),
        {},
        commit="c1",
        budget_s=2000,
    )
    assert set(asked) == {""}
    assert {one.test for one in found} >= {test for test in TESTS if test.startswith("c.py")}


def test_a_test_that_never_passed_waits_for_the_long_run() -> None:
    passed = {TESTS[1]: Passed("old", 9.0)}
    assert candidates(TESTS, passed, new=False) == [TESTS[1]]
    assert candidates(TESTS, passed, new=True) == TESTS


def test_only_passes_are_recorded_and_what_is_no_test_goes() -> None:
    before = {
        "a.py::test_0": Passed("old", 9.0),
        "a.py::gone": Passed("old", 9.0),
        "b.py::test_1": Passed("old", 9.0),
    }
    outcomes = {"a.py::test_0": (True, 12.34), "b.py::test_1": (False, 5.0), "z.py::other": (True, 1.0)}
    after = record(before, outcomes, TESTS, "new")
    assert after == {"a.py::test_0": Passed("new", 12.3), "b.py::test_1": Passed("old", 9.0)}


def test_outcomes_are_read_from_what_pytest_writes(tmp_path: Path) -> None:
    junit = tmp_path / "long.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase file="tests/virtual/test_a.py" name="test_x[raid 5]" time="61.5"/>'
        '<testcase file="tests/virtual/test_a.py" name="test_y" time="2"><failure/></testcase>'
        '<testcase file="tests/virtual/test_a.py" name="test_e" time="2"><error/></testcase>'
        '<testcase file="tests/virtual/test_a.py" name="test_z" time="0"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    assert outcomes_of(junit) == {
        "tests/virtual/test_a.py::test_x[raid 5]": (True, 61.5),
        "tests/virtual/test_a.py::test_y": (False, 2.0),
        "tests/virtual/test_a.py::test_e": (False, 2.0),
    }


def test_the_map_has_every_file_of_long_live_tests_and_names_what_is_there() -> None:
    marked = {
        str(path.relative_to(REPOSITORY))
        for folder in ("virtual", "docs")
        for path in (REPOSITORY / "tests" / folder).glob("test_*.py")
        if "mark.long" in path.read_text(encoding="utf-8")
    }
    mapped = read_map()
    assert set(mapped) == marked
    for about in mapped.values():
        for module in about.modules:
            stem = REPOSITORY / file_of(module)
            assert stem.is_dir() or stem.with_suffix(".py").is_file(), module
        for path in about.paths:
            assert (REPOSITORY / path).exists(), path


def test_the_record_is_a_file_of_the_repository_that_can_be_read() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "tests/live"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    ).stdout
    assert "tests/live/passed.json" in tracked.splitlines()
    assert {test.partition("::")[0] for test in read_passed()} <= set(read_map())


def test_make_test_runs_the_share_and_keeps_its_results() -> None:
    script = (REPOSITORY / "ci" / "test").read_text(encoding="utf-8")
    assert "tests.live choose --minutes" in script
    assert "tests.live record" in script
    assert (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("make test")


@pytest.mark.parametrize("name", ["CI_BEGAN", "began"])
@pytest.mark.parametrize(("passed_minutes", "share"), [(0, 30), (22, 30), (30, 22), (44, 8), (50, 8)])
def test_a_run_of_make_test_takes_eight_minutes_of_long_tests_and_an_hour_at_most(
    passed_minutes: int, share: int, name: str
) -> None:
    script = (REPOSITORY / "ci" / "test").read_text(encoding="utf-8")
    lines = [line for line in script.splitlines() if line.startswith("minutes=")]
    began = f"{name}=$((EPOCHSECONDS - {60 * passed_minutes}))"
    told = subprocess.run(
        ["bash", "-c", "\n".join(["unset CI_BEGAN", began, *lines, 'echo "$minutes"'])],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) == share
    assert ALWAYS_S / 60 <= share <= 60 - passed_minutes
