# SPDX-License-Identifier: Apache-2.0
"""Put back what was changed of adapters: their NVRAM, and the options of their drivers' modules.

Needs only what is remembered: the adapter's PCI address and tool are in the memory, and an EEPROM is written as the
whole image that it held, whatever it holds now.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..host.adapters import Place, refuse_when_used
from ..kit.errors import ToolError
from ..kit.module_options import in_file, same_value
from ..kit.results import Provisioned
from ..tools import kmod
from ..tools.dc390 import Image
from .build_plan import is_former, take_off, uninstall
from .driver import adapters_of_module, bind_unbound, forget_start, note_starts, pending_starts, reload_module
from .kernel_boot import put_native_back
from .nvram import NvramBench
from .nvram_backend import Backend, backend_of
from .options import OptionsBench, put_file, refresh_initramfs

IMAGE = "image"


@dataclass
class AdapterMemory:
    """The part of saved.json that is about adapters and module options; `file` is None where there was no file."""

    places: dict[str, dict[str, Any]] = field(default_factory=dict)
    nvram: dict[str, dict[str, Any]] = field(default_factory=dict)
    loaded: dict[str, dict[str, str | None]] = field(default_factory=dict)
    builds: dict[str, dict[str, Any]] = field(default_factory=dict)
    has_file: bool = False
    file: str | None = None

    def take(self, setting: str, owner: str, value: Any) -> bool:  # noqa: ANN401 - whatever was remembered
        """Keep a remembered value that is about adapters; whether it was one."""
        section, _, name = setting.partition(".")
        if setting == "adapter":
            self.places[owner] = value
        elif section == "nvram" and name:
            self.nvram.setdefault(owner, {})[name] = value
        elif setting == "build.module":
            self.builds[owner] = value
        elif setting == "options.loaded":
            self.loaded[owner] = value
        elif setting == "options.file":
            self.has_file, self.file = True, value
        else:
            return False
        return True


@dataclass(frozen=True)
class Restored:
    """What was put back: results, what was done, and the values read back by their keys in the memory."""

    settings: Sequence[Provisioned]
    steps: Sequence[str]
    read_back: Mapping[str, Any]


def restore_options(memory: AdapterMemory, bench: OptionsBench, state_dir: str, *, check: bool) -> Restored:
    """Our file as it was, and the modules that run with other options loaded again. Raises StorqualError."""
    if not memory.has_file:
        return Restored((), (), {})
    now = bench.text()
    had, has = in_file(memory.file), in_file(now)
    unfinished = pending_starts(bench.machine, state_dir)
    modules = [
        module
        for module in memory.loaded
        if module in unfinished or _differs(module, memory.loaded[module], had, has, bench)
    ]
    for module in modules:
        what = f"loading {module} again takes it away for a moment"
        refuse_when_used(bench.machine, adapters_of_module(bench.machine, module), state_dir, what)
    steps: list[str] = []
    if not check:
        note_starts(bench.machine, state_dir, modules)
    if not check and now != memory.file:
        put_file(bench, memory.file)
        steps.append(f"{bench.file} {'put back' if memory.file is not None else 'removed'}")
        steps += refresh_initramfs(bench, list(memory.loaded))
    for module in () if check else modules:
        reload_module(bench.machine, bench.runner, module)
        forget_start(bench.machine, state_dir, module)
        steps.append(f"module {module} loaded again as it was found")
    read_back: dict[str, Any] = {"options.file@bench": bench.text()}
    settings = []
    for module, values in memory.loaded.items():
        shown = {name: kmod.loaded_parameter(module, name, bench.machine.path("/sys")) for name in values}
        read_back[f"options.loaded@{module}"] = {
            name: value if _same(value, shown[name]) else shown[name] for name, value in values.items()
        }
        for name, value in values.items():
            old, new = has.get(module, {}).get(name), in_file(bench.text()).get(module, {}).get(name)
            before = had.get(module, {}).get(name) if value is None else value
            after = new if value is None else shown[name]
            settings.append(Provisioned(f"driver.options.{module}.{name}", before, old, after, changed=old != after))
    return Restored(settings, steps, read_back)


def _same(one: str | None, other: str | None) -> bool:
    return one == other or (one is not None and other is not None and same_value(one, other))


def _differs(
    module: str,
    values: Mapping[str, str | None],
    had: Mapping[str, Mapping[str, str]],
    has: Mapping[str, Mapping[str, str]],
    bench: OptionsBench,
) -> bool:
    """Whether a loaded module runs with other options than when it was found."""
    if not bench.machine.exists(f"/sys/module/{module}"):
        return False
    shown = {name: kmod.loaded_parameter(module, name, bench.machine.path("/sys")) for name in values}
    return had.get(module) != has.get(module) or any(not _same(values[name], shown[name]) for name in values)


def take_builds_off(
    memory: AdapterMemory, bench: OptionsBench, state_dir: str, *, check: bool
) -> tuple[list[str], bool]:
    """Take builds that came with a boot off the disk, before the boot that may be needed for the former ones.

    What was done, and whether a former build needs a boot to run. Raises StorqualError.
    """
    steps: list[str] = []
    boots = False
    for owner, was in memory.builds.items():
        if was["boots"]:
            if not check:
                steps += take_off(bench, was)
                native = replace(bench, release=str(was["kernel"])).initrd
                steps += put_native_back(Path(bench.machine.path(native)), state_dir)
            boots = boots or not is_former(bench, owner.partition("/")[0], was)
    return steps, boots


def restore_build(memory: AdapterMemory, bench: OptionsBench, owner: str, state_dir: str, *, check: bool) -> Restored:
    """The build of a driver that was there before, loaded; `owner` is `<module>/<kernel>`. Raises StorqualError."""
    was = memory.builds[owner]
    module = owner.partition("/")[0]
    before = kmod.loaded(module, bench.machine.path("/sys"))
    steps = [] if check else uninstall(bench, module, was, state_dir)
    if not check:
        forget_start(bench.machine, state_dir, module)
    now = kmod.loaded(module, bench.machine.path("/sys"))
    setting = Provisioned(
        f"driver.module.{module}",
        was["srcversion"],
        before.srcversion if before else None,
        now.srcversion if now else None,
        changed=bool(steps),
    )
    return Restored([setting], steps, {f"build.module@{owner}": was} if is_former(bench, module, was) else {})


def restore_nvram(memory: AdapterMemory, bench: NvramBench, alias: str, state_dir: str, *, check: bool) -> Restored:
    """One adapter's NVRAM as it was, its driver started again when that changed anything. Raises StorqualError."""
    values = {name: value for name, value in memory.nvram[alias].items() if name != IMAGE}
    place = _place(memory, alias)
    if not check:
        bind_unbound(bench.machine, [place.pci])
    backend = backend_of(bench.runner, place)
    if backend is None:
        raise ToolError(f"adapter {alias}: nothing here keeps its NVRAM settings any more, {', '.join(values)} stay")
    image = memory.nvram[alias].get(IMAGE)
    before = _read(backend, bench, image)
    wrong = [name for name, value in values.items() if before.get(name) != value]
    if image is not None and before.get(IMAGE) != image:
        wrong = wrong or [IMAGE]
    start = bool(wrong) or place.pci in pending_starts(bench.machine, state_dir)
    if start:
        what = "its adapter's driver must start again to read the NVRAM"
        refuse_when_used(bench.machine, [place.pci], state_dir, what)
    steps: list[str] = []
    if start and not check:
        note_starts(bench.machine, state_dir, [place.pci])
        if image is not None and wrong:
            count = backend.tool.write_image(backend.index, Image.of_hex(image), bench.machine.path("/sys"))
            steps.append(f"{alias}: {count} words of its EEPROM put back")
        else:
            for name in wrong:
                backend.write(bench.runner, name, values[name])
                steps.append(f"{alias}: nvram.{name} set to {values[name]}")
        bench.start_driver(bench.machine, place.pci)
        forget_start(bench.machine, state_dir, place.pci)
        steps.append(f"{alias}: driver {place.driver} started again")
    after = _read(backend, bench, image) if steps else before
    settings = [
        Provisioned(
            f"nvram.{name}",
            value,
            before.get(name),
            after.get(name),
            adapter=alias,
            changed=before.get(name) != after.get(name),
        )
        for name, value in values.items()
    ]
    read_back = {f"nvram.{name}@{alias}": after.get(name) for name in memory.nvram[alias]}
    return Restored(settings, steps, {**read_back, f"adapter@{alias}": memory.places.get(alias)})


def _place(memory: AdapterMemory, alias: str) -> Place:
    known = memory.places.get(alias)
    if not known:
        raise ToolError(f"adapter {alias}: its NVRAM was changed, and where it is was not remembered")
    return Place(
        alias,
        str(known["pci"]),
        str(known["driver"]),
        str(known["module"]),
        tuple(known["hosts"]),
        str(known["tool"]),
    )


def _read(backend: Backend, bench: NvramBench, image: str | None) -> dict[str, Any]:
    """The settings now; with an image also that, and then settings that make no sense are none."""
    if image is None:
        return dict(backend.read(bench.runner))
    now = backend.tool.read_image(backend.index, bench.machine.path("/sys"))
    return {**(now.values() if now.valid else {}), IMAGE: now.hex}
