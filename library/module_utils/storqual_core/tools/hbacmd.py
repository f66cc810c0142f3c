# SPDX-License-Identifier: Apache-2.0
"""Emulex' hbacmd (OneCommand Manager, HBA Manager): what its adapters are, their firmware, their boot code.

`HbaAttributes` is read as recorded. `ListHBAs` and `EnableBootCode` are known from the manual only. Parameters of the
driver are not set through it: they are module options of lpfc (`lpfc_lun_queue_depth`), which the kernel shows.
An adapter's index is the WWN of its port.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Mapping

from ..host.identity import port_name
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import ToolError
from ..kit.labelled_text import Fields, normal_label, pci_of, read_lines
from ..kit.machine import visible
from .capabilities import AdapterFacts, FirmwareImage, PortFacts, Spelling, ToolFacts, Value, all_but_odd, read_or_why

PROGRAMS = ("hbacmd", "/usr/sbin/ocmanager/hbacmd", "/usr/sbin/hbanyware/hbacmd")
_TIMEOUT = 120.0
_FLASH_TIMEOUT = 1800.0
_FLASHED = ("Download Complete", "The new firmware is activated")

SETTINGS: Mapping[str, Spelling] = {
    "boot_rom": Spelling("HbaAttributes <wwn>: Boot Code", "EnableBootCode <wwn> E|D", "probed"),
}
"""What it keeps in the adapter by canonical name."""

_VERSIONS = {
    "operational fw": "firmware",
    "flash firmware version": "firmware.flash",
    "boot version": "boot",
    "fc universal bios version": "universal_bios",
    "fc x86 bios version": "bios",
    "fc efi bios version": "efi",
    "fc fcode version": "fcode",
}
_NO_VERSION = ("", "none", "n/a", "not present", "not available")
_HEADING = re.compile(r"^\s*HBA Attributes for (\S+)\s*$", re.MULTILINE)
_FAILED = re.compile(r"^(?:[ \t]*error|.*\b(?:failed|not supported|invalid|not found)\b).*$", re.I | re.M)


def parse_list(text: str) -> list[str]:
    """`ListHBAs`: the WWNs of the ports, as hbacmd takes them. Raises ToolError for a text that is no such list."""
    if _HEADING.search(text):
        raise ToolError("hbacmd shows the attributes of a port where the list of ports was expected")
    digits = [re.sub(r"[\s:-]", "", match).lower() for match in re.findall(r"^\s*Port WWN\s*:(.*)$", text, re.M)]
    # half a WWN, of a line that was cut, is kept: the port that it is of is told as unread when it is asked
    odd = [name for name in digits if not re.fullmatch("[0-9a-f]{16}", name)]
    if odd and len(odd) == len(digits):
        raise ToolError(f"hbacmd lists a port without the whole of its WWN: {visible(odd[0])[:40] or 'nothing'}")
    wwns = [":".join(re.findall("..", name)) if name not in odd else visible(name)[:40] for name in digits]
    if not wwns and not re.search(r"HBA List|no (?:\w+ )*(?:HBAs?|adapters?)", text, re.IGNORECASE):
        raise ToolError(f"hbacmd lists no ports: {visible(text.strip().partition(chr(10))[0])[:200] or 'nothing'}")
    return wwns


def parse_attributes(text: str) -> AdapterFacts:
    """`HbaAttributes <wwn>`, with or without the command's echo.

    Raises ToolError when it shows no adapter, or more than one port: these are read apart.
    """
    headings = [match.group(1) for match in _HEADING.finditer(text)]
    if len(set(headings)) > 1:
        raise ToolError(
            f"hbacmd shows the attributes of {len(set(headings))} ports in one text: {', '.join(headings)}"
        )
    fields = Fields()
    for line in read_lines(text):
        if line.labelled and not line.text.startswith("hbacmd ") and not _HEADING.match(line.text):
            fields.add(line.label, line.value)
    values = fields.printed()
    by_label = {normal_label(label): value for label, value in reversed(list(values.items()))}
    own = bool(headings) or any(label.endswith((" wwn", " wwpn")) for label in by_label)
    if "model" not in by_label or "serial number" not in by_label or not own:
        error = _FAILED.search(text)
        raise ToolError(
            f"hbacmd shows no attributes: {visible((error.group(0) if error else text).strip())[:200] or 'nothing'}"
        )
    firmware = {
        component: by_label[label]
        for label, component in _VERSIONS.items()
        if by_label.get(label, "").lower() not in _NO_VERSION
    }
    # builds for SLI-2 and SLI-3 adapters name the overlay there, and the version in another line
    if "." not in firmware.get("firmware", "") and by_label.get("fw version"):
        firmware["firmware"] = by_label["fw version"].split(" ")[0]
    index = next(iter(headings), "")
    # a port's device number is never printed; Emulex functions are all of device 0
    pci = pci_of(fields, "PCI Bus Number", "", "PCI Func Number")
    return AdapterFacts(
        index=index,
        model=by_label["model"],
        vendor=by_label.get("manufacturer", ""),
        serial=by_label["serial number"],
        pci=pci,
        driver=by_label.get("driver name", ""),
        driver_version=by_label.get("driver version", ""),
        firmware=firmware,
        settings=values,
        ports=(PortFacts(name=by_label.get("port number", ""), wwn=port_name(index)),) if index else (),
    )


def parse_firmware_parameters(text: str) -> dict[str, dict[str, str]]:
    """`GetFwParams <wwn>`: a table with a heading of `Param Low High Def Cur Dyn`; the columns by parameter.

    Raises ToolError when there is no such heading.
    """
    rows: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    place = 0
    for line in text.splitlines():
        words = line.split()
        lower = [word.lower() for word in words]
        if "cur" in lower and ("param" in lower or "string" in lower):
            columns, place = lower, lower.index("param" if "param" in lower else "string")
        elif columns and words:
            # the name of a parameter may be of several words
            behind = len(columns) - place - 1
            if len(words) < len(columns) or not words[-behind:]:
                # without a current value nobody takes it for a setting
                rows[words[place] if words[place:] else words[0]] = {"unread": visible(line.strip())[:100]}
                continue
            name = " ".join(words[place : len(words) - behind])
            row = dict(zip([*columns[:place], *columns[place + 1 :]], [*words[:place], *words[-behind:]]))
            if name in rows:
                raise ToolError(
                    f"hbacmd lists the parameter {visible(name)[:60]} twice: the text is of several ports"
                )
            rows[name] = row
    if not columns or (rows and not any("cur" in row for row in rows.values())):
        error = _FAILED.search(text)
        raise ToolError(
            f"hbacmd shows no firmware parameters: {visible((error.group(0) if error else text).strip())[:200]}"
        )
    return rows


def _run(runner: Runner, *words: str, timeout: float = _TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, words, timeout=timeout)


def read_facts(runner: Runner) -> ToolFacts:
    """All ports with their attributes and the current values of their firmware parameters.

    A port that cannot be read is told as unread; firmware parameters that it does not show are a note. Raises
    ToolError when none can be read.
    """
    listed = _run(runner, "ListHBAs")
    adapters: list[AdapterFacts] = []
    notes: list[str] = []
    for wwn in parse_list(listed.stdout):
        adapter = read_or_why(partial(_attributes, runner, wwn), AdapterFacts(wwn))
        adapters.append(adapter)
        if adapter.unread:
            continue
        try:
            parameters = parse_firmware_parameters(_run(runner, "GetFwParams", wwn).stdout)
        except ToolError as problem:
            notes.append(f"{wwn}: {problem}")
            parameters = {}
        current = {
            f"{name} (firmware parameter)": columns["cur"] for name, columns in parameters.items() if "cur" in columns
        }
        notes += [
            f"{wwn}: hbacmd lists a parameter that is not understood: {columns['unread']}"
            for columns in parameters.values()
            if "unread" in columns
        ]
        adapters[-1] = replace(adapter, settings={**adapter.settings, **current})
    return ToolFacts(all_but_odd(adapters), tuple(notes))


def _attributes(runner: Runner, wwn: str) -> AdapterFacts:
    return parse_attributes(_run(runner, "HbaAttributes", wwn).stdout)


def read_settings(runner: Runner, index: str) -> Mapping[str, Value]:
    """What the adapter keeps by canonical name. Raises ToolError."""
    shown = _attributes(runner, index).settings.get("Boot Code", "").strip().lower()
    return {"boot_rom": int(shown == "enabled")} if shown in ("enabled", "disabled") else {}


def objection(runner: Runner, index: str, name: str, value: Value) -> str:  # noqa: ARG001 - as the protocol says
    """Why it cannot be written: the tool's help does not know the command. Raises ToolError."""
    ended = _run(runner, "help", "EnableBootCode")
    if "enablebootcode" not in ended.stdout.lower() or _FAILED.search(ended.stdout):
        return f"this hbacmd (`{ended.line}`) does not know EnableBootCode; set it in the adapter's own boot menu"
    return ""


def write_setting(runner: Runner, index: str, name: str, value: Value) -> None:
    """Enable or disable the boot code. Raises ToolError, also when the help does not know the command."""
    against = objection(runner, index, name, value)
    if against:
        raise ToolError(against)
    ended = _run(runner, "EnableBootCode", index, "E" if int(value) else "D")
    error = _FAILED.search(ended.stdout + "\n" + ended.stderr)
    if ended.rc != 0 or error:
        reason = error.group(0).strip() if error else ended.stdout.strip() or "no message"
        raise ToolError(f"`{ended.line}` ended with status {ended.rc}: {visible(reason)[:200]}")


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Versions by component; firmware that lies in flash and does not run yet is `firmware.pending`."""
    firmware = _attributes(runner, index).firmware
    versions = {name: version for name, version in firmware.items() if name != "firmware.flash"}
    flash = firmware.get("firmware.flash", "")
    if flash and flash != versions.get("firmware", flash):
        versions["firmware.pending"] = flash
    return versions


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:  # noqa: ARG001
    return image.whole_only()


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Write an image, as other people's programs do: `Download <wwn> <file>`. Raises ToolError."""
    ended = _run(runner, "Download", index, image.path, timeout=_FLASH_TIMEOUT)
    if not any(words in ended.stdout for words in _FLASHED):
        raise ended.failure(f"the adapter {index} did not accept {image.path}", of="stdout")


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """`none` when the adapter runs the image's version already, else `reboot`. Raises ToolError."""
    return "none" if read_versions(runner, index).get(image.component) == image.version else "reboot"
