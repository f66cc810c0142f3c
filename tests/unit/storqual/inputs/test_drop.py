# SPDX-License-Identifier: Apache-2.0
"""Drop manifests: settings in plain form, and every mistake told at once."""

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
    text = Path(__file__).with_suffix(".mistakes").read_text(encoding="utf-8")
    assert problems(tmp_path, text) == [
        (
            "x.yml:1: unknown key 'drvier' (did you mean 'driver'?); expected one of description, drive, "
            "driver, firmware, multipath, name, nvram, os, raid, virtual"
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


EL = "5.14.0-570.12.1.el9_6"
CORE, MODULES = f"kernel-core-{EL}.x86_64.rpm", f"kernel-modules-{EL}.x86_64.rpm"


@pytest.mark.parametrize(
    "files",
    [
        [CORE, MODULES],
        [f"kernel-uek-core-{EL}.x86_64.rpm", f"drops/kernel-uek-modules-core-{EL}.x86_64.rpm"],
        ["kernel-default-6.4.0-150600.23.1.x86_64.rpm", "kernel-firmware-6.4.0-150600.23.1.noarch.rpm"],
        ["linux-image-6.1.0-47-amd64_6.1.170-3_amd64.deb"],
        # names that follow no rule are judged by what is in them, on the bench
        ["candidate.rpm"],
    ],
)
def test_a_kernel_may_be_the_files_of_its_packages(tmp_path: Path, files: list[str]) -> None:
    drop = load_drop(write(tmp_path, f"driver: {{kernel: {{files: {files}}}}}\n"))
    assert [value for *_, value in drop.settings()] == [{"files": files}]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("{package: kernel, files: [a.rpm]}", "not both"),
        ("{version: 6.1}", "needs package or files"),
        ("{files: []}", "no file"),
        (f"{{files: {CORE}}}", "not a list"),
        ("{files: [vmlinuz]}", "vmlinuz: expected package files"),
        ("{files: [a.rpm, b.deb]}", "all .rpm or all .deb"),
        (f"{{files: [{CORE}, kernel-modules-5.14.0-70.el9.x86_64.rpm]}}", ": 5.14.0-570.12.1.el9_6, 5.14.0-70.el9"),
        (f"{{files: [{CORE}, {MODULES.replace('x86_64', 'aarch64')}]}}", ": aarch64, x86_64"),
        (f"{{files: [{CORE}]}}", "kernel-core comes without its modules"),
        (f"{{files: [{MODULES}, kernel-devel-{EL}.x86_64.rpm]}}", "no kernel is among"),
    ],
)
def test_files_that_are_not_one_kernel_are_refused(tmp_path: Path, kernel: str, words: str) -> None:
    (problem,) = problems(tmp_path, f"driver: {{kernel: {kernel}}}\n")
    assert problem.startswith("x.yml:1: driver.kernel: ")
    assert words in problem
