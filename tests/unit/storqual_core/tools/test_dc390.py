# SPDX-License-Identifier: Apache-2.0
"""The EEPROM of a DC-390: bits on lines, words, checksum, settings."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import BadInputError, ToolError
from storqual_core.tools import dc390
from storqual_core.tools import dc390 as eeprom_93c46
from storqual_core.tools.dc390 import NAMES, SIZE, EepromImage, read_words, unfit, write_words
from tests.support.fake_eeprom import Chip, factory_image, fit
from tests.support.replay import Replay

PCI = "0000:00:08.0"
NOBODY = Replay([])


def test_every_word_is_read_from_its_place() -> None:
    words = [address * 257 + 3 for address in range(64)]
    assert read_words(Chip(words=list(words))) == tuple(words)


@given(st.dictionaries(st.integers(0, 63), st.integers(0, 0xFFFF), max_size=4))
def test_any_word_can_be_written_and_others_stay(changes: dict[int, int]) -> None:
    """A word is erased first: a chip that only clears bits would keep the old zeros."""
    chip = Chip()
    before = list(chip.words)
    write_words(chip, changes)
    assert chip.words == [changes.get(address, word) for address, word in enumerate(before)]
    assert not chip.enabled


def test_writing_is_disabled_again_after_a_failure() -> None:
    chip = Chip(dies_after=1)
    with pytest.raises(OSError, match="Input/output"):
        write_words(chip, {3: 5})
    assert not chip.enabled


def test_a_chip_that_never_gets_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eeprom_93c46, "_PROGRAM_LIMIT_S", 0.0)
    chip = Chip()
    monkeypatch.setattr(chip, "data_out", lambda: 0)
    with pytest.raises(ToolError, match="did not finish word 3"):
        write_words(chip, {3: 5})


def test_the_settings_of_a_card_as_shipped_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fit(monkeypatch, Chip())
    expected = {"host_scsi_id": 7, "max_tags": 32, "scsi_parity": 1, "scsi_bus_reset": 1}
    assert dc390.read_settings(NOBODY, PCI) == expected


@pytest.mark.parametrize(
    ("name", "value"), [("host_scsi_id", 6), ("max_tags", 2), ("scsi_parity", 0), ("scsi_bus_reset", 0)]
)
def test_one_setting_is_written_and_only_it_changes(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    chip = fit(monkeypatch, Chip())
    before = dc390.read_settings(NOBODY, PCI)
    dc390.write_setting(NOBODY, PCI, name, value)
    assert dc390.read_settings(NOBODY, PCI) == {**before, name: value}
    assert chip.programmed[-1] == 63
    dc390.write_setting(NOBODY, PCI, name, before[name])
    assert dc390.read_image(PCI) == factory_image()


def test_what_is_there_already_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = fit(monkeypatch, Chip())
    assert dc390.write_image(PCI, factory_image()) == 0
    assert chip.programmed == []


def test_a_word_that_does_not_take_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fit(monkeypatch, Chip(stuck=(32,)))
    with pytest.raises(ToolError, match="does not hold what was written \\(words 32\\)"):
        dc390.write_setting(NOBODY, PCI, "host_scsi_id", 5)


def test_half_a_write_shows_itself_and_the_saved_image_repairs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checksum no longer fits, so the driver would use its defaults and the settings are refused."""
    chip = fit(monkeypatch, Chip(dies_after=2))
    with pytest.raises(ToolError):
        dc390.write_setting(NOBODY, PCI, "host_scsi_id", 5)
    with pytest.raises(ToolError, match=r"restore\.yml writes the saved image back"):
        dc390.read_settings(NOBODY, PCI)
    chip.dies_after = None
    dc390.write_image(PCI, EepromImage.of_hex(factory_image().hex))
    assert dc390.read_settings(NOBODY, PCI)["host_scsi_id"] == 7


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("host_scsi_id", 8, "not a SCSI id"), ("max_tags", 5, "power of two"), ("max_tags", 64, "power of two")],
)
def test_a_value_that_does_not_fit_is_refused(name: str, value: int, words: str) -> None:
    assert words in dc390.objection(NOBODY, PCI, name, value)
    with pytest.raises(BadInputError, match=words):
        factory_image().with_values({name: value})


def test_a_name_that_is_not_in_the_eeprom_is_refused() -> None:
    with pytest.raises(BadInputError, match="frame_size is not in the EEPROM"):
        factory_image().with_values({"frame_size": 2048})


@given(st.binary(min_size=SIZE, max_size=SIZE))
def test_any_image_is_read_or_refused_with_a_sentence(data: bytes) -> None:
    image = EepromImage(data)
    assert EepromImage.of_hex(image.hex) == image == EepromImage.of_words(image.words)
    try:
        values = image.values()
    except ToolError:
        return
    assert set(values) == set(NAMES)


@given(st.binary(min_size=SIZE, max_size=SIZE), st.integers(0, 7), st.sampled_from([2, 4, 8, 16, 32]))
def test_an_image_with_new_values_is_always_valid(data: bytes, own: int, tags: int) -> None:
    image = EepromImage(data).with_values({"host_scsi_id": own, "max_tags": tags, "scsi_parity": 1})
    assert image.valid
    assert unfit("max_tags", tags) == ""
    assert (image.values()["host_scsi_id"], image.values()["max_tags"]) == (own, tags)


def test_a_text_that_is_no_image_is_refused() -> None:
    for text in ("zz", "00" * 5):
        with pytest.raises(ToolError, match="cannot be used"):
            EepromImage.of_hex(text)


def test_another_chip_is_not_touched(tmp_path: Path) -> None:
    """Register 0x80 of another adapter may mean anything."""
    device = tmp_path / "bus" / "pci" / "devices" / PCI
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1000\n")
    (device / "device").write_text("0x0012\n")
    (device / "config").write_bytes(bytes(256))
    with pytest.raises(ToolError, match="is not a Tekram DC-390"):
        dc390.read_image(PCI, str(tmp_path))
    assert (device / "config").read_bytes() == bytes(256)


def test_the_registers_of_the_chip_are_those_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte at a time: 0x80 for the lines, 0xc0 to deselect, byte 0 for the output."""
    device = tmp_path / "bus" / "pci" / "devices" / PCI
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1022\n")
    (device / "device").write_text("0x2020\n")
    (device / "config").write_bytes(bytes(256))
    chip = Chip()

    def pwrite(_handle: int, data: bytes, place: int) -> int:
        (byte,) = data
        if place == 0x80:
            chip.drive(byte >> 7, byte >> 6 & 1)
        else:
            assert place == 0xC0
            chip.deselect()
        return 1

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(
        os, "pread", lambda _handle, _size, place: b"\x22" if chip.data_out() and place == 0 else b"\0"
    )
    monkeypatch.setattr(dc390, "_SETTLE_S", 0.0)
    assert dc390.read_image(PCI, str(tmp_path)) == factory_image()
    dc390.write_setting(NOBODY, PCI, "host_scsi_id", 3, str(tmp_path))
    assert dc390.read_image(PCI, str(tmp_path)).values()["host_scsi_id"] == 3


def test_a_locked_down_kernel_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "bus" / "pci" / "devices" / PCI
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x1022\n")
    (device / "device").write_text("0x2020\n")

    def refuse(*_words: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ToolError, match="locked down by secure boot"):
        dc390.read_image(PCI, str(tmp_path))
