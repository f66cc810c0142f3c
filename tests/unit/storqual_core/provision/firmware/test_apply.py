# SPDX-License-Identifier: Apache-2.0
"""Flashing: what is refused, what is done in which order, and what the module is given."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import BadInputError, GuardRefusalError, StorqualError, ToolError
from storqual_core.kit.results import PartialError
from storqual_core.provision.firmware import flash as provisioning
from storqual_core.provision.firmware.flash import provision_firmware, read_request
from storqual_core.tools.capabilities import VolumeFacts
from tests.support.fake_flash import make_tool
from tests.support.flash_bench import WELL, Bench, Owners, make_bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose tool is the fake one."""
    return make_bench(tmp_path, monkeypatch)


# what is refused, before anything is written


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        (replace(WELL, state="Degraded", healthy=False), "volume scratch is Degraded"),
        (
            replace(WELL, state="Rebuilding", healthy=False, progress={"rebuild": 32.0}),
            r"rebuild is under way \(32 %\)",
        ),
        (replace(WELL, progress={"initialise": 0.0}), "initialise is under way"),
        (replace(WELL, progress={"check": 1.0}), "check is under way"),
        (replace(WELL, progress={"patrol read": 50.0}), "patrol read is under way"),
        (replace(WELL, state="", healthy=None), "in a state that its tool does not tell"),
        (replace(WELL, state="Interim Recovery Mode", healthy=False), "Interim Recovery Mode"),
    ],
)
def test_only_a_controller_whose_volumes_are_well_is_flashed(bench: Bench, volume: VolumeFacts, words: str) -> None:
    bench.card.volumes = [WELL, volume]
    with pytest.raises(ToolError, match=f"no firmware is written: .*{words}"):
        bench.flash()
    assert bench.untouched


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *(
            ("health", word, "its state is")
            for word in ("Needs Attention", "Degraded", "Battery/Capacitor Status: Failed")
        ),
        # it would start at the next boot, whatever is written now
        ("waiting", "1.7", "which this run did not write"),
        ("dead", True, "sas0: the controller does not answer"),
    ],
)
def test_a_controller_that_is_not_well_or_not_ours_alone_is_not_flashed(
    bench: Bench, name: str, value: object, words: str
) -> None:
    setattr(bench.card, name, value)
    with pytest.raises(ToolError, match=words):
        bench.flash()
    assert bench.untouched


def test_the_guard_has_the_last_word_before_a_write(bench: Bench) -> None:
    bench.refusal = "drive x: this goes beyond the claim, and there is no consent to it"
    with pytest.raises(GuardRefusalError, match="there is no consent"):
        bench.flash()
    assert bench.untouched


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b.request("0.9"), "it runs 1.0, which is newer than 0.9; name 1.0 in `from`"),
        (lambda b: b.request(allowed=("1.5",)), "2.0 may replace only 1.5"),
        (lambda b: b.request(rollback=()), "there is no image of 1.0 to go back to"),
        (lambda b: b.request(rollback=(b.image("1.5"),)), "no image of 1.0 to go back to; add it to `rollback`"),
        (
            lambda b: b.request(rollback=(replace(b.image("1.0"), sha256="0" * 64),)),
            "the image to go back to is missing: .*SHA-256",
        ),
        (lambda b: replace(b.request(), image=replace(b.image("2.0"), sha256="0" * 64)), "found SHA-256"),
        (
            lambda b: replace(b.request(), image=replace(b.image("2.0"), path="/not/there")),
            "cannot be read: No such file",
        ),
        (lambda b: replace(b.request(), image=replace(b.image("2.0"), component="bios")), "tells no version of bios"),
    ],
)
def test_what_is_not_as_declared_is_refused(bench: Bench, change: Any, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        bench.flash(change(bench))
    assert bench.untouched


def test_all_reasons_are_told_at_once(bench: Bench) -> None:
    bench.card.volumes = [replace(WELL, state="Degraded", healthy=False)]
    with pytest.raises(ToolError) as caught:
        bench.flash(bench.request("0.9", rollback=()))
    assert len(str(caught.value).splitlines()) == 3


def test_a_run_does_not_flash_over_the_memory_of_another_one(bench: Bench) -> None:
    bench.flash()
    with pytest.raises(StorqualError, match="which was not restored"):
        provision_firmware(
            bench.request("3.0", rollback=(bench.image("2.0"),)), Owners(bench.card), replace(bench.step(), run="r2")
        )
    assert bench.card.version == "2.0"


# what is done


def test_check_mode_tells_the_drift_and_touches_nothing(bench: Bench) -> None:
    request = replace(bench.request(), copied=False)
    Path(request.image.path).unlink()
    result = bench.flash(request, check=True)
    assert (result["changed"], result["pending"]) == (True, "")
    assert result["drift"] == ["sas0 firmware.firmware: 1.0, declared 2.0"]
    assert result["diff"] == {"before": "sas0 firmware.firmware: 1.0\n", "after": "sas0 firmware.firmware: 2.0\n"}
    assert bench.untouched
    with pytest.raises(ToolError, match="may replace only"):
        bench.flash(bench.request(allowed=("9.9",)), check=True)


def test_an_image_is_written_started_and_proven_once(bench: Bench) -> None:
    result = bench.flash()
    assert bench.card.effects == ["half", "whole", "start"]
    assert (result["changed"], result["pending"]) == (True, "")
    (entry,) = result["settings"]
    assert (entry["adapter"], entry["before"], entry["read_back"], entry["changed"], entry["proven"]) == (
        "sas0",
        "1.0",
        "2.0",
        True,
        True,
    )
    assert "4 settings and links are as before" in entry["proof"]
    assert result["steps"][:3] == ["sas0: began to write firmware 2.0", "sas0: firmware 2.0 written", "seen"]
    assert bench.notes == {}
    memory = bench.saved.values["firmware.firmware@sas0"]
    assert (memory["version"], memory["image"]["version"], memory["consent"]) == ("1.0", "1.0", ["e00001"])
    bench.refusal = "not asked"
    again = bench.flash()
    assert (again["changed"], again["steps"], again["drift"]) == (False, [], [])


def test_there_and_back_and_there_again(bench: Bench) -> None:
    """N, N-1, N; the way to the version that was found needs no permission."""
    bench.flash()
    bench.flash(bench.request("1.0", rollback=()))
    assert bench.card.version == "1.0"
    bench.flash()
    assert (bench.card.version, bench.notes) == ("2.0", {})
    assert bench.saved.values["firmware.firmware@sas0"]["version"] == "1.0"


def test_a_driver_is_bound_anew_where_the_tool_cannot_start_an_image(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provisioning, "tool_for", lambda _name, **_kind: make_tool(bench.card, activates=False))
    bench.flash()
    assert bench.card.effects == ["half", "whole", "rebind"]
    assert bench.card.version == "2.0"


@pytest.mark.parametrize("kind", ["reboot", "power cycle"])
def test_an_image_that_needs_a_restart_is_proven_after_it(bench: Bench, kind: str) -> None:
    bench.card.starts = kind
    result = bench.flash(bench.request(activation=kind))
    assert (result["pending"], result["settings"][0]["proven"]) == (kind, None)
    again = bench.flash(bench.request(activation=kind))
    assert (again["pending"], again["changed"]) == (kind, False)
    assert bench.card.effects == ["half", "whole"]
    bench.card.restart()
    proof = bench.flash(bench.request(activation=kind), proof=True)
    (entry,) = proof["settings"]
    assert (entry["before"], entry["read_back"], entry["proven"], entry["changed"]) == ("1.0", "2.0", True, True)
    assert bench.notes == {}


def test_a_tool_that_asks_for_more_is_believed(bench: Bench) -> None:
    bench.card.starts = "reboot"
    assert bench.flash()["pending"] == "reboot"


def test_settings_that_a_flash_set_back_are_put_back(bench: Bench) -> None:
    bench.card.forgets = True
    result = bench.flash()
    assert bench.card.settings == {"execution_throttle": 32}
    assert "sas0: setting.execution_throttle put back to 32" in result["steps"]


def test_a_cache_policy_that_a_flash_changed_is_put_back(bench: Bench) -> None:
    bench.card.starts = "reboot"
    bench.flash()
    bench.card.policies["write_policy"] = "wt"
    bench.card.restart()
    result = bench.flash(proof=True)
    assert bench.card.policies == {"write_policy": "wb"}
    assert "sas0: volume.0.write_policy put back to wb" in result["steps"]


def test_a_link_that_does_not_come_back_is_a_failure(bench: Bench) -> None:
    bench.card.starts = "reboot"
    bench.flash()
    bench.card.restart()
    bench.card.link = "down"
    with pytest.raises(PartialError, match="link was up and is down") as caught:
        bench.flash(proof=True)
    assert bench.now >= 60
    assert caught.value.settings[0].read_back == "2.0"
    bench.card.link = "up"
    assert bench.flash()["settings"][0]["proven"]
    assert bench.notes == {}


def test_another_version_after_the_flash_is_a_failure_that_tells_what_was_done(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.card.starts = "none"

    def keep(_runner: Any, _index: str, _image: Any) -> str:
        bench.card.version = "1.9"
        return "none"

    tool = make_tool(bench.card)
    tool.activation = keep  # type: ignore[attr-defined]
    monkeypatch.setattr(provisioning, "tool_for", lambda _name, **_kind: tool)
    with pytest.raises(PartialError, match=r"2\.0 was written and it runs 1\.9") as caught:
        bench.flash(bench.request(activation="none"))
    assert "sas0: firmware 2.0 written" in caught.value.steps
    assert caught.value.settings[0].read_back == "1.9"
    assert bench.notes["firmware.firmware@sas0"].phase == "downloading"


def test_a_refused_image_is_a_failure_after_the_first_write(bench: Bench) -> None:
    bench.card.takes = False
    with pytest.raises(PartialError, match="the controller refused the image") as caught:
        bench.flash()
    assert caught.value.steps == ["sas0: began to write firmware 2.0"]
    bench.card.takes = True
    assert bench.flash()["settings"][0]["proven"]


def test_an_image_that_does_not_start_is_written_once_more_and_then_a_person_must_look(bench: Bench) -> None:
    bench.card.starts = "reboot"
    bench.flash()
    for tries in (2, 3):
        bench.card.waiting = ""
        bench.card.boot += "0"
        with pytest.raises(PartialError, match="the image did not start; the next run writes it again"):
            bench.flash(proof=True)
        if tries == 2:
            assert bench.flash()["pending"] == "reboot"
    with pytest.raises(
        ToolError, match=r"was written 2 times and did not start.* write 1.0 \(on the bench: .*fw-1.0"
    ):
        bench.flash()


def test_a_journal_that_is_broken_is_a_sentence(bench: Bench) -> None:
    (bench.folder / "state").mkdir()
    for text in ("{", "[]", '{"schema": "x", "entries": {}}'):
        (bench.folder / "state" / "firmware.json").write_text(text)
        with pytest.raises(StorqualError, match="tells which firmware was being written"):
            bench.flash()


# the module's input


def given(**more: Any) -> dict[str, Any]:
    known = {"state_dir": "/s", "path": "a.bin", "sha256": "A" * 64, "version": "2", "tool": "storcli"}
    return {**known, "activation": "reset", **more}


def test_paths_begin_at_the_state_folder() -> None:
    request = read_request(given(signature="b.sig", key="/k.pem", rollback=[given(version="1")]))
    assert (request.image.path, request.image.signature, request.image.key) == ("/s/a.bin", "/s/b.sig", "/k.pem")
    assert (request.image.sha256, request.rollback[0].path, request.allowed) == ("a" * 64, "/s/a.bin", None)
    assert read_request(given(**{"from": ["1"]}), check=True).allowed == ("1",)


def test_every_problem_of_the_input_is_told() -> None:
    with pytest.raises(BadInputError) as caught:
        read_request(given(version="", signature="x", activation="soon", rollback=[{"path": "y"}]))
    assert caught.value.problems == [
        "firmware: found no version, expected one",
        "firmware: found a signature without a key or a key without one, expected both or none",
        "rollback: found no sha256, expected one",
        "rollback: found no version, expected one",
        "activation: found 'soon', expected one of none, reset, reboot, power cycle",
    ]


def test_only_a_tool_that_flashes_the_thing_is_taken() -> None:
    from storqual_core.provision.firmware.subject import tool_for  # noqa: PLC0415

    assert tool_for("nvme", drives=True).__name__.endswith(".nvme")
    with pytest.raises(BadInputError, match="of an adapter: found tool 'nvme', expected one of arcconf"):
        tool_for("nvme", drives=False)


# the soak


def test_nothing_counts_as_proven_before_its_soak(bench: Bench) -> None:
    asked: list[tuple[list[str], float]] = []

    def soak(names: Sequence[str], seconds: float) -> str:
        asked.append((list(names), seconds))
        assert bench.notes
        return "900 reads of 2 drives"

    done = bench.flash(soak_s=12.0, soak=soak)
    assert done["settings"][0]["proof"].endswith("are as before; 900 reads of 2 drives")
    assert [seconds for _, seconds in asked] == [12.0]
    assert not bench.flash(soak_s=12.0, soak=soak)["changed"]
    assert len(asked) == 1


def test_a_soak_that_fails_is_a_failure_and_the_next_run_soaks_again(bench: Bench) -> None:

    def soak(_names: Sequence[str], _seconds: float) -> str:
        raise ToolError("the soak failed: sdb: iotmo_cnt grew by 2")

    with pytest.raises(PartialError, match=r"2\.0 runs, and the soak failed: sdb: iotmo_cnt grew by 2"):
        bench.flash(soak_s=12.0, soak=soak)
    assert bench.notes
    effects = list(bench.card.effects)
    done = bench.flash(soak_s=12.0, soak=lambda _names, _seconds: "well")
    assert bench.card.effects == effects
    assert done["settings"][0]["proof"].endswith("; well")
    assert not bench.notes
