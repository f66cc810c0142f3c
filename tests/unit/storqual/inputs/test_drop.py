# SPDX-License-Identifier: Apache-2.0
"""Drop manifests: settings in plain form, and every mistake told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.inputs import load_drop
from storqual_core.kit.errors import BadInputError


def write(folder: Path, text: str) -> Path:
    path = folder / "x.yml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> list[str]:
    """What is said of a drop, without the folder."""
    with pytest.raises(BadInputError) as caught:
        load_drop(write(folder, text))
    return [problem.replace(f"{folder}/", "") for problem in caught.value.problems]


def test_a_section_is_a_mapping_or_a_list(tmp_path: Path) -> None:
    drop = load_drop(
        write(tmp_path, "drive:\n  - {WCE: 1}\n  - on: {model: ST3*}\n    WCE: 0\nnvram: {max_tags: 16}\n")
    )
    assert [(section, on.model, name, value) for section, on, name, value in drop.settings()] == [
        ("nvram", None, "max_tags", 16),
        ("drive", None, "WCE", 1),
        ("drive", ("ST3*",), "WCE", 0),
    ]


def test_values_are_plain(tmp_path: Path) -> None:
    drop = load_drop(
        write(tmp_path, "drive: {WCE: true}\nraid: {level: 5, strip: 64k}\nvirtual: {iops_limit: 900}\n")
    )
    found = {name: value for _, _, name, value in drop.settings()}
    assert found == {"WCE": 1, "level": "5", "strip": 65536, "iops_limit": {"all": 900}}
    assert all(type(value) in (int, str, dict) for value in found.values())


def test_an_empty_drop_is_a_drop(tmp_path: Path) -> None:
    drop = load_drop(write(tmp_path, "# nothing\n"))
    assert (drop.name, list(drop.settings())) == ("x", [])


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = """\
drvier: {kernel: {package: x}}
drive:
  WCE: 2
  WCEE: 1
  on: {adaptor: sym}
nvram: 7
firmware:
  file: x.bin
  sha256: abc
  tool: storcli
  activation: now
"""
    assert problems(tmp_path, text) == [
        (
            "x.yml:1: unknown key 'drvier' (did you mean 'driver'?); expected one of description, drive, "
            "driver, firmware, name, nvram, os, raid, virtual"
        ),
        "x.yml:3: drive.WCE: 2 is above 1; expected flag from 0 to 1: write cache enable (caching page)",
        "x.yml:4: unknown setting drive.WCEE (did you mean 'WCE'?)",
        "x.yml:5: unknown key 'adaptor' (did you mean 'adapter'?); expected one of adapter, drives, model",
        "x.yml:6: found 7 in nvram, expected a mapping",
        "x.yml:9: found 'abc' in firmware.sha256, expected a SHA-256 of 64 hexadecimal digits",
        "x.yml:11: found 'now' in firmware.activation, expected one of none, reset, reboot or power cycle",
    ]


def test_the_manifest_survives_json(tmp_path: Path) -> None:
    text = f"""\
firmware: {{file: x.bin, sha256: {"a" * 64}, tool: storcli, from: [1.0, "2.0"], activation: power cycle}}
drive: {{on: {{adapter: sym}}, WCE: 0}}
"""
    assert load_drop(write(tmp_path, text)).to_json() == {
        "drive": [{"on": {"adapter": ["sym"]}, "WCE": 0}],
        "firmware": [
            {
                "file": "x.bin",
                "sha256": "a" * 64,
                "tool": "storcli",
                "from": ["1.0", "2.0"],
                "activation": "power cycle",
            }
        ],
    }
