# SPDX-License-Identifier: Apache-2.0
"""Every word of the vocabulary reaches something that brings it about, or is refused before a bench is touched."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.campaign.declared import resolve_drop
from storqual.cli.playbook import next as next_command
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.settings import SETTINGS, Setting, section_of
from storqual_core.provision import apply as apply_file
from storqual_core.provision import boot, driver_build
from storqual_core.provision.adapter_queue import provision_throttle
from storqual_core.provision.driver import PARAMETERS
from storqual_core.provision.drives import EFFECTS, LOGINS, DriveSettings
from storqual_core.provision.firmware import flash
from storqual_core.provision.logins import Sessions
from storqual_core.provision.mode_pages import LinkRates
from storqual_core.provision.multipath import NAMES, Overrides
from storqual_core.provision.nvram import SHOWN, THROTTLE
from storqual_core.provision.options import provision_options
from storqual_core.provision.os_tuning import judge_frequency, judge_interrupts
from storqual_core.provision.raid.volume_plan import POLICIES, DeclaredVolume
from storqual_core.tools import TOOLS
from tests.support.make_lab import lab_hosts

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
SHA = "a" * 64
VALUES: dict[str, Any] = {
    "drive.link_rate": "3.0 Gbit",
    "raid.members": ["B1SYM0000", "B1SYM0001"],
    "raid.hot_spares": ["B1SYM0002"],
    "os.irq_affinity": {"sym": [0]},
    "os.cmdline": ["quiet"],
    "raid.tool": "storcli",
    "driver.kernel": {"package": "linux-image-6.1.0-1-amd64"},
    "driver.dkms": {"package": "x.deb", "module": "sym53c8xx"},
    "driver.kmod": {"files": ["x.rpm"], "module": "sym53c8xx"},
    "driver.module": {"file": "x.ko", "sha256": SHA},
    "driver.can_queue": 64,
    "driver.options": {"sym53c8xx": {"cmd_per_lun": 4}},
    "virtual.unplug": {"drive": "B1SYM0000", "after_s": 1},
}


def value_of(setting: Setting) -> Any:
    if setting.qualified in VALUES:
        return VALUES[setting.qualified]
    if setting.choices:
        return setting.choices[-1]
    return "1" if setting.kind == "text" else setting.maximum


def declared_for(folder: Path, drop: dict[str, Any]) -> dict[tuple[str, str], Any]:
    hosts = lab_hosts({"sym": 4})
    hosts["b1"]["storqual_adapters"]["sym"]["driver"] = "vmw_pvscsi"
    (folder / "drops").mkdir(parents=True, exist_ok=True)
    listed = {"benches": {"hosts": list(hosts)}, "_meta": {"hostvars": dict(hosts)}}
    (folder / "hosts.json").write_text(json.dumps(listed))
    (folder / "drops" / "it.yml").write_text(json.dumps(drop))
    declared = resolve_drop([folder / "hosts.json"], "b1", "it")["declared"]
    named = {section: value if isinstance(value, dict) else {"": value} for section, value in declared.items()}
    return {(section, name): value for section, values in named.items() for name, value in values.items()}


def drop_with(setting: Setting) -> tuple[dict[str, Any], dict[str, Any]]:
    """A drop that declares a setting, and the same without it."""
    section, name, value = setting.section, setting.name, value_of(setting)
    if section == "firmware":
        image = {"file": "x", "sha256": SHA, "version": "2", "tool": "storcli", "activation": "reset"}
        return {"firmware": [{**image, "component": name}]}, {}
    if section != "raid":
        return {section: {name: value}}, {}
    volume = {"level": "1", "members": VALUES["raid.members"]}
    return {"raid": [{**volume, name: value}]}, {"raid": [volume]} if name not in volume else {}


WHILE_MEASURING = "virtual.unplug"
"""What happens while a block runs is not provisioned: the step that measures it is told (`storqual next`)."""


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != WHILE_MEASURING])
def test_every_setting_is_read_where_a_bench_is_provisioned_or_is_refused_with_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storqual.campaign.declared.drop_problems", lambda _file, _lab: ())
    setting = SETTINGS[name]
    declared, without = drop_with(setting)
    if setting.refused:
        with pytest.raises(BadInputError, match=re.escape(f"{name}: {setting.refused}")):
            declared_for(tmp_path, declared)
        return
    mine, other = declared_for(tmp_path / "a", declared), declared_for(tmp_path / "b", without)
    different = [key for key in mine if mine[key] != other[key]]
    assert different, f"{name} is accepted, and no bench gets it"
    tasks = "".join(path.read_text() for path in (REPOSITORY / "roles").glob("*/tasks/*.yml"))
    applied = Path(str(apply_file.__file__)).read_text(encoding="utf-8")
    for section, key in different:
        assert f'["{key or section}"]' in applied or f"declared.{section}.{key}" in tasks, (section, key)


SHOWN_ELSEWHERE = {
    "drive.link_rate": LinkRates.prove,
    **{f"drive.{name}": Sessions.prove for name in LOGINS},
    "os.nr_requests": EFFECTS["nr_requests"],
    "os.governor": judge_frequency,
    "os.irq_affinity": judge_interrupts,
    "nvram.execution_throttle": provision_throttle,
    **{name: Overrides.prove for name in SETTINGS if name.startswith("multipath.")},
    "driver.kernel": boot.verify_trial,
    "driver.dkms": driver_build.records,
    "driver.kmod": driver_build.records,
    "driver.module": driver_build.records,
    "driver.can_queue": provision_throttle,
    "driver.options": provision_options,
    "firmware.firmware": flash.prove,
    "firmware.bios": flash.prove,
}
"""What shows the settings that are no drive's and no word of an NVRAM."""


def test_the_vocabulary_promises_only_proofs_that_exist() -> None:
    promised = {name for name, setting in SETTINGS.items() if setting.proof}
    drives = {f"drive.{name}" for name in EFFECTS}
    words = {f"nvram.{name}" for _, name in SHOWN}
    assert promised == drives | words | set(SHOWN_ELSEWHERE)


def test_every_drive_setting_has_a_way_to_be_written() -> None:
    subsystem = DriveSettings()
    pages = {name for name, setting in section_of("drive").items() if setting.field is not None}
    for name in section_of("drive"):
        assert isinstance(subsystem.together(name), tuple) == (name in pages)


def test_every_nvram_word_has_a_tool_that_writes_it_or_is_refused() -> None:
    kept = {
        name for tool in TOOLS for name, spelling in getattr(TOOLS[tool](), "SETTINGS", {}).items() if spelling.write
    }
    assert {name for name, setting in section_of("nvram").items() if not setting.refused} == kept & set(
        section_of("nvram")
    )
    assert THROTTLE in kept
    assert any(parameter.scope == "lun" for parameter in PARAMETERS)


def test_every_word_of_a_volume_is_part_of_its_layout_or_a_policy() -> None:
    wish = DeclaredVolume(
        "a", "5", ("x", "y", "z"), 65536, "n", "full", ("s",), dict.fromkeys(POLICIES, 1), "storcli"
    )
    handled = {*wish.declared(), "initialisation", "tool"}
    assert handled == set(section_of("raid"))


def test_what_is_to_happen_while_a_block_runs_is_told_with_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SimpleNamespace(id="s01", bench="b1", configuration="candidate")
    spec = {"virtual": {"unplug": VALUES[WHILE_MEASURING]}}
    run = SimpleNamespace(sessions=[session], document={"provision": {"b1": {"candidate": spec}}})
    monkeypatch.setattr(next_command, "read_run", lambda _path: run)
    assert next_command._disturbance(tmp_path, "b1", "s01") == VALUES[WHILE_MEASURING]


def test_every_word_of_multipath_is_one_that_is_written() -> None:
    assert set(section_of("multipath")) == set(NAMES)
