# SPDX-License-Identifier: Apache-2.0
"""Module options: refused, loaded, kept, proven, taken back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.errors import BadInputError, GuardRefusalError, StorqualError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError
from storqual_core.provision import adapter_queue, driver, options
from storqual_core.provision.adapter_queue import ThrottleRequest, provision_throttle
from storqual_core.provision.boot import System
from storqual_core.provision.engine import Call
from storqual_core.provision.options import ModulePlan, OptionsBench, OptionValue, boot_arguments, provision_options
from storqual_core.provision.queue import InFlight
from storqual_core.provision.restore import Tools, restore
from tests.support.adapter_bench import KERNEL, AdapterBench

PCI, WWN = "0000:00:05.0", "0x5000c50015ea0000"
CLAIM = {"wwn": WWN, "serial": WWN[-6:], "vendor": "SEAGATE", "model": "ST336607LW", "size": "20MiB", "claim": True}
ADAPTERS = {"sym": {"pci": PCI, "driver": "sym53c8xx", "drives": [CLAIM]}}
FOUR: dict[str, Any] = {"sym53c8xx": {"cmd_per_lun": 4}}


@pytest.fixture
def bench(tmp_path: Path) -> AdapterBench:
    """A Symbios adapter with one drive; its module hides one parameter and shows another."""
    made = AdapterBench(
        tmp_path / "root", modules={"sym53c8xx": {"cmd_per_lun": None, "safe": "0"}, "scsi_mod": {"scan": "async"}}
    )
    made.adapter(PCI, "sym53c8xx")
    made.drive("sda", PCI, 0, WWN)
    made.load("scsi_mod")
    made.tree.write("/sys/module/scsi_mod/holders/sym53c8xx", "")
    return made


def provide(bench: AdapterBench, options: dict[str, Any], **more: Any) -> dict[str, Any]:
    call = Call(str(bench.root / "state"), "r1", **more)
    return provision_options(options, call, OptionsBench(bench, bench.machine))


def put_back(bench: AdapterBench, *, check: bool = False) -> dict[str, Any]:
    """One call of the restore module's work."""
    tools = Tools(bench, System(bench), machine=bench.machine)
    return restore(str(bench.root / "state"), tools, check=check)


def test_an_option_is_loaded_kept_and_found_the_second_time(bench: AdapterBench) -> None:
    """The module is loaded with it first; then the file says so; then there is nothing to do."""
    first = provide(bench, FOUR)
    assert first["changed"]
    assert first["drift"] == ["module option sym53c8xx.cmd_per_lun: not set, declared 4"]
    assert bench.given["sym53c8xx"] == {"cmd_per_lun": "4"}
    assert (bench.modprobe_file() or "").splitlines()[1:] == ["options sym53c8xx cmd_per_lun=4"]
    (entry,) = first["settings"]
    assert (entry["declared"], entry["before"], entry["read_back"], entry["changed"]) == ("4", None, "4", True)
    loads = [line for line in bench.seen if line.startswith("modprobe sym")]
    second = provide(bench, FOUR)
    assert (second["changed"], second["steps"], second["drift"]) == (False, [], [])
    assert (
        [line for line in bench.seen if line.startswith("modprobe sym")]
        == loads
        == ["modprobe sym53c8xx cmd_per_lun=4"]
    )


def test_what_the_module_shows_is_proven(bench: AdapterBench) -> None:
    """The kernel's own word for it."""
    (entry,) = provide(bench, {"sym53c8xx": {"safe": True}})["settings"]
    assert (entry["before"], entry["read_back"], entry["proven"]) == ("0", "1", True)


def test_check_mode_touches_nothing(bench: AdapterBench) -> None:
    result = provide(bench, FOUR, check=True)
    assert (result["changed"], len(result["drift"])) == (True, 1)
    assert result["diff"] == {
        "before": "module option sym53c8xx.cmd_per_lun: not set\n",
        "after": "module option sym53c8xx.cmd_per_lun: 4\n",
    }
    assert bench.modprobe_file() is None
    assert not (bench.root / "state").exists()
    assert all(line.startswith(("modinfo", "modprobe --showconfig")) for line in bench.seen)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sym53c8xx": {"cmd_per_lum": 4}}, "has no parameter cmd_per_lum; did you mean cmd_per_lun?"),
        ({"sym53c8xx": {"cmd_per_lun": 65}}, "takes 0 to 64, 65 is declared"),
        ({"sym53c8xx": {"cmd_per_lun": "many"}}, "is a number"),
        ({"nosuch": {"a": 1}}, f"kernel {KERNEL} has no module nosuch"),
        ({"scsi_mod": {"scan": "sync"}}, "it takes a boot with scsi_mod.scan=sync on the kernel's command line"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    bench: AdapterBench, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolError, match=words.replace("?", "\\?")):
        provide(bench, {"sym53c8xx": {"safe": 1}, **options})
    assert bench.modprobe_file() is None
    assert bench.given == {}


def test_a_drive_in_use_is_refused_by_the_guard(bench: AdapterBench) -> None:
    """Loading the driver again would take it away."""
    bench.tree.mount(bench.machine.text("/sys/block/sda/dev"), "/data")
    with pytest.raises(
        GuardRefusalError, match=r"is mounted on /data \(ext4\); reloading sym53c8xx unloads it for a moment"
    ):
        provide(bench, FOUR)
    assert bench.given == {}


def test_a_disk_of_the_system_takes_a_boot(bench: AdapterBench) -> None:
    bench.tree.mount(bench.machine.text("/sys/block/sda/dev"), "/boot")
    asked = FOUR, OptionsBench(bench, bench.machine), str(bench.root / "state")
    assert boot_arguments(*asked) == ["sym53c8xx.cmd_per_lun=4"]
    with pytest.raises(ToolError, match="carries /boot"):
        provide(bench, FOUR)
    bench.tree.write("/proc/cmdline", "root=/dev/vda1 sym53c8xx.cmd_per_lun=4\n")
    assert not provide(bench, FOUR)["changed"]
    assert boot_arguments(*asked) == ["sym53c8xx.cmd_per_lun=4"]
    assert bench.modprobe_file() is None


def test_another_value_on_the_command_line_is_told(bench: AdapterBench) -> None:
    """It would hold over the file."""
    bench.tree.write("/proc/cmdline", "sym53c8xx.cmd_per_lun=8\n")
    with pytest.raises(ToolError, match="is 8 on the kernel's command line, which holds over modprobe's files"):
        provide(bench, FOUR)


def test_a_load_that_fails_says_what_was_done(bench: AdapterBench) -> None:
    bench.broken = ("modprobe sym53c8xx",)
    with pytest.raises(PartialError, match="ended with status 1: it broke"):
        provide(bench, FOUR)
    assert bench.modprobe_file() is None
    bench.broken = ()
    bench.load("sym53c8xx")
    assert provide(bench, FOUR)["changed"]


def test_everything_is_put_back(bench: AdapterBench) -> None:
    provide(bench, {"sym53c8xx": {"cmd_per_lun": 4, "safe": 1}})
    assert put_back(bench, check=True)["changed"]
    assert bench.modprobe_file() is not None
    result = put_back(bench)
    assert result["restored"]
    assert bench.modprobe_file() is None
    assert bench.given["sym53c8xx"] == {}
    assert read_saved(bench.root / "state") is None
    assert not put_back(bench)["changed"]


def test_a_file_that_was_there_is_put_back_as_it_was(bench: AdapterBench) -> None:
    text = "# kept by an earlier set-up\noptions sym53c8xx safe=1\n"
    bench.tree.write("/etc/modprobe.d/zz-storqual.conf", text)
    bench.given["sym53c8xx"] = {"safe": "1"}
    bench.load("sym53c8xx")
    provide(bench, FOUR)
    assert "options sym53c8xx cmd_per_lun=4 safe=1" in (bench.modprobe_file() or "")
    put_back(bench)
    assert bench.modprobe_file() == text
    assert bench.given["sym53c8xx"] == {"safe": "1"}


def test_options_that_the_next_drop_does_not_declare_go_again(bench: AdapterBench) -> None:
    provide(bench, FOUR)
    result = provide(bench, {})
    assert result["changed"]
    assert bench.modprobe_file() is None
    assert bench.given["sym53c8xx"] == {}
    assert not provide(bench, {})["changed"]


def test_a_restore_that_cannot_load_the_module_keeps_the_memory(bench: AdapterBench) -> None:
    provide(bench, FOUR)
    bench.broken = ("modprobe -r",)
    with pytest.raises(StorqualError, match="it broke"):
        put_back(bench)
    assert read_saved(bench.root / "state") is not None


@contextmanager
def access(claims: Any, state_dir: str, run: str) -> Iterator[dict[str, DriveTarget]]:
    yield {claim.id: DriveTarget(claim.id, "sda", "/dev/sg0") for claim in claims}


def throttle(bench: AdapterBench, value: int, **more: Any) -> dict[str, Any]:
    """One call with a throttle for the adapter."""
    request = ThrottleRequest({"sym": value}, {}, ADAPTERS, str(bench.root / "state"), "r1", **more)
    return provision_throttle(request, OptionsBench(bench, bench.machine), access)


def test_a_throttle_is_the_drivers_own_parameter(bench: AdapterBench) -> None:
    bench.set_queue("sda", 4, "simple")
    (entry,) = throttle(bench, 4)["settings"]
    assert entry["name"] == "driver.options.sym53c8xx.cmd_per_lun"
    assert (entry["proven"], entry["proof"]) == (True, "the driver gave 1 of 1 drives a queue depth of 4")


@pytest.mark.parametrize(("depth", "proven"), [(16, False), (2, None)])
def test_a_depth_that_the_driver_did_not_give_is_no_proof(
    bench: AdapterBench, depth: int, proven: bool | None
) -> None:
    bench.set_queue("sda", depth, "simple")
    assert throttle(bench, 4)["settings"][0]["proven"] is proven


@pytest.mark.parametrize(("highest", "proven"), [(4, True), (9, False), (1, None)])
def test_the_commands_in_flight_are_the_proof(
    bench: AdapterBench, monkeypatch: pytest.MonkeyPatch, highest: int, proven: bool | None
) -> None:
    bench.set_queue("sda", 4, "simple")
    monkeypatch.setattr(
        adapter_queue, "observe_in_flight", lambda _node, offered, _seconds, _sysfs: InFlight({highest: 500}, offered)
    )
    assert throttle(bench, 4, prove_s=1.0)["settings"][0]["proven"] is proven


def test_a_driver_without_such_a_parameter_is_told(bench: AdapterBench) -> None:
    bench.adapter("0000:00:07.0", "megaraid_sas")
    adapters = {"mraid": {"pci": "0000:00:07.0", "driver": "megaraid_sas"}}
    request = ThrottleRequest({"mraid": 4}, {}, adapters, str(bench.root / "state"), "r1")
    with pytest.raises(BadInputError, match=r"declare drive\.queue_depth"):
        provision_throttle(request, OptionsBench(bench, bench.machine), access)


def test_an_option_by_its_own_name_holds_over_a_throttle(bench: AdapterBench) -> None:
    request = ThrottleRequest(
        {"sym": 4}, {"sym53c8xx": {"cmd_per_lun": 8}}, ADAPTERS, str(bench.root / "state"), "r1"
    )
    (entry,) = provision_throttle(request, OptionsBench(bench, bench.machine), access)["settings"]
    assert (entry["declared"], bench.given["sym53c8xx"]) == ("8", {"cmd_per_lun": "8"})


def test_a_throttle_of_an_adapter_that_is_not_there_is_bad_input(bench: AdapterBench) -> None:
    with pytest.raises(BadInputError, match="is no adapter of this bench's inventory"):
        provision_throttle(
            ThrottleRequest({"nosuch": 4}, {}, ADAPTERS, "", ""), OptionsBench(bench, bench.machine), access
        )


@pytest.mark.parametrize(
    ("loaded", "configured", "told"),
    [
        ("8", "4", "sym53c8xx.cmd_per_lun was set to 4 and reads back 8"),
        (
            "4",
            "8",
            "sym53c8xx.cmd_per_lun is 4 in /etc/modprobe.d/storqual.conf, and another file of modprobe makes it 8",
        ),
        ("4", None, "and another file of modprobe makes it None"),
    ],
)
def test_an_option_that_is_not_in_effect_or_would_not_be_after_the_next_load_is_told(
    loaded: str, configured: str | None, told: str
) -> None:
    bench = SimpleNamespace(file="/etc/modprobe.d/storqual.conf")
    value = OptionValue("cmd_per_lun", "4", loaded, configured, None)
    with pytest.raises(PartialError) as wrong:
        options._refuse_unlike(cast("OptionsBench", bench), [ModulePlan("sym53c8xx", (value,), loaded=True)], [], [])
    assert told in str(wrong.value)


def test_an_option_that_is_loaded_and_configured_as_declared_is_no_fault() -> None:
    value = OptionValue("cmd_per_lun", "4", "4", "4", None)
    options._refuse_unlike(cast("OptionsBench", None), [ModulePlan("sym53c8xx", (value,), loaded=True)], [], [])


def test_who_looks_at_a_drive_for_a_moment_is_waited_for(
    bench: AdapterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As udev does with every drive that was written: modprobe would refuse."""
    uses = iter(("2", "1", "0"))
    place = bench.root / "sys/module/sym53c8xx/refcnt"
    place.write_text("2\n")
    monkeypatch.setattr(driver.time, "sleep", lambda _seconds: place.write_text(f"{next(uses)}\n"))
    driver.reload_module(bench.machine, bench, "sym53c8xx")
    assert next(uses, None) is None
    assert bench.seen[-2:] == ["modprobe -r sym53c8xx", "modprobe sym53c8xx"]


def test_who_stays_is_left_to_modprobe_to_refuse(bench: AdapterBench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.root / "sys/module/sym53c8xx/refcnt").write_text("1\n")
    monkeypatch.setattr(driver, "_BUSY_S", 0.2)
    bench.broken = ("modprobe -r",)
    with pytest.raises(ToolError, match="it broke"):
        driver.reload_module(bench.machine, bench, "sym53c8xx")
