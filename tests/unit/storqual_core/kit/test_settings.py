# SPDX-License-Identifier: Apache-2.0
"""Setting names: the list itself, looking names up, checking values."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import BadInputError
from storqual_core.kit.settings import (
    COSTS,
    SECTIONS,
    SETTINGS,
    Setting,
    check_section,
    check_value,
    find,
    section_of,
)
from storqual_core.tools import qaucli

MODE_FIELDS = [setting for setting in SETTINGS.values() if setting.field is not None]


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.qualified)
def test_each_setting_is_complete(setting: Setting) -> None:
    assert setting.summary
    assert setting.section in SECTIONS
    assert setting.cost in COSTS
    assert setting.minimum is None or setting.maximum is None or setting.minimum < setting.maximum
    assert setting.choices or setting.kind != "choice"


@pytest.mark.parametrize("setting", MODE_FIELDS, ids=lambda setting: setting.name)
def test_each_mode_field_ends_inside_a_byte_range(setting: Setting) -> None:
    """A field starts at its highest bit and runs on without leaving a page of 255 bytes."""
    field = setting.field
    assert 0 <= field.bit <= 7
    assert field.byte * 8 + (7 - field.bit) + field.length <= 255 * 8
    assert setting.maximum == (1 << field.length) - 1


def test_names_are_unique_inside_a_section() -> None:
    """Two lines with one name would silently be one setting."""
    for section in SECTIONS:
        assert len(section_of(section)) == sum(setting.section == section for setting in SETTINGS.values())


@pytest.mark.skipif(shutil.which("sdparm") is None, reason="sdparm is the oracle of this test")
@pytest.mark.parametrize("transport", ["", "spi", "sas"])
def test_places_are_those_that_sdparm_knows(transport: str) -> None:
    pages = sorted({(s.field.page, s.field.subpage) for s in MODE_FIELDS})
    extra = [f"--transport={transport}"] if transport else []
    compared = 0
    for page, subpage in pages:
        argv = ["sdparm", *extra, "--enumerate", f"--page={page:#x},{subpage:#x}"]
        text = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        known = {
            name: (int(byte, 16), int(bit), int(length))
            for name, byte, bit, length in re.findall(
                r"^  (\w+)\s+\[0x([0-9a-f]+):(\d):(\d+) *\]", text, re.MULTILINE
            )
        }
        for setting in MODE_FIELDS:
            if (setting.field.page, setting.field.subpage) == (page, subpage) and setting.name in known:
                assert known[setting.name] == (setting.field.byte, setting.field.bit, setting.field.length), (
                    setting.name
                )
                compared += 1
    assert compared > (5 if transport else 100)


def test_an_unknown_name_is_told_with_the_nearest_known_one() -> None:
    with pytest.raises(BadInputError, match=r"drive\.WEC is not a known setting; did you mean .*WCE"):
        find("drive", "WEC")
    with pytest.raises(BadInputError, match="did you mean WCE"):
        find("drive", "wce")
    with pytest.raises(BadInputError, match="no section"):
        find("drives", "WCE")


def test_all_problems_of_a_section_are_told_at_once() -> None:
    with pytest.raises(BadInputError) as caught:
        check_section("drive", {"WCE": 2, "NCZ": 1, "queue_depth": 0, "scheduler": "none"})
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("section", "name", "value", "plain"),
    [
        ("drive", "WCE", True, 1),
        ("drive", "NCS", "0x10", 16),
        ("drive", "scheduler", "none", "none"),
        ("raid", "strip", "64KiB", 65536),
        ("raid", "level", 10, "10"),
        ("virtual", "iops_limit", 900, {"all": 900}),
        ("virtual", "iops_limit", {"0x5000": 900}, {"0x5000": 900}),
        ("virtual", "unplug", {"drive": "0x5000", "after_s": "1m"}, {"drive": "0x5000", "after_s": 60.0}),
        ("os", "cmdline", ["nosmt"], ["nosmt"]),
    ],
)
def test_values_get_their_plain_form(section: str, name: str, value: object, plain: object) -> None:
    assert check_value(find(section, name), value) == plain


@pytest.mark.parametrize(
    ("section", "name", "value"),
    json.loads(Path(__file__).with_name("out_of_range.json").read_text(encoding="utf-8")),
)
def test_values_that_do_not_fit_are_refused_by_name(section: str, name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{section}\.{name}: "):
        check_value(find(section, name), value)


@given(
    st.sampled_from(list(SETTINGS.values())),
    st.none() | st.booleans() | st.text() | st.integers() | st.lists(st.text()),
)
def test_no_value_gives_anything_but_a_plain_form_or_a_sentence(setting: Setting, value: object) -> None:
    try:
        plain = check_value(setting, value)
    except ValueError:
        return
    assert check_value(setting, plain) == plain


@pytest.mark.parametrize(
    ("name", "value", "words"), json.loads(Path(__file__).with_name("wrong_values.json").read_text(encoding="utf-8"))
)
def test_a_driver_build_that_is_not_whole_is_refused(name: str, value: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_value(find("driver", name), value)


def test_a_driver_build_is_taken_as_it_is_written() -> None:
    build = {"package": "/srv/x.deb", "module": "m", "version": "1.10"}
    assert check_value(find("driver", "dkms"), build) == build
    kmod = {"files": ["/srv/x.rpm"], "module": "m"}
    assert check_value(find("driver", "kmod"), kmod) == {**kmod, "as": "package"}
    disk = {"driver_disk": "/srv/x.iso", "module": "m", "version": "1.0", "as": "module"}
    assert check_value(find("driver", "kmod"), disk) == disk
    assert check_value(find("driver", "options"), {"m-x": {"p": 4, "q": True}}) == {"m_x": {"p": "4", "q": "1"}}


def test_the_five_parameters_of_the_qla1040_report_have_names_and_a_drop_sets_them() -> None:
    drop = Path(__file__).resolve().parents[4] / "inventories" / "example_lab" / "drops" / "qla1040.yml"
    declared = dict(re.findall(r"^  (\w+): (\d+)$", drop.read_text(encoding="utf-8"), re.MULTILINE))
    assert declared == {
        "fifo_threshold": "3",
        "command_completion": "1",
        "fast_memory_timing": "1",
        "completion_posting_mode": "1",
        "execution_throttle": "32",
    }
    settable = {name for name in declared if not find("nvram", name).refused}
    assert settable == set(declared) & set(qaucli.SETTINGS) == {"command_completion", "execution_throttle"}
    for name, value in declared.items():
        setting = find("nvram", name)
        assert setting.minimum is not None
        assert setting.maximum is not None
        assert setting.minimum <= int(value) <= setting.maximum
