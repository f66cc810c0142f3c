# SPDX-License-Identifier: Apache-2.0
"""Readers of boot entries, of the loader's environment and of what bootctl says of them."""

import itertools
import random
import re
from functools import cmp_to_key
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import bls, bootctl, grub
from tests.support.mangle import lost_lines, noisy
from tests.support.tool_fixtures import fixture_text, fixture_texts

ENTRY = fixture_text("bls", "written_out.conf")
RELEASES = ("6.1.0-9-amd64", "6.1.0-50-amd64", "6.1.0-56-amd64")


def newest_first(names: list[str], compare: bls.Compare) -> list[str]:
    return sorted(names, key=cmp_to_key(compare), reverse=True)


@pytest.mark.parametrize("compare", [bls.red_hat, bls.upstream])
def test_newer_kernels_come_first(compare: bls.Compare) -> None:
    names = [f"token-{release}" for release in RELEASES]
    assert newest_first(names, compare) == names[::-1]
    el = [f"a1-5.14.0-{release}.x86_64" for release in ("70.13.1.el9_0", "162.6.1.el9_1", "570.12.1.el9_6")]
    assert newest_first(el, compare) == el[::-1]


def test_where_a_trial_would_come_among_entries_of_files() -> None:
    """Why it is kept out of their folder: index 0 boots whenever the default names nothing."""
    digit, letter = "4d684a-6.1.0-50-amd64", "b4d684-6.1.0-50-amd64"
    assert newest_first([digit, "storqual-trial"], bls.upstream)[0] == "storqual-trial"
    assert newest_first([letter, "storqual-trial"], bls.upstream)[0] == "storqual-trial"
    assert newest_first([digit, "storqual-trial"], bls.red_hat)[0] == digit
    assert newest_first([letter, "storqual-trial"], bls.red_hat)[0] == "storqual-trial"


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.0~rc1", "1.0"), ("1.0", "1.0a"), ("1.a", "1.1"), ("1.9", "1.10"), ("1.0", "1.0.1"), ("a", "b")],
)
def test_rpms_comparison_of_versions(older: str, newer: str) -> None:
    assert (bls.rpm_compare(older, newer), bls.rpm_compare(newer, older)) == (-1, 1)


def test_names_that_differ_in_zeros_or_separators_are_one() -> None:
    assert bls.rpm_compare("1.01", "1_1") == 0
    assert bls.upstream("a-01", "a-1") == 0
    with pytest.raises(ToolError, match="have one name to GRUB"):
        bls.in_order([bls.parse_entry(ENTRY, f"/e/{name}.conf") for name in ("a-01", "a-1")], bls.upstream)


@given(*[st.text(alphabet="ab019.-~_+", min_size=1, max_size=12)] * 3)
def test_both_orders_are_orders(one: str, two: str, three: str) -> None:
    for compare in (bls.red_hat, bls.upstream):
        assert compare(one, two) == -compare(two, one)
        assert compare(one, one) == 0
        # what rpm takes as a segment decides what comes next, so its comparison is no order among names of all kinds
        if compare is bls.upstream and compare(one, two) <= 0 and compare(two, three) <= 0:
            assert compare(one, three) <= 0


def test_an_entry_is_what_its_file_is_called() -> None:
    entry = bls.parse_entry(ENTRY.replace("title", "id other\ntitle"), "/boot/loader/entries/token-6.1.0-56+3-1.conf")
    assert (entry.identifier, entry.base, entry.counted) == ("token-6.1.0-56+3-1", "token-6.1.0-56", True)
    assert entry.value("initrd") == "/initramfs-6.1.0-56.img $tuned_initrd"
    assert [(key.name, key.line) for key in entry.keys[:2]] == [("id", 2), ("title", 3)]
    assert bls.parse_entry(ENTRY.replace("\n", "\r\n")).keys == bls.parse_entry(ENTRY).keys


@pytest.mark.parametrize("gap", ["", "initrd", "   "])
def test_nothing_is_read_behind_a_line_without_a_value(gap: str) -> None:
    entry = bls.parse_entry(f"title a\n{gap}\nlinux /vmlinuz-1\n", "/e/a.conf")
    assert (entry.value("linux"), entry.ignored) == ("", 2)
    assert "/e/a.conf, line 2: GRUB stops reading here" in entry.problems()[1]
    assert bls.in_order([entry], bls.upstream) == []
    assert bls.parse_entry(f"title a\nlinux /vmlinuz-1\n{gap}\n").problems() == []


def test_variables_are_words_of_their_own() -> None:
    known = {"kernelopts": "root=/dev/sda  ro ", "empty": ""}
    assert bls.expand("$kernelopts ${empty} quiet", known, "x") == "root=/dev/sda ro quiet"
    for wrong in ("a=$kernelopts", "$unknown", "$", "${kernelopts", "$kernelopts,ro"):
        with pytest.raises(ToolError, match=r"^file, line 3: "):
            bls.expand(wrong, known, "file, line 3")


def test_a_recorded_environment_keeps_the_blank_at_its_end(transcripts: Path) -> None:
    read = grub.parse_environment((transcripts / "grub_editenv/el8_list_kernelopts_tuned.txt").read_text())
    assert read["kernelopts"].endswith("console=ttyS0,115200 ")
    assert (read["tuned_initrd"], read["boot_indeterminate"]) == ("", "2")


def test_a_list_of_bootctl_in_either_form() -> None:
    first, second = bootctl.parse_list(fixture_text("bootctl", "lines.txt"))
    assert (first.identifier, first.file.rpartition("/")[2], first.default) == ("a-1.conf", "a-1+3.conf", True)
    assert (second.identifier, second.file, second.reported) == ("a-1+3.conf", "", True)
    assert len(bootctl.parse_list(fixture_text("bootctl", "array.txt"))) == 1


ODD_LINES = ("\n", "\r\n", "# x\n", "$x\n", "linux\n", "\x1b[31m\n")
ODD_CHARACTERS = ("\t", " ", "\0", "$", "\\", "=", "#", "\ufffd", "é", "+3")


def test_ten_thousand_changed_entries_are_read_as_they_stand_or_refused() -> None:
    chance = random.Random(35)
    texts = [ENTRY, *fixture_texts("bls")]
    read = refused = 0
    for number in range(10_000):
        text = lost_lines(chance.choice(texts), chance)
        if number % 3:
            text = noisy(text, chance, ODD_LINES, ODD_CHARACTERS)
        try:
            entry = bls.parse_entry(text, "/e/x.conf")
        except ToolError as problem:
            assert re.match(r"/e/x\.conf.* line \d+ ", str(problem)), number  # noqa: PT017 - one of many
            refused += 1
            continue
        read += 1
        lines = text.replace("\r", "").split("\n")
        for key in entry.keys:
            assert re.fullmatch(rf"[ \t]*{re.escape(key.name)}[ \t]+{re.escape(key.value)}", lines[key.line - 1])
        # each line before the end is a key, a remark, or where reading stopped
        last = entry.ignored or len(lines) + 1
        kept = {key.line for key in entry.keys}
        for at, line in enumerate(lines[: last - 1], start=1):
            assert at in kept or not line.strip(" \t") or line.strip(" \t").startswith("#") or " " not in line.strip()
    assert min(read, refused) > 1000


def block(variables: dict[str, str]) -> bytes:
    body = "".join(
        f"{name}={value}\n".replace("\\", "\\\\").replace("\n", "\\\n")[:-2] + "\n"
        for name, value in variables.items()
    )
    return f"# GRUB Environment Block\n{body}".encode().ljust(1024, b"#")


def test_ten_thousand_changed_environments_are_read_as_they_stand_or_refused() -> None:
    chance = random.Random(53)
    read = refused = 0
    for _ in range(10_000):
        names = chance.sample(["saved_entry", "next_entry", "kernelopts", "tuned_params", "boot_counter"], 3)
        values = ["", "a-1", "root=/dev/sda ro ", "a\\b", "two\nlines", "x" * chance.randrange(250)]
        variables = {name: chance.choice(values) for name in names}
        data = bytearray(block(variables))
        assert grub.read_block(bytes(data)).variables == variables
        for _ in range(chance.randint(1, 3)):
            how = chance.randrange(4)
            at = chance.randrange(len(data))
            if how == 0:
                data[at] = chance.choice(b"\n#=\\\0\xffa")
            elif how == 1:
                del data[at : at + chance.randrange(3)]
            elif how == 2:
                data[at:at] = chance.choice([b"", b"\n", b"a=1\n", b"#"])
            else:
                at = chance.randrange(100)
                data[at] = chance.randrange(256)
        try:
            found = grub.read_block(bytes(data), "/g/grubenv")
        except ToolError as problem:
            assert str(problem).startswith("/g/grubenv")  # noqa: PT017 - one of many
            refused += 1
            continue
        read += 1
        # a reader of another make: character by character
        assert found.variables == _plain_reader(bytes(data).decode("latin-1"))
        assert found.free == len(list(itertools.takewhile(lambda byte: byte == ord("#"), reversed(data))))
    assert min(read, refused) > 1000


def _plain_reader(text: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    characters = iter(text)
    while True:
        line, first, remark = "", True, False
        for char in characters:
            if char == "\n":
                break
            remark = remark or (first and char == "#")
            first = False
            line += next(characters, "") if char == "\\" else char
        else:
            return variables
        if not remark and "=" in line:
            name, _, value = line.partition("=")
            variables[name] = value


def test_texts_in_efi_variables() -> None:
    data = "a-1.conf\0b+3.conf\0".encode("utf-16-le")
    assert bootctl.decode_strings(data, "LoaderEntries") == ["a-1.conf", "b+3.conf"]
    for wrong in (data[:-1], b"\x00\xd8\x00\x00"):
        with pytest.raises(ToolError, match="EFI variable LoaderEntries"):
            bootctl.decode_strings(wrong, "LoaderEntries")
