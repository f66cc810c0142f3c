# SPDX-License-Identifier: Apache-2.0
"""sas3flash and sas2flash: firmware of Broadcom SAS2 and SAS3 adapters (95xx cards are storcli's).

What is known: -list, -listall, -testlsall (recorded), -o -f (recorded success lines, documented words). `Finished
Processing Commands Successfully.` also ends a test with every link down, so a flash is believed only with its own
line, and a version only when it is read back. Never erases (-e): that can lose the SAS address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import MissingToolError, ToolError
from ..kit.labelled_text import Fields, read_lines
from .capabilities import AdapterFacts, FirmwareImage, PortFacts, ToolFacts, all_but_odd, read_or_why

PROGRAMS = ("sas3flash", "sas2flash")

_TIMEOUT = 120.0
_FLASH_TIMEOUT = 1800.0
_LISTED = re.compile(
    r"^\s*(?P<number>\d+)\s+(?P<chip>\S+(?: ?\([^)]*\))?)\s+(?P<firmware>\S+)\s+(?P<nvdata>\S+)\s+"
    r"(?P<bios>\S+(?: \S+)*)\s+(?P<pci>[0-9A-Fa-f]{2,4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})\s*$"
)
_ROW = re.compile(r"^\s*\d+\s+\S")
_ABSENT = ("", "n/a", "na", "none", "no image")
_OPTION_ROMS = ("bios", "uefi", "efi", "fcode")
_LINK = re.compile(r"^Phy (?P<phy>\d+)\s*: (?P<link>Link \S.*)$", re.IGNORECASE)
_FLASHED = {"firmware": "Firmware Flash Successful", "bios": "Flash BIOS Image Successful"}
_OPTIONS = {"firmware": "-f", "bios": "-b"}
_NONE = re.compile(r"no (?:LSI|Avago|Broadcom)?\s*(?:SAS )?adapters? found", re.IGNORECASE)
_LABELS = {
    "firmware": "Firmware Version",
    "bios": "BIOS Version",
    "uefi": "UEFI BSD Version",
    "efi": "EFI BSD Version",
    "fcode": "FCODE Version",
    "nvdata": "NVDATA Version (Default)",
    "nvdata.persistent": "NVDATA Version (Persistent)",
}


@dataclass(frozen=True)
class Listed:
    """One line of -listall: number, chip, versions, PCI address as `0000:04:00.0`."""

    number: str
    chip: str
    firmware: str
    nvdata: str
    bios: str
    pci: str


def parse_list_all(text: str) -> tuple[Listed, ...]:
    """The adapters of `-listall`, of a row that is not understood the number; none when there is none.

    Raises ToolError for a text that is no such list.
    """
    adapters = [
        Listed(
            match.group("number"),
            match.group("chip"),
            match.group("firmware"),
            match.group("nvdata"),
            match.group("bios"),
            _pci(match.group("pci")),
        )
        for match in map(_LISTED.match, text.splitlines())
        if match is not None
    ]
    rows = [line for line in text.splitlines() if _ROW.match(line)]
    if len(rows) != len(adapters) and not adapters:
        raise ToolError(f"the list of adapters has {len(rows)} rows, none of which is understood")
    # the number is enough to ask an adapter
    adapters += [Listed(row.split()[0], "", "", "", "", "") for row in rows if not _LISTED.match(row)]
    if (
        not adapters
        and not _NONE.search(text)
        and not re.search(r"^\s*Num\s+Ctlr\b", text, re.MULTILINE | re.IGNORECASE)
    ):
        raise ToolError(f"the adapters could not be listed: {_last(text)}")
    return tuple(adapters)


_OWN = re.compile(
    r"\bFlash Utility\b|^\s*Adapter Selected is\b|^\s*Controller Number(?: #\d+)?\s+: \d+\s*$", re.MULTILINE
)


def parse_adapter(text: str, index: str = "sas3flash 0") -> AdapterFacts:
    """What `-c N -list` prints of an adapter. Raises ToolError when it names none, or is no text of the tool."""
    if not _OWN.search(text):
        raise ToolError(f"{index} could not be read: {_last(text)}")
    fields = Fields()
    for line in read_lines(text):
        if line.labelled and not _LINK.match(line.text):
            fields.add(line.label, line.value)
    printed = fields.printed()
    by_label = {" ".join(label.lower().split()): value for label, value in printed.items()}
    if "Firmware Version" not in fields or "PCI Address" not in fields:
        raise ToolError(f"{index} could not be read: {_last(text)}")
    if "Controller Number #2" in printed:
        raise ToolError(f"{index} could not be read: the text reports several adapters")
    named = "Board Name" in fields or not any("board" in label for label in by_label)
    # the two versions of NVDATA differ in their brackets only
    versions = {name: _value(by_label.get(label.lower(), "")) for name, label in _LABELS.items()}
    return AdapterFacts(
        index=index,
        # a board without a name is called by its chip; builds for SAS1 chips print nothing of the board
        model=_value(fields.get("Board Name")) or (_value(fields.get("Controller")) if named else ""),
        vendor=_value(fields.get("NVDATA Vendor")),
        serial=_value(fields.get("Board Tracer Number")),
        pci=_pci(fields.get("PCI Address")),
        firmware={name: version for name, version in versions.items() if version},
        settings=printed,
    )


def _value(text: str) -> str:
    """Nothing for `N/A` and its kin."""
    return "" if text.strip().lower() in _ABSENT else text.strip()


def parse_links(text: str) -> tuple[PortFacts, ...]:
    """The phys of `-testlsall`, each with its link as printed: the tool says PASSED whatever they are.

    Raises ToolError for a text that is no such test, and for a link of what is no phy.
    """
    links = [line.strip() for line in text.splitlines() if re.search(r":\s*Link (?:Up|Down)\b", line, re.IGNORECASE)]
    if not links and "test link state" not in text.lower():
        raise ToolError(f"the links could not be read: {_last(text)}")
    matches = [(line, _LINK.match(line)) for line in links]
    strange = [line for line, match in matches if not match]
    if strange:
        raise ToolError(f"a link is told of something that is not a phy: {strange[0][:100]!r}")
    return tuple(PortFacts(name=match.group("phy"), link=match.group("link")) for _, match in matches if match)


def _pci(text: str) -> str:
    """`00:07:00:00`: segment, bus, device, function, in hexadecimal."""
    parts = text.split(":")
    if len(parts) != 4 or any(not re.fullmatch(r"[0-9a-fA-F]{1,4}", part) for part in parts):
        return ""
    segment, bus, device, function = (int(part, 16) for part in parts)
    return f"{segment:04x}:{bus:02x}:{device:02x}.{function:x}"


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and "Exiting SAS" not in line]
    return (lines[-1] if lines else "nothing")[:200]


def _output(runner: Runner, index: str, *words: str, timeout: float = _TIMEOUT) -> str:
    """Ask the adapter `sas3flash 0`: program, number."""
    program, _, number = index.partition(" ")
    ended = runner([program, "-c", number, *words], timeout=timeout)
    return f"{ended.stdout}\n{ended.stderr}"


def read_facts(runner: Runner) -> ToolFacts:
    """All adapters of both programs, where they are installed, with their phys. Raises ToolError."""
    adapters: list[AdapterFacts] = []
    missing: list[MissingToolError] = []
    for program in PROGRAMS:
        try:
            listed = parse_list_all(runner([program, "-listall"], timeout=_TIMEOUT).stdout)
        except MissingToolError as problem:
            missing.append(problem)
            continue
        indices = [f"{program} {each.number}" for each in listed]
        adapters += [read_or_why(partial(_read, runner, index), AdapterFacts(index)) for index in indices]
    if len(missing) == len(PROGRAMS):
        raise missing[0]
    return ToolFacts(all_but_odd(adapters))


def _read(runner: Runner, index: str) -> AdapterFacts:
    """One adapter with its phys, whose links only `-testlsall` tells. Raises ToolError."""
    adapter = parse_adapter(_output(runner, index, "-list"), index)
    return replace(adapter, ports=parse_links(_output(runner, index, "-o", "-testlsall")))


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """The version of each part; NVDATA as delivered and as kept can differ after a flash. Raises ToolError."""
    return parse_adapter(_output(runner, index, "-list"), index).firmware


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:  # noqa: ARG001
    known = image.component in _OPTIONS
    return () if known else (f"{index} flashes {' and '.join(_OPTIONS)} by themselves, not {image.component}",)


def download(runner: Runner, index: str, image: FirmwareImage) -> Sequence[str]:
    """Flash the firmware or the BIOS; the SAS address must be the same afterwards.

    Returns a sentence for each option ROM that the adapter has no more. Raises ToolError.
    """
    before = parse_adapter(_output(runner, index, "-list"), index)
    text = _output(runner, index, "-o", _OPTIONS[image.component], image.path, timeout=_FLASH_TIMEOUT)
    if _FLASHED[image.component] not in text:
        raise ToolError(f"{index} did not accept {image.path}: {_last(text)}")
    after = parse_adapter(_output(runner, index, "-list"), index)
    for label in ("SAS Address", "Board Name"):
        if before.settings.get(label) != after.settings.get(label):
            now, then = after.settings.get(label, "nothing"), before.settings.get(label, "nothing")
            raise ToolError(
                f"{index} was flashed and its {label} is {now}, before it was {then}: "
                f"write it again (-o -sasadd) before the adapter is used"
            )
    return [
        f"{index} has no {name} any more, it had {before.firmware[name]}: write it again (-o -b) if the adapter boots"
        for name in _OPTION_ROMS
        if name in before.firmware and name not in after.firmware
    ]


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """Nothing when the running version is the image's (the tool resets the adapter itself), else a boot."""
    running = read_versions(runner, index).get(image.component)
    return "none" if running == image.version else "reboot"
