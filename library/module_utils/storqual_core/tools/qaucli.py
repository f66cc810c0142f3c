# SPDX-License-Identifier: Apache-2.0
"""QLogic's qaucli (QConvergeConsole CLI) and scli (SANsurfer): what its adapters are, their NVRAM, their firmware.

`-i all` and `-pr fc -g` are read as recorded. `-c` (parameters) is read by its labels as other people's code and the
manuals print them; no recording of it is at hand. Writing (`-n <instance> <alias> <value>`) is known from manuals
only: the tool is asked for its help first, and nothing is written when that does not name the alias.
An adapter's index is the HBA instance; each port is one, and the order of a listing is not that of instances.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Mapping

from ..host.identity import port_name
from ..kit.command import Completed, Runner, run_first
from ..kit.errors import MissingToolError, ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK, Fields, labelled, normal_label, pci_of, whole_number
from ..kit.machine import visible
from .capabilities import AdapterFacts, FirmwareImage, PortFacts, Spelling, ToolFacts, Value, all_but_odd

PROGRAMS = ("qaucli", "/opt/QLogic_Corporation/QConvergeConsoleCLI/qaucli", "scli")
_TIMEOUT = 120.0
_FLASH_TIMEOUT = 1800.0
_FLASHED = "Flash update complete"
_NOT_AVAILABLE = ("255.255.255", "n/a", "")
# `-pr fc` chooses the protocol, which scli does not have
_FC = ("-pr", "fc")

# canonical name: alias for -n, label of -c
_WORDS = {
    "execution_throttle": ("ET", "execution throttle"),
    "frame_size": ("FR", "frame size"),
    "interrupt_delay": ("ID", "interrupt delay timer"),
    "command_completion": ("OM", "operation mode"),
    "connection_options": ("CO", "connection options"),
    "hard_loop_id": ("HL", "hard loop id"),
    "loop_reset_delay": ("LD", "loop reset delay"),
    "login_retry": ("LR", "login retry count"),
    "port_down_retry": ("PD", "port down retry count"),
    "link_down_timeout": ("LT", "link down timeout"),
    "max_luns": ("LU", "luns per target"),
    "boot_rom": ("EB", "enable host hba bios"),
}
SETTINGS: Mapping[str, Spelling] = {
    name: Spelling(f"-c <instance>: {label}", f"-n <instance> {alias} <value>", "probed")
    for name, (alias, label) in _WORDS.items()
}
"""The NVRAM words by canonical name."""

_FLAGS = {"enabled": 1, "disabled": 0}
_VERSIONS = {
    "running firmware version": "firmware",
    "flash firmware version": "firmware.flash",
    "bios version": "bios",
    "flash bios version": "bios.flash",
    "flash fcode version": "fcode",
    "flash efi version": "efi",
    "running mpi firmware version": "mpi",
    "running pep firmware version": "pep",
    "flash mpi firmware version": "mpi.flash",
    "flash pep firmware version": "pep.flash",
}
# whose adapters these are
_HOST = re.compile(r"^\s*Host [A-Z]\w+\s*:", re.IGNORECASE)
_MODEL = re.compile(r"^\s*HBA Model\s+(\S+)\s+\(SN\s([^)]*)\)\s*:\s*$", re.IGNORECASE)
_TOTAL = re.compile(r"^\s*Total QLogic HBA(?:\(s\)|s)?\s*:\s*(\d+)\s*$", re.IGNORECASE)
_NONE = re.compile(r"\bno\b.*\b(?:hba|adapter)", re.IGNORECASE)
_PORT = re.compile(r"^\s*Port\s+(\d+)\s+WWPN\s+(\S+)\s+\(HBA instance\s+(\d+)\)\s*(.*?)\s*$")
_ODD_PORT = re.compile(r"^\s*Port\s+\d+\b", re.IGNORECASE)
_FAILED = re.compile(
    r"\b(?:error|unable|failed|not supported|unsupported|invalid|no (?:supported )?(?:hba|adapter)s?)\b", re.I
)


def _run(runner: Runner, *words: str, timeout: float = _TIMEOUT) -> Completed:
    try:
        return run_first(runner, PROGRAMS[:2], [*_FC, *words], timeout=timeout)
    except MissingToolError:
        return run_first(runner, PROGRAMS[2:], words, timeout=timeout)


def parse_listing(text: str) -> ToolFacts:
    """`-g`: models with their serial numbers, and each port with its instance; other lines are kept as notes.

    Raises ToolError for a port that belongs to no model, and when another number of adapters is told than listed.
    """
    adapters = []
    notes = []
    models = 0
    total: int | None = None
    model = serial = ""
    for line in text.lstrip(BYTE_ORDER_MARK).splitlines():
        head, port = _MODEL.match(line), _PORT.match(line)
        if head:
            model, serial = map(str.strip, head.groups())
            models += 1
        elif _TOTAL.match(line):
            total = whole_number(line.rpartition(":")[2])
            notes.append(line.rstrip())
        elif port or _ODD_PORT.match(line):
            number, wwpn, instance, link = port.groups() if port else ("", "", "?", "")
            odd = "" if port and model else "that belongs to no adapter" if port else "in other words"
            why = f"qaucli lists a port {odd}: {line.strip()[:100]!r}" if odd else ""
            ports = (PortFacts(name=number, wwn=port_name(wwpn), link=link),)
            adapters.append(AdapterFacts(instance, model, "QLogic", serial, ports=ports, unread=why))
        elif line.strip("- \t"):
            notes.append(line.rstrip())
    if not models and total is None and not _NONE.search(text):
        answer = next(iter(notes), "nothing")[:200]
        raise ToolError(f"qaucli lists no adapter, and does not say that there is none: {answer}")
    if total is not None and total != models:
        raise ToolError(f"qaucli reports {total} adapters and lists {models}")
    return ToolFacts(all_but_odd(adapters), tuple(notes))


def parse_instances(text: str) -> ToolFacts:
    """`-i all`: one record of labels per instance. What stands before the first one is of the host, or a note.

    Raises ToolError for a text without an instance that does not say that there is no adapter.
    """
    records: list[list[str]] = []
    host: list[str] = []
    for line in text.lstrip(BYTE_ORDER_MARK).splitlines():
        if re.match(r"^\s*HBA Instance\s*:", line, re.IGNORECASE):
            records.append([])
        (records[-1] if records else host).append(line)
    if not records and not _NONE.search(text):
        answer = next((line.strip() for line in host if line.strip("- \t")), "nothing")
        raise ToolError(f"qaucli shows no instance of an adapter, but says: {answer[:200]}")
    adapters = []
    notes = [line.strip() for line in host if line.strip("- \t") and not _HOST.match(line)]
    for record in records:
        values, others = labelled(record)
        adapter = _adapter(values)
        odd = not adapter.index or "HBA Model" not in Fields(values)
        why = f"qaucli shows an instance without its number, or without its adapter's model ({adapter.index or '?'})"
        adapters.append(replace(adapter, unread=why) if odd else adapter)
        notes += others
    return ToolFacts(all_but_odd(adapters), tuple(notes))


def _adapter(values: Mapping[str, str]) -> AdapterFacts:
    by_label = {normal_label(label): value for label, value in values.items()}
    firmware = {
        component: by_label[label].split(" ")[0]
        for label, component in _VERSIONS.items()
        if by_label.get(label, "").strip().lower() not in _NOT_AVAILABLE
    }
    wwn = port_name(by_label.get("port name", ""))
    link = by_label.get("porttype", "")
    speed = by_label.get("actual data rate", "")
    return AdapterFacts(
        index=by_label.get("hba instance", ""),
        model=by_label.get("hba model", ""),
        vendor="QLogic",
        serial=by_label.get("serial number", ""),
        pci=pci_of(Fields(values), "PCI Bus Number", "PCI Device Number", "PCI Function Number"),
        driver="qla2xxx",
        driver_version=by_label.get("driver version", ""),
        firmware=firmware,
        settings=dict(values),
        ports=(PortFacts(name=by_label.get("hba port", ""), wwn=wwn, speed=speed, link=link),),
    )


def _instances(runner: Runner) -> ToolFacts:
    """What `-i all` shows, nothing on a machine without such adapters. Raises ToolError."""
    ended = _run(runner, "-i", "all")
    return ToolFacts() if _NONE.search(ended.last_words()) else parse_instances(ended.expect().stdout)


def read_facts(runner: Runner) -> ToolFacts:
    """All instances, compared with those that `-g` lists; a machine without such adapters has none.

    Raises ToolError when the tool fails and when the two lists differ.
    """
    answer = _instances(runner)
    if not answer.adapters:
        return answer
    try:
        listed = parse_listing(_run(runner, "-g").expect().stdout)
    except ToolError as problem:
        return replace(answer, notes=(*answer.notes, f"instances not compared with the list of adapters: {problem}"))
    known = [[adapter for adapter in facts.adapters if not adapter.unread] for facts in (answer, listed)]
    if [len(each) for each in known] != [len(facts.adapters) for facts in (answer, listed)]:
        return replace(answer, notes=(*answer.notes, "instances not compared: one of them cannot be read"))
    instances, shown = ({adapter.index for adapter in adapters} for adapters in known)
    if instances != shown:
        raise ToolError(
            f"qaucli -i all shows the instances {', '.join(sorted(instances))}, -g lists {', '.join(sorted(shown))}"
        )
    return answer


def parse_parameters(text: str) -> dict[str, Value]:
    """`-c`: the NVRAM words by canonical name, those that the text shows. Raises ToolError when it shows none."""
    values, _ = labelled(text.splitlines())
    by_label = {normal_label(label): value for label, value in values.items()}
    words: dict[str, Value] = {}
    for name, (_, label) in _WORDS.items():
        if label not in by_label:
            continue
        number = _FLAGS.get(by_label[label].strip().lower(), whole_number(by_label[label]))
        if number is not None:
            words[name] = number
    if not words:
        error = next((line.strip() for line in text.splitlines() if _FAILED.search(line)), "no parameter")
        raise ToolError(f"qaucli shows no HBA parameters: {visible(error)[:200]}")
    return words


def read_settings(runner: Runner, index: str) -> Mapping[str, Value]:
    """The NVRAM words of an instance. Raises ToolError."""
    ended = _run(runner, "-c", index)
    return parse_parameters(ended.stdout or ended.stderr)


def objection(runner: Runner, index: str, name: str, value: Value) -> str:  # noqa: ARG001 - as the protocol says
    """Why a word cannot be written: the tool's help does not name its alias. Raises ToolError."""
    alias = _WORDS[name][0]
    ended = _run(runner, "-n", "-h")
    if not re.search(rf"(?<!\w){alias}(?!\w)", ended.stdout):
        return (
            f"the help of this {ended.argv[0]} (`{ended.line}`) does not name the alias {alias}; set it with the "
            "tool's menu, then declare what it reads back"
        )
    return ""


def write_setting(runner: Runner, index: str, name: str, value: Value) -> None:
    """Write one word; it counts from the driver's next start. Raises ToolError, also for an unconfirmed alias."""
    against = objection(runner, index, name, value)
    if against:
        raise ToolError(against)
    ended = _run(runner, "-n", index, _WORDS[name][0], str(value))
    error = next((line.strip() for line in ended.stdout.splitlines() if _FAILED.search(line)), "")
    if ended.rc != 0 or error:
        raise ToolError(
            f"`{ended.line}` ended with status {ended.rc}: {visible(error or ended.stderr.strip())[:200]}"
        )


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Versions by component; what lies in flash and does not run yet is `<component>.pending`. Raises ToolError."""
    facts = next((adapter for adapter in _instances(runner).adapters if adapter.index == index), None)
    if facts is None:
        raise ToolError(f"qaucli does not show HBA instance {index}")
    versions = {name: version for name, version in facts.firmware.items() if not name.endswith(".flash")}
    for name, version in facts.firmware.items():
        component = name[: -len(".flash")] if name.endswith(".flash") else ""
        if component and version != versions.get(component, version):
            versions[f"{component}.pending"] = version
    return versions


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:  # noqa: ARG001
    return image.whole_only()


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Write an image with all its parts, as other people's programs do: `-b <instance> -rg all <file>`.

    Raises ToolError.
    """
    ended = _run(runner, "-b", index, "-rg", "all", image.path, timeout=_FLASH_TIMEOUT)
    if _FLASHED not in ended.stdout:
        raise ended.failure(f"HBA instance {index} did not accept {image.path}", of="stdout")


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """`none` when the adapter runs the image's version already, else `reboot`. Raises ToolError."""
    return "none" if read_versions(runner, index).get(image.component) == image.version else "reboot"
