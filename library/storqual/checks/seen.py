# SPDX-License-Identifier: Apache-2.0
"""What a bench shows of itself, and what its inventory expects: the two sides that acceptance keywords compare."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storqual_core.kit.errors import StorqualError


class NotJudgedError(StorqualError):
    """What a keyword asks about is not on record, so nothing is said about it, neither good nor bad."""


class UndecidedError(NotJudgedError):
    """There is data, and it shows neither that a threshold holds nor that it is broken."""


@dataclass(frozen=True)
class DriveSeen:
    """A drive as the kernel has it: PCI address of its adapter, port and link rate where the transport shows them."""

    id: str
    adapter_pci: str
    port: int | None
    link_rate: str
    model: str
    firmware: str
    state: str
    write_cache: str
    queue_depth: int | None


@dataclass(frozen=True)
class AdapterSeen:
    """An adapter with its driver build and its PCI link now and at most; texts are empty where nothing is shown."""

    alias: str
    firmware: str
    driver: str
    module: str
    version: str
    srcversion: str
    link: tuple[str, int | None]
    link_max: tuple[str, int | None]
    drives: Mapping[str, DriveSeen]


@dataclass(frozen=True)
class BenchSeen:
    """A look at a bench; `strangers` are drives no inventory entry names, None where the look does not tell."""

    kernel: str
    adapters: Mapping[str, AdapterSeen]
    strangers: tuple[str, ...] | None

    @classmethod
    def of(cls, environment: Mapping[str, Any], strangers: Sequence[str] | None = None) -> BenchSeen:
        """From the fingerprint that `storqual_core.facts.bench_facts.environment_of` makes."""
        adapters = {
            str(alias): _adapter(str(alias), entry) for alias, entry in (environment.get("adapters") or {}).items()
        }
        kernel = environment.get("kernel") or {}
        return cls(str(kernel.get("release") or ""), adapters, None if strangers is None else tuple(strangers))

    def only(self, aliases: Container[str]) -> BenchSeen:
        """The same look with the adapters in `aliases`."""
        kept = {alias: adapter for alias, adapter in self.adapters.items() if alias in aliases}
        return replace(self, adapters=kept)


@dataclass(frozen=True)
class ExpectedDrive:
    """A drive as the inventory names it; None where the inventory says nothing."""

    id: str
    model: str | None
    firmware: str | None
    port: int | None


@dataclass(frozen=True)
class ExpectedAdapter:
    """An adapter as the inventory names it."""

    alias: str
    driver: str | None
    pci: str | None
    drives: tuple[ExpectedDrive, ...]


_NAMES = ("id", "file", "wwn", "serial")
"""What names a drive, the first that is there: run.json has the id, an inventory what it is made of."""


def expected_of(adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, ExpectedAdapter]:
    """The inventory's adapters, as `run.json` and `storqual inventory --json` print them."""
    return {
        alias: ExpectedAdapter(
            alias=alias,
            driver=entry.get("driver"),
            pci=entry.get("pci"),
            drives=tuple(
                ExpectedDrive(
                    id=next((str(drive[name]) for name in _NAMES if drive.get(name)), ""),
                    model=drive.get("model"),
                    firmware=drive.get("revision"),
                    port=drive.get("port"),
                )
                for drive in entry.get("drives") or ()
            ),
        )
        for alias, entry in adapters.items()
    }


def _adapter(alias: str, entry: Mapping[str, Any]) -> AdapterSeen:
    module, link = entry.get("module") or {}, entry.get("link") or {}
    drives = entry.get("drives") or {}
    return AdapterSeen(
        alias=alias,
        firmware=_text(entry.get("firmware")),
        driver=_text(entry.get("driver")),
        module=_text(module.get("name")),
        version=_text(module.get("version")),
        srcversion=_text(module.get("srcversion")),
        link=(_text(link.get("speed")), link.get("width")),
        link_max=(_text(link.get("speed_max")), link.get("width_max")),
        drives={str(name): _drive(str(name), drive) for name, drive in drives.items()},
    )


def _drive(name: str, entry: Mapping[str, Any]) -> DriveSeen:
    link = entry.get("link") or {}
    depth = _text(entry.get("queue_depth"))
    return DriveSeen(
        id=name,
        adapter_pci=_text(entry.get("adapter")),
        port=link.get("port"),
        link_rate=_text(link.get("rate")),
        model=_text(entry.get("model")),
        firmware=_text(entry.get("revision")),
        state=_text(entry.get("state")),
        # the SCSI disk driver asked the drive itself; the block layer's word is all there is for others
        write_cache=_text(entry.get("cache")) or _text(entry.get("write_cache")),
        queue_depth=int(depth) if depth.isdigit() else None,
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def fail_with(problems: Iterable[str]) -> None:
    """Raise AssertionError with every problem on a line of its own; nothing for none."""
    listed = list(problems)
    if listed:
        raise AssertionError("\n".join(listed))


def not_judged_with(problems: Iterable[str]) -> None:
    """Raise NotJudgedError likewise: what is wrong is the rig or the record, not what is qualified."""
    listed = list(problems)
    if listed:
        raise NotJudgedError("\n".join(listed))
