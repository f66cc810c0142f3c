# SPDX-License-Identifier: Apache-2.0
"""What is being qualified: the drop manifest, one arm of a campaign, with the settings' names and values checked."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from storqual.inputs.fields import Duration, ManyOf, Name, Text, written
from storqual.inputs.inventory import no_driver, slip_of
from storqual.inputs.shape import Shape, did_you_mean, raise_all, shaped, unknown
from storqual.inputs.yaml_file import Document, Keys, as_written, read_yaml
from storqual_core.kit.durable import ALPHABET, is_name
from storqual_core.kit.settings import check_value, section_of
from storqual_core.provision.firmware.subject import FIRMWARE_TOOLS, REDFISH
from storqual_core.provision.raid.layout import volume_tools

SETTING_SECTIONS = ("driver", "nvram", "drive", "raid", "os", "multipath", "virtual")
"""The sections whose keys are settings of `storqual_core.kit.settings`."""

_SHA256 = frozenset("0123456789abcdef")


def _sha256(value: object) -> object:
    value = as_written(value)
    if not isinstance(value, str) or len(value) != 64 or not _SHA256.issuperset(value.lower()):
        raise ValueError("a SHA-256 of 64 hexadecimal digits")
    return value.lower()


Sha256 = Annotated[
    str, BeforeValidator(_sha256), written("SHA-256", type=["string", "integer"], pattern="^[0-9a-fA-F]{64}$")
]


def _alias(value: object) -> object:
    if isinstance(value, str) and set(value) & set("*?["):
        raise ValueError("adapters by their whole names, several as a list: [hba0, hba1]; patterns are for `model`")
    return value


class On(Shape):
    """What a section is for; without it, the adapters under test. All that is named must match."""

    adapter: ManyOf[Annotated[Name, BeforeValidator(_alias)]] | None = Field(
        default=None, description="an adapter by its name, or a list of them"
    )
    model: ManyOf[Text] | None = None
    drives: ManyOf[Text] | None = Field(default=None, description="drives by WWN or serial")


class DropSection(Shape):
    """One section of settings in plain form: whole numbers, bytes, words."""

    on: On = On()
    settings: dict[str, Any] = Field(default={})


class DropSignature(Shape):
    """Who signed an image: a detached signature, and the public key (PEM) or keyring (OpenPGP) it must be by."""

    file: Text
    key: Text


class Rollback(Shape):
    """An image to go back to."""

    file: Text
    sha256: Sha256
    version: Text
    signature: DropSignature | None = None


class Firmware(Shape):
    """One firmware image and how it gets in; paths are the control node's, relative ones begin at the manifest."""

    on: On = On()
    file: Text
    sha256: Sha256
    tool: Name
    version: Text | None = Field(
        default=None, description="the version that the adapter or drive reports when it runs the image"
    )
    component: Name | None = Field(
        default=None, description="the part that it is for, if there are several, such as bios"
    )
    boards: ManyOf[Text] | None = Field(default=None, description="PCI subsystem ids it is for, 1000:3010")
    signature: DropSignature | None = None
    rollback: ManyOf[Rollback] | None = Field(default=None, description="images to go back to")
    from_versions: ManyOf[Text] | None = Field(default=None, alias="from", description="versions it may replace")
    activation: Literal["none", "reset", "reboot", "power cycle"] = "reset"
    answers_within: Annotated[Duration, Field(gt=0)] | None = Field(
        default=None, description="how long a management controller may be silent after it"
    )


class _Settings(Shape):
    """A section as it is written: `on` and settings, whose names another list knows."""

    model_config = ConfigDict(extra="allow")
    on: On = On()


class DropManifest(Shape):
    """The file as it is written; each section one mapping or a list of them."""

    name: Name | None = None
    description: Text | None = None
    driver: ManyOf[_Settings] = ()
    firmware: ManyOf[Firmware] = ()
    nvram: ManyOf[_Settings] = ()
    drive: ManyOf[_Settings] = ()
    raid: ManyOf[_Settings] = ()
    os: ManyOf[_Settings] = ()
    multipath: ManyOf[_Settings] = ()
    virtual: ManyOf[_Settings] = ()


class Drop(Shape):
    """A drop manifest; `sections` has the settings by section in the order of the file."""

    name: str
    description: str = ""
    sections: dict[str, tuple[DropSection, ...]]
    firmware: tuple[Firmware, ...] = ()
    folder: str = ""

    def settings(self) -> Iterator[tuple[str, On, str, Any]]:
        for section, entries in self.sections.items():
            for entry in entries:
                for name, value in entry.settings.items():
                    yield section, entry.on, name, value

    def to_json(self) -> dict[str, Any]:
        """The manifest as read, for run.json: sections with `on` only where it says something."""
        manifest: dict[str, Any] = {}
        for section, entries in self.sections.items():
            if entries:
                manifest[section] = [{**_on_json(entry.on), **entry.settings} for entry in entries]
        if self.firmware:
            manifest["firmware"] = [
                {
                    **_on_json(image.on),
                    **image.model_dump(mode="json", by_alias=True, exclude={"on"}, exclude_none=True),
                }
                for image in self.firmware
            ]
        return manifest


def load_drop(path: Path) -> Drop:
    """Read a drop. Raises BadInputError with every problem."""
    drop, problems = read_drop(path)
    raise_all(problems)
    assert drop is not None  # noqa: S101 - there is one when nothing was wrong
    return drop


def read_drop(path: Path) -> tuple[Drop | None, list[str]]:
    """A drop and all problems with it. Raises BadInputError only when the file cannot be read as YAML."""
    document = read_yaml(path)
    manifest, problems = shaped(DropManifest, document)
    sections: dict[str, tuple[DropSection, ...]] = {}
    for name in SETTING_SECTIONS:
        entries: list[DropSection] = []
        for keys, values in _entries(document, name):
            settings, wrong = _checked(document, name, keys, values)
            problems += wrong
            number = len(entries)
            on = getattr(manifest, name)[number].on if manifest is not None else On()
            entries.append(DropSection(on=on, settings=settings))
        sections[name] = tuple(entries)
    problems += _name_problems(document)
    if manifest is not None and manifest.name is None and not is_name(path.stem):
        problems.append(
            document.about((), f"the drop has no `name`, and its file name cannot be one: use {ALPHABET}")
        )
    if manifest is None or problems:
        return None, problems
    drop = Drop(
        name=manifest.name or path.stem,
        description=manifest.description or "",
        sections=sections,
        firmware=manifest.firmware,
        folder=str(path.parent.absolute()),
    )
    return drop, problems


def _name_problems(document: Document) -> Iterator[str]:
    """Tools that flash nothing, parts that no setting names, tools that make no volumes, slips of a module's name."""
    parts = section_of("firmware")
    for keys, volume in _entries(document, "raid"):
        if isinstance(volume.get("tool"), str) and volume["tool"] not in volume_tools():
            yield document.about((*keys, "tool"), unknown("raid.tool", volume["tool"], volume_tools()))
    for keys, driver in _entries(document, "driver"):
        options = driver.get("options")
        for module in options if isinstance(options, dict) else ():
            if slip_of(str(module)):
                yield document.about((*keys, "options", module), no_driver(str(module)))
    for keys, image in _entries(document, "firmware"):
        for name, known in (("tool", (*FIRMWARE_TOOLS, REDFISH)), ("component", tuple(parts))):
            value = image.get(name)
            if isinstance(value, str) and value not in known:
                yield document.about(
                    (*keys, name), unknown(f"firmware.{name}", value, sorted(known), most=len(known))
                )


def _entries(document: Document, section: str) -> Iterator[tuple[Keys, Mapping[str, Any]]]:
    """Each mapping of a section with its place; what is no mapping is the shape's complaint."""
    data = document.data.get(section) if isinstance(document.data, dict) else None
    if isinstance(data, dict):
        yield (section,), data
    elif isinstance(data, list):
        for number, item in enumerate(data):
            if isinstance(item, dict):
                yield (section, number), item


def _checked(
    document: Document, section: str, keys: Keys, values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The settings of one mapping in plain form, and what is wrong with them."""
    known = section_of(section)
    settings: dict[str, Any] = {}
    problems = []
    for name, value in values.items():
        if name == "on":
            continue
        at = (*keys, name)
        if name not in known:
            listed = sorted(known) if len(known) <= 24 else ()
            hint = f"; expected one of {', '.join(listed)}" if listed else ""
            problems.append(document.about(at, f"unknown setting {section}.{name}{did_you_mean(name, known)}{hint}"))
            continue
        setting = known[name]
        try:
            settings[name] = check_value(setting, _words(value, named=setting.kind in _NAMING))
        except (ValueError, TypeError, OverflowError) as problem:
            unit = f" in {setting.unit}" if setting.unit else ""
            span = f" from {setting.minimum} to {setting.maximum}" if setting.minimum is not None else ""
            if setting.kind in ("flag", "integer", "size"):
                hint = f"; expected {setting.kind}{unit}{span}: {setting.summary}"
            else:
                hint = did_you_mean(str(value), setting.choices) or f" ({setting.summary})" * (not setting.choices)
            problems.append(document.about(at, f"{problem}{hint}"))
    return settings, problems


_NAMING = ("text", "list", "arguments", "unplug")
"""Kinds of settings whose numbers are names: an unquoted WWN, a serial number that begins with zeros."""


def _words(value: object, *, named: bool) -> object:
    """A value without the loader's own number classes: what goes into JSON and to the bench is plain.

    Where numbers are `named`, they stay as they were written.
    """
    if isinstance(value, dict):
        return {str(key): _words(item, named=named) for key, item in value.items()}
    if isinstance(value, list):
        return [_words(item, named=named) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if named:
        return as_written(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return str(as_written(value))
    return value


def _on_json(on: On) -> dict[str, Any]:
    listed = on.model_dump(mode="json", exclude_none=True)
    return {"on": listed} if listed else {}
