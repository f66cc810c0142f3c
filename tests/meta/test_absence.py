# SPDX-License-Identifier: Apache-2.0
"""Nothing passes by what was not seen: every check, criterion and gate, on runs that lack what it looks at."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from robot.api import SkipExecution, TestSuite

from storqual.base.files import suites_folder
from storqual.checks.campaign_keywords import Percent
from storqual.checks.pytest_run import run_checks
from storqual.inputs.suite import Criterion
from storqual.judge.entry import VerdictEntry
from storqual.judge.outcome import run_outcome
from storqual.judge.verdict import judge_run
from storqual.metrics import METRICS
from storqual.robot_library import StorqualLibrary
from storqual.run import read_run
from storqual_core.kit.errors import StorqualError
from tests.support import make_run as making
from tests.support.make_run import make_run
from tests.support.robot_benches import fingerprint
from tests.support.synthetic_shape import SUITE, drive_id

pytestmark = pytest.mark.slow

Event = dict[str, Any]
Change = Callable[[Event], Event | None]

SETTING = {"name": "drive.queue_depth", "drive": drive_id("sym", 0), "declared": 4, "before": 8, "read_back": 4}
PROVEN = {**SETTING, "proven": True, "proof": "4 in flight at most"}
SOUND: dict[str, Any] = {
    "noise": 0.002,
    "sessions": 8,
    "environment": fingerprint(),
    "settings": {"baseline": [PROVEN], "candidate": [PROVEN]},
}


@contextmanager
def events_changed(change: Change) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        events_of = making.events_of
        patch.setattr(
            making, "events_of", lambda *given: [new for one in events_of(*given) if (new := change(one)) is not None]
        )
        yield


def without(kind: str) -> Change:
    """All events but those of a kind."""
    return lambda event: None if event["kind"] == kind else event


def having(kind: str, /, **fields: Any) -> Change:
    return lambda event: {**event, **fields} if event["kind"] == kind else event


def end(**fields: Any) -> Change:
    return lambda e: {**e, "end": {**e["end"], **fields}} if e["kind"] == "block_finished" else e


def bare_look(event: Event) -> Event:
    """Looks that found every adapter and drive, and could read nothing of them."""
    if event["kind"] != "environment":
        return event
    bare = fingerprint()
    for adapter in bare["adapters"].values():
        adapter.update(driver="", module={}, link={}, firmware="")
        for drive in adapter["drives"].values():
            drive.update(dict.fromkeys(drive, ""), link={})
    return {**event, "facts": {**event["facts"], **bare}}


def no_drives(event: Event) -> Event:
    """Looks that found every adapter and not one drive."""
    if event["kind"] != "environment":
        return event
    adapters = {alias: {**one, "drives": {}} for alias, one in event["facts"]["adapters"].items()}
    return {**event, "facts": {**event["facts"], "adapters": adapters}}


def no_settings(event: Event) -> Event:
    """Sessions that tell no setting."""
    return {**event, "provisioned": {}} if event["kind"] == "session_started" else event


def unread_settings(event: Event) -> Event:
    """Sessions whose settings could not be read back."""
    unread = {"settings": [{**SETTING, "read_back": None, "proven": None}]}
    return {**event, "provisioned": unread} if event["kind"] == "session_started" else event


def no_builds(event: Event) -> Event:
    """Sessions that tell no build of any driver."""
    return {**event, "provisioned": {"drivers": {}}} if event["kind"] == "session_started" else event


def only_planned(event: Event) -> Event | None:
    """A run that never began."""
    return event if event["kind"] == "planned" else None


def same(event: Event) -> Event:
    """Nothing changed."""
    return event


def emptied(run: Path) -> None:
    """No sample, no evidence, no input."""
    (run / "samples.jsonl").write_bytes(b"")
    for path in [*(run / "raw").iterdir(), *(run / "inputs").iterdir()]:
        path.unlink()
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps({**document, "inputs": {}}), encoding="utf-8")


def no_samples(run: Path) -> None:
    """Nothing was measured."""
    (run / "samples.jsonl").write_bytes(b"")


def cut_samples(run: Path) -> None:
    lines = (run / "samples.jsonl").read_bytes().splitlines()
    (run / "samples.jsonl").write_bytes(b"".join(line[: len(line) // 2] + b"\n" for line in lines))


def no_raw_named(run: Path) -> None:
    """No sample names its evidence."""
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    text = "".join(json.dumps({**line, "raw": []}) + "\n" for line in lines)
    (run / "samples.jsonl").write_text(text, encoding="utf-8")


def no_raw(run: Path) -> None:
    for path in (run / "raw").iterdir():
        path.unlink()


def no_inputs(run: Path) -> None:
    for path in (run / "inputs").iterdir():
        path.unlink()


def empty_verdict(run: Path) -> None:
    """A verdict that says nothing."""
    (run / "verdict.json").write_text("{}", encoding="utf-8")


def nothing(_run: Path) -> None:
    """The files as they are."""


Mutation = tuple[Change, Callable[[Path], None]]
LOOK = ((without("environment"), nothing), (bare_look, nothing))
DRIVES = (*LOOK, (no_drives, nothing))
STARTED = (without("session_started"), nothing)
SETTINGS = ((no_settings, nothing), (unread_settings, nothing))
SAMPLES = ((same, no_samples), (same, cut_samples))
PARTS: Mapping[str, tuple[Mutation, ...]] = {
    "every_adapter_should_run_its_driver": LOOK,
    "every_expected_drive_should_be_in_place": DRIVES,
    "every_drive_should_be_running": DRIVES,
    "no_unknown_drive_should_be_attached": DRIVES,
    "drives_of_one_model_should_agree_on": DRIVES,
    "every_adapter_link_that_is_shown_should_run_at_full_rate": LOOK,
    "drive_firmware_levels_should_match_the_inventory": DRIVES,
    "execution_throttle_should_be_in_effect": SETTINGS,
    "every_setting_should_be_read_back_and_none_shown_without_effect": SETTINGS,
    "no_session_should_have_failed_to_be_provisioned": (STARTED,),
    "each_drop_should_have_run_one_build": (
        STARTED,
        (having("session_started", kernel=""), nothing),
        (no_builds, nothing),
    ),
    "kernel_log_should_be_clean": (
        (without("block_finished"), nothing),
        (end(kernel_log_reason="/dev/kmsg: not permitted"), nothing),
    ),
    "nothing_should_be_written_outside_claims": ((without("block_finished"), nothing), (end(disks={}), nothing)),
    "what_was_provisioned_should_be_put_back": (
        (without("restored"), nothing),
        (having("restored", kind="restore_failed", reason="WCE cannot be read"), nothing),
    ),
    "every_planned_point_should_be_measured": SAMPLES,
    "workload_should_be_no_worse_than_baseline": SAMPLES,
    "inputs_should_be_as_planned": ((same, emptied), (same, no_inputs)),
    "evidence_should_be_complete": ((same, no_raw_named), (same, no_raw)),
    "verdict_should_permit_signing": ((same, nothing), (same, empty_verdict)),
}
"""Each keyword of the suites with runs: one without the part that it looks at, others where that is unreadable."""
OTHERS = {"skip_if", "connect_to_bmc", "bmc_should_report_health"}
"""Robot's own, and the management controller, which answers over the network or raises."""
ARGUMENTS: Mapping[str, tuple[Any, ...]] = {
    "drives_of_one_model_should_agree_on": ("queue depth",),
    "execution_throttle_should_be_in_effect": ("sym", 4),
    "workload_should_be_no_worse_than_baseline": ("*", "iops", Percent(0.2)),
}


def keywords_of_the_suites() -> set[str]:
    found = set()
    for path in sorted((suites_folder() / "robot").glob("*.robot")):
        for test in TestSuite.from_file_system(path).tests:
            found |= {step.name.lower().replace(" ", "_") for step in test.body if getattr(step, "name", None)}
    return found


def says(run: Path, keyword: str) -> str:
    """The outcome of a keyword over a run, and why: PASS, or the class of what it raised."""
    try:
        getattr(StorqualLibrary(run=str(run)), keyword)(*ARGUMENTS.get(keyword, ()))
    except (StorqualError, AssertionError, SkipExecution) as problem:
        return f"{type(problem).__name__}: {problem}"
    return "PASS"


def test_every_keyword_of_the_suites_is_tried_here() -> None:
    assert keywords_of_the_suites() == set(PARTS) | OTHERS


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("sound"), **SOUND)
    judge_run(run)
    return run


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was planned and never began."""
    with events_changed(only_planned):
        run = make_run(tmp_path_factory.mktemp("empty"), **SOUND)
    emptied(run)
    return run


PLANNED_SO = {"drive_firmware_levels_should_match_the_inventory", "no_unknown_drive_should_be_attached"}
"""What the inventory of these runs does not ask for, and what only a bench that answers tells."""


@pytest.mark.parametrize("keyword", PARTS)
def test_a_keyword_with_something_to_look_at_passes(keyword: str, sound: Path) -> None:
    assert (says(sound, keyword) == "PASS") is (keyword not in PLANNED_SO)


@pytest.mark.parametrize("keyword", [name for name in PARTS if name not in PLANNED_SO])
def test_a_keyword_that_passes_says_what_it_looked_at(
    keyword: str, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    for module in ("seen", "bench_keywords", "campaign_keywords"):
        monkeypatch.setattr(f"storqual.checks.{module}.looked_at", told.append)
    assert says(sound, keyword) == "PASS"
    assert told
    assert all(told)


@pytest.mark.parametrize("keyword", PARTS)
def test_no_keyword_passes_on_an_empty_run(keyword: str, empty: Path) -> None:
    assert says(empty, keyword).startswith(("NotJudgedError", "StorqualError", "AssertionError", "BadInputError"))


@pytest.mark.parametrize(
    ("keyword", "which"), [(keyword, which) for keyword, listed in PARTS.items() for which in range(len(listed))]
)
def test_no_keyword_passes_without_what_it_looks_at(keyword: str, which: int, tmp_path: Path) -> None:
    change, spoil = PARTS[keyword][which]
    with events_changed(change):
        run = make_run(tmp_path, **SOUND)
    spoil(run)
    assert says(run, keyword) != "PASS"


CHECKS_IN_PYTHON = {
    "test_kernel_log.py": [without("block_finished"), end(kernel_log_reason="/dev/kmsg: not permitted"), only_planned]
}


def test_every_check_in_python_is_tried_here() -> None:
    assert {path.name for path in suites_folder().glob("test_*.py")} == set(CHECKS_IN_PYTHON)


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, listed in CHECKS_IN_PYTHON.items() for number in range(len(listed))]
)
def test_no_check_in_python_passes_without_what_it_looks_at(name: str, number: int, tmp_path: Path) -> None:
    with events_changed(CHECKS_IN_PYTHON[name][number]):
        run = make_run(tmp_path, **SOUND, finished=False)
    run_checks(run, [suites_folder() / name])
    assert [check.outcome for check in read_run(run).checks] == ["ERROR"]


def suite_of(metric: str) -> str:
    """The synthetic suite with one metric against each thing that a suite alone can hold it against."""
    limit = "max: 1e18" if METRICS[metric].better == "lower" else "min: 0"
    suite = SUITE
    if "load_steps" in METRICS[metric].needs:
        load = "}\n    load: {to: 100ms, of: mean, by: iodepth, most: 64}\n"
        suite = re.sub(r", iodepth: \[[0-9, ]*\]\}\n", load, suite)
    head, _, rest = suite.partition("criteria:\n")
    return (
        f"{head}criteria:\n"
        f"  - {{metric: {metric}, against: baseline, margin: 20%}}\n"
        f"  - {{id: limit, metric: {metric}, against: absolute, {limit}}}\n"
        f"  - {{id: peers, metric: {metric}, against: peers, margin: 20%}}\n"
        f"  - {{id: published, metric: {metric}, against: published, {limit}, source: a paper}}\n"
        f"  - {{id: scaling, metric: {metric}, against: scaling, over: drives, linear_to: 4}}\n"
        f"profiles:{rest.partition('profiles:')[2]}"
    )


AGAINST = {"baseline", "absolute", "peers", "published", "scaling"}


def no_primitives(run: Path) -> None:
    """Nothing can be computed from any sample."""
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    text = "".join(json.dumps({**line, "primitives": {}, "series": {}}) + "\n" for line in lines)
    (run / "samples.jsonl").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("spoil", [no_samples, no_primitives])
@pytest.mark.parametrize("metric", METRICS)
def test_no_criterion_passes_without_its_samples(metric: str, spoil: Callable[[Path], None], tmp_path: Path) -> None:
    run = make_run(tmp_path, sessions=4, noise=0.002, suite=suite_of(metric))
    spoil(run)
    verdict = judge_run(run)
    assert {entry["against"] for entry in verdict["criteria"]} == AGAINST
    assert {entry["outcome"] for entry in verdict["criteria"]} <= {"ERROR", "SKIPPED", "INCONCLUSIVE"}
    assert verdict["exit_code"] == 2


def test_every_kind_of_criterion_is_tried_here() -> None:
    """What a spec sheet states is judged as a published figure is, once it is found."""
    kinds = set(get_args(Criterion.model_fields["against"].annotation))
    assert kinds == AGAINST | {"product"}


@pytest.mark.parametrize("spoil", [no_samples, no_primitives])
def test_no_figure_of_a_spec_sheet_is_kept_without_samples(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    suite = SUITE.partition("criteria:\n")
    text = f"{suite[0]}products: [sheet]\ncriteria:\n  - {{metric: iops, against: product}}\nprofiles:"
    run = make_run(tmp_path, sessions=4, noise=0.002, suite=text + suite[2].partition("profiles:")[2])
    sheet = 'adapter: "*"\nsource: a data sheet\nlimits:\n  - {metric: iops, min: 1}\n'
    (run / "inputs" / "sheet.product.yml").write_text(sheet, encoding="utf-8")
    spoil(run)
    assert {entry["outcome"] for entry in judge_run(run)["criteria"] if entry["against"] == "product"} == {"ERROR"}


@pytest.mark.parametrize("spoil", [emptied, no_inputs])
def test_no_verdict_passes_without_what_it_is_judged_by(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    run = make_run(tmp_path, sessions=4, noise=0.002)
    spoil(run)
    try:
        outcome = judge_run(run)["outcome"]
    except (StorqualError, KeyError) as problem:
        outcome = type(problem).__name__
    assert outcome not in ("PASS", "MARGINAL")


def entry(outcome: str, against: str, *, required: bool = True) -> VerdictEntry:
    place: dict[str, Any] = {"id": "x", "bench": "b", "adapter": "a", "point": None}
    return VerdictEntry(**place, required=required, against=against, source="suite", outcome=outcome, reason="")


@pytest.mark.parametrize("marginal_passes", [True, False])
def test_no_gate_passes_on_nothing(*, marginal_passes: bool) -> None:
    skipped, check = entry("SKIPPED", "baseline"), entry("PASS", "check")
    informative = entry("PASS", "baseline", required=False)
    for criteria in ([], [skipped], [check], [check, skipped], [informative]):
        assert run_outcome(criteria, [], holes=0, marginal_passes=marginal_passes)[0] == "ERROR"
