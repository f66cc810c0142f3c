# SPDX-License-Identifier: Apache-2.0
"""Flashing: what is refused, what is done in which order, and what a power cut leaves."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual_core import firmware_step
from storqual_core import provision_firmware as provisioning
from storqual_core.bench_state import read_saved
from storqual_core.capabilities import VolumeFacts
from storqual_core.errors import BadInputError, GuardRefusalError, StorqualError, ToolError
from storqual_core.firmware_image import Image
from storqual_core.firmware_journal import read_journal
from storqual_core.firmware_plan import FirmwareRequest
from storqual_core.firmware_restore import put_firmware_back
from storqual_core.firmware_subject import Subject
from storqual_core.provision_firmware import Step, provision_firmware, read_request
from storqual_core.provisioned import PartialError
from tests.replay import Replay
from tests.unit.storqual_core.fake_flash import Card, PowerCut, make_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

WELL = VolumeFacts("0", name="scratch", state="Optimal", healthy=True)


@dataclass
class Owners:
    """One adapter without a guard that looks at the machine; `refusal` is what the guard says to a write."""

    card: Card
    refusal: str = ""
    holds: list[bool] = field(default_factory=list)

    def memory(self, owner: str) -> dict[str, Any]:
        """What a restore would need."""
        return {"kind": "adapter", "adapter": {"pci": self.card.pci}, "consent": ["e00001"]}

    @contextmanager
    def hold(self, _tool: Any, *, write: bool) -> Iterator[None]:
        """The guard."""
        self.holds.append(write)
        if write and self.refusal:
            raise GuardRefusalError([self.refusal])
        yield

    def subjects(self, tool: Any, boards: Any) -> list[Subject]:
        """The adapter."""
        return [Subject("sas0", tool, "0", Replay([]), pci=self.card.pci)]


@dataclass
class Bench:
    """A bench with one card, images of three versions, and a clock that only its own sleep moves."""

    folder: Path
    card: Card = field(default_factory=Card)
    refusal: str = ""
    now: float = 0.0

    def image(self, version: str, **more: str) -> Image:
        """An image file."""
        path = self.folder / f"fw-{version}.bin"
        path.write_bytes(version.encode() * 10)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return Image(str(path), digest, version, **more)

    def request(self, version: str = "2.0", **more: Any) -> FirmwareRequest:
        """Version 2.0 with a way back to 1.0."""
        given: dict[str, Any] = {"rollback": (self.image("1.0"),), "activation": "reset", "tool": "storcli", **more}
        return FirmwareRequest(self.image(version), **given)

    def sleep(self, seconds: float) -> None:
        """Time goes by."""
        self.now += seconds

    def rebind(self, _pci: str) -> None:
        """The driver lets go and takes again."""
        self.card.effect("rebind")
        self.card.start()

    def step(self, **more: Any) -> Step:
        """A call of the module in this boot."""
        return Step(
            str(self.folder / "state"),
            "r1",
            boot=lambda: self.card.boot,
            rebind=self.rebind,
            clock=lambda: self.now,
            sleep=self.sleep,
            **more,
        )

    def flash(self, request: FirmwareRequest | None = None, **more: Any) -> dict[str, Any]:
        """One call of the module."""
        return provision_firmware(request or self.request(), Owners(self.card, self.refusal), self.step(**more))

    @property
    def untouched(self) -> bool:
        """Nothing was written, to the card or to the bench."""
        return not self.card.effects and not self.notes and self.saved is None

    @property
    def notes(self) -> dict[str, Any]:
        """The journal."""
        return read_journal(self.folder / "state")

    @property
    def saved(self) -> Any:
        """The memory."""
        return read_saved(self.folder / "state")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose tool is the fake one."""
    made = Bench(tmp_path)
    monkeypatch.setattr(provisioning, "tool_for", lambda _name, **_kind: make_tool(made.card))
    return made


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
    """Every other state, one that nobody knows too."""
    bench.card.volumes = [WELL, volume]
    with pytest.raises(ToolError, match=f"no firmware is written: .*{words}"):
        bench.flash()
    assert bench.untouched


@pytest.mark.parametrize("health", ["Needs Attention", "Degraded", "Battery/Capacitor Status: Failed"])
def test_a_controller_that_is_not_well_is_not_flashed(bench: Bench, health: str) -> None:
    """Its own word for itself."""
    bench.card.health = health
    with pytest.raises(ToolError, match="its state is"):
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
            "the way back is not there: .*SHA-256",
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
    """Order, way back, digest, part."""
    with pytest.raises(ToolError, match=words):
        bench.flash(change(bench))
    assert bench.untouched


def test_all_reasons_are_told_at_once(bench: Bench) -> None:
    """A person walks to the bench once."""
    bench.card.volumes = [replace(WELL, state="Degraded", healthy=False)]
    with pytest.raises(ToolError) as caught:
        bench.flash(bench.request("0.9", rollback=()))
    assert len(str(caught.value).splitlines()) == 3


def test_the_guard_has_the_last_word_before_a_write(bench: Bench) -> None:
    """No consent, no flash."""
    bench.refusal = "drive x: this goes beyond the claim and nobody consented to it"
    with pytest.raises(GuardRefusalError, match="nobody consented"):
        bench.flash()
    assert bench.untouched


def test_an_image_of_somebody_else_that_waits_is_left_alone(bench: Bench) -> None:
    """It would start at the next boot, whatever is written now."""
    bench.card.waiting = "1.7"
    with pytest.raises(ToolError, match="which this run did not write"):
        bench.flash()
    assert bench.untouched


def test_a_controller_that_does_not_answer_is_a_sentence(bench: Bench) -> None:
    """Nothing is tried."""
    bench.card.dead = True
    with pytest.raises(ToolError, match="sas0: the controller does not answer"):
        bench.flash()
    assert bench.untouched


def test_a_run_does_not_flash_over_the_memory_of_another_one(bench: Bench) -> None:
    """Restore first."""
    bench.flash()
    with pytest.raises(StorqualError, match="which was not restored"):
        provision_firmware(
            bench.request("3.0", rollback=(bench.image("2.0"),)),
            Owners(bench.card),
            replace(bench.step(), run="r2"),
        )
    assert bench.card.version == "2.0"


# what is done


def test_check_mode_tells_the_drift_and_touches_nothing(bench: Bench) -> None:
    """The images need not be on the bench yet."""
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
    """The second time nothing changes, and nobody is asked for a consent."""
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
    """It resets the controller."""
    monkeypatch.setattr(provisioning, "tool_for", lambda _name, **_kind: make_tool(bench.card, activates=False))
    bench.flash()
    assert bench.card.effects == ["half", "whole", "rebind"]
    assert bench.card.version == "2.0"


@pytest.mark.parametrize("kind", ["reboot", "power cycle"])
def test_an_image_that_needs_a_restart_is_proven_after_it(bench: Bench, kind: str) -> None:
    """Until then nothing is claimed; asking again writes nothing."""
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
    """The drop says reset, the tool says reboot."""
    bench.card.starts = "reboot"
    assert bench.flash()["pending"] == "reboot"


def test_settings_that_a_flash_set_back_are_put_back(bench: Bench) -> None:
    """Read, compared, written, read."""
    bench.card.forgets = True
    result = bench.flash()
    assert bench.card.settings == {"execution_throttle": 32}
    assert "sas0: setting.execution_throttle put back to 32" in result["steps"]


def test_a_cache_policy_that_a_flash_changed_is_put_back(bench: Bench) -> None:
    """Before anything is measured; the former one stands in the note, not in what the flash left."""
    bench.card.starts = "reboot"
    bench.flash()
    bench.card.policies["write_policy"] = "wt"
    bench.card.restart()
    result = bench.flash(proof=True)
    assert bench.card.policies == {"write_policy": "wb"}
    assert "sas0: volume.0.write_policy put back to wb" in result["steps"]


def test_a_link_that_does_not_come_back_is_a_failure(bench: Bench) -> None:
    """After a minute, with the state that was read."""
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
    """Changed is true, with steps and what is read now."""
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
    """The tool said no in the middle; half an image may be in it."""
    bench.card.takes = False
    with pytest.raises(PartialError, match="the controller refused the image") as caught:
        bench.flash()
    assert caught.value.steps == ["sas0: began to write firmware 2.0"]
    bench.card.takes = True
    assert bench.flash()["settings"][0]["proven"]


def test_an_image_that_does_not_start_is_written_once_more_and_then_a_person_must_look(bench: Bench) -> None:
    """What to do stands in the sentence."""
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
        ToolError, match=r"was written 2 times and did not come to run.* write 1.0 \(on the bench: .*fw-1.0"
    ):
        bench.flash()


# what a power cut leaves


def effects_of(bench: Bench, kind: str) -> int:
    """How many effects a whole flash has on the outside."""
    bench.card = Card(starts=kind, forgets=True)
    (bench.folder / "whole").mkdir()
    run_to_the_end(Bench(bench.folder / "whole", bench.card), kind)
    return len(bench.card.effects)


def run_to_the_end(bench: Bench, kind: str) -> dict[str, Any]:
    """Flash, and restart when that is needed, as the role does."""
    request = bench.request(activation=kind)
    result = bench.flash(request)
    if result["pending"]:
        bench.card.restart()
        result = bench.flash(request, proof=True)
    return result


@pytest.fixture
def files_are_effects(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power may also go right before each write of the memory and of the journal."""

    def counted(write: Any) -> Any:
        def effect(*words: Any) -> Any:
            bench.card.effect(write.__name__)
            return write(*words)

        return effect

    for name in ("remember", "note", "clear"):
        monkeypatch.setattr(firmware_step, name, counted(getattr(firmware_step, name)))


@pytest.mark.usefixtures("files_are_effects")
@pytest.mark.parametrize("boots", [True, False], ids=["power is lost", "program dies"])
@pytest.mark.parametrize("kind", ["none", "reset", "reboot", "power cycle"])
def test_after_a_cut_at_any_effect_the_next_run_ends_as_declared(bench: Bench, kind: str, boots: bool) -> None:
    """In another boot or in the same; the version that was found is still known, and so are the settings."""
    effects = effects_of(bench, kind)
    assert effects >= 7
    for cut in range(effects):
        folder = bench.folder / f"cut-{cut}"
        folder.mkdir()
        bench.card = Card(starts=kind, forgets=True, cut_at=cut)
        here = Bench(folder, bench.card)
        with pytest.raises(PowerCut):
            run_to_the_end(here, kind)
        here.card.cut_at = None
        if boots:
            here.card.restart()
        run_to_the_end(here, kind)
        assert (here.card.version, here.card.half_written, here.notes) == ("2.0", False, {}), f"cut at {cut}"
        assert here.card.settings == {"execution_throttle": 32}
        assert here.saved.values["firmware.firmware@sas0"]["version"] == "1.0"


def test_after_a_power_cut_a_dead_controller_is_a_persons_work(bench: Bench) -> None:
    """The sentence says what was under way, and what to write with what."""
    bench.card.cut_at = 1
    with pytest.raises(PowerCut):
        bench.flash()
    bench.card.cut_at = None
    bench.card.dead = True
    with pytest.raises(ToolError) as caught:
        bench.flash()
    told = str(caught.value)
    assert "a flash of firmware from 1.0 to 2.0 was interrupted" in told
    assert "Power-cycle the bench and run this again" in told
    assert "write 1.0 (on the bench: " in told
    assert "with storcli" in told


def test_a_journal_that_is_broken_is_a_sentence(bench: Bench) -> None:
    """It is not taken for an empty one."""
    (bench.folder / "state").mkdir()
    for text in ("{", "[]", '{"schema": "x", "entries": {}}'):
        (bench.folder / "state" / "firmware.json").write_text(text)
        with pytest.raises(StorqualError, match="tells which firmware was being written"):
            bench.flash()


# the way back


def put_back(bench: Bench, monkeypatch: pytest.MonkeyPatch, *, check: bool = False) -> Any:
    """What a restore does with what is remembered."""
    from storqual_core import firmware_restore  # noqa: PLC0415
    from storqual_core.bench_lock import hold_lock  # noqa: PLC0415

    monkeypatch.setattr(firmware_restore, "Adapters", lambda _access, _adapters: Owners(bench.card))
    memory = bench.saved.values
    step = bench.step(check=check)
    if check:
        return put_firmware_back(memory, step, None, runner=Replay([]))
    with hold_lock(bench.folder / "state", "r1", "restore") as lock:
        return put_firmware_back(memory, step, lock, runner=Replay([]))


@pytest.mark.parametrize("kind", ["reset", "reboot"])
def test_a_restore_flashes_the_version_that_was_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """From the image that was kept for it; after a boot where one is needed."""
    bench.card.starts = kind
    run_to_the_end(bench, kind)
    seen = put_back(bench, monkeypatch, check=True)
    assert (seen.failures, seen.read_back, bench.card.version) == ([], {}, "2.0")
    back = put_back(bench, monkeypatch)
    if kind == "reboot":
        assert (back.pending, back.read_back) == ("reboot", {})
        bench.card.restart()
        back = put_back(bench, monkeypatch)
    assert (bench.card.version, back.pending, back.failures) == ("1.0", "", [])
    assert back.read_back == dict(bench.saved.values)
    assert bench.notes == {}


def test_a_restore_without_its_image_is_a_failure_that_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read back, so the memory stays."""
    bench.flash()
    (bench.folder / "fw-1.0.bin").unlink()
    back = put_back(bench, monkeypatch)
    assert back.read_back == {}
    assert "fw-1.0.bin: cannot be read" in back.failures[0]


# the module's input


def given(**more: Any) -> dict[str, Any]:
    """A module's arguments."""
    known = {"state_dir": "/s", "path": "a.bin", "sha256": "A" * 64, "version": "2", "tool": "storcli"}
    return {**known, "activation": "reset", **more}


def test_paths_begin_at_the_state_folder() -> None:
    """Absolute ones stay."""
    request = read_request(given(signature="b.sig", key="/k.pem", rollback=[given(version="1")]))
    assert (request.image.path, request.image.signature, request.image.key) == ("/s/a.bin", "/s/b.sig", "/k.pem")
    assert (request.image.sha256, request.rollback[0].path, request.allowed) == ("a" * 64, "/s/a.bin", None)
    assert read_request(given(**{"from": ["1"]}), check=True).allowed == ("1",)


def test_every_problem_of_the_input_is_told() -> None:
    """At once."""
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
    """A drive's tool flashes no adapter."""
    from storqual_core.firmware_tools import tool_for  # noqa: PLC0415

    assert tool_for("nvme", drives=True).__name__.endswith("nvme_firmware")
    with pytest.raises(BadInputError, match="of an adapter: found tool 'nvme', expected one of arcconf"):
        tool_for("nvme", drives=False)
