# SPDX-License-Identifier: Apache-2.0
"""What a drop or a session declares for one bench, as the document that the module `bench_apply` takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from storqual.checks.plan_record import recorded
from storqual.inputs import find_drop, load_drop
from storqual.inputs.lab import read_lab
from storqual.inputs.shape import raise_all, unknown
from storqual.plan.inputs import DropFile
from storqual.plan.refusals.drops import drop_problems, emulator_problems, file_problems, queue_problems
from storqual.plan.resolve import Resolved, narrowed, resolve
from storqual.run import Run
from storqual.run.files import DAMAGE, damage_sentences
from storqual_core.kit.errors import BadInputError
from storqual_core.provision.boot import HUNG_TASK_S
from storqual_core.provision.firmware.subject import REDFISH, file_digest

OS_SETTINGS = ("governor", "irq_affinity")
"""What is set on the running kernel; the rest of the section `os` takes a boot, or is a drive's."""


def declared_document(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a bench's specification in a plan; every key is always there.

    `files` must be on the bench, below its state folder, before anything is applied. The folder of each is its
    digest: two files of one name do not meet, and what is there stays right.
    """
    driver, system, as_found = (spec.get(name) or {} for name in ("driver", "os", "as_found"))
    files: list[dict[str, str]] = []
    images = [_image(image, files) for image in spec.get("firmware") or []]
    return {
        "change": spec.get("change") or "",
        # adapters first: a drive is flashed by way of its adapter
        "firmware": sorted(images, key=lambda image: (bool(image["drives"]), image["firmware"]["tool"] == REDFISH)),
        "driver": {
            "kernel": _kernel(driver.get("kernel") or {}, files),
            "modules": sorted(set((spec.get("expected_drivers") or {}).values())),
            "cmdline": [
                *(system.get("cmdline") or []),
                *([f"maxcpus={system['cpus']}"] if system.get("cpus") else []),
            ],
            "options": driver.get("options") or {},
            "options_as_found": _options_as_found(as_found),
            "build": _build(driver, files),
            "build_as_found": any(name in (as_found.get("driver") or {}).get("", ()) for name in _BUILDS),
            "fresh_boot": spec.get("boot") == "always",
            "panic_at_boot": bool((spec.get("virtual") or {}).get("panic_at_boot")),
            "hung_task_s": spec.get("hung_task_s") or HUNG_TASK_S,
            **({"nmi": True} if spec.get("nmi") else {}),
        },
        "nvram": {
            "settings": spec.get("nvram") or {},
            "start": _starting_adapters(spec),
            "as_found": as_found.get("nvram") or {},
        },
        "os": {
            "settings": {name: system[name] for name in OS_SETTINGS if name in system},
            "as_found": [name for name in OS_SETTINGS if name in (as_found.get("os") or {}).get("", ())],
            # of a campaign alone: what `setup` sets stays
            "hung_task_s": spec.get("hung_task_s") or 0,
        },
        "multipath": {
            "settings": spec.get("multipath") or {},
            "as_found": sorted((as_found.get("multipath") or {}).get("", ())),
        },
        "drive": {"settings": spec.get("drive") or {}, "as_found": as_found.get("drive") or {}},
        # `only`: volumes of another configuration of this bench may be there and must not stay
        "raid": {"volumes": spec.get("raid") or [], "only": bool(spec.get("raid") or as_found.get("raid"))},
        "virtual": {"iops_limit": (spec.get("virtual") or {}).get("iops_limit") or {}},
        "files": files,
    }


def refuse_foreign_files(run: Run, inventories: Sequence[str]) -> None:
    """Raise BadInputError for files of this machine that a plan which is not this user's would have a bench given.

    What lies in the folder of drops of an inventory that he names is meant. A plan that is none is refused, too.
    """
    provision = {} if recorded(run, "inventories") else run.document.get("provision") or {}
    own = [((path if path.is_dir() else path.parent) / "drops").resolve() for path in map(Path, inventories)]
    try:
        specs = [spec for bench in provision.values() for spec in bench.values()]
        copied = [entry for each in map(declared_document, specs) for entry in (*each["files"], *each["firmware"])]
        files = {str(entry.get("from") or entry["file"]): None for entry in copied}
        foreign = [file for file in files if not any(Path(file).resolve().is_relative_to(folder) for folder in own)]
    except DAMAGE as problem:
        raise BadInputError([f"{run.path}/{line}" for line in damage_sentences(run.path, problem)]) from None
    raise_all(
        f"{run.path}: {file} is of this machine, and somebody else planned that benches get it; put yours into the"
        " drops of your inventory, or plan a run yourself"
        for file in foreign
    )


def _image(image: Mapping[str, Any], files: list[dict[str, str]]) -> dict[str, Any]:
    """An image with its adapters and drives, as the flash takes it; the files that it needs are added to `files`."""
    component = image.get("component") or "firmware"
    # the management controller takes its image from the control node
    needed: list[dict[str, str]] = [] if image["tool"] == REDFISH else files
    return {
        "adapters": list(image.get("adapters") or ()),
        "drives": list(image.get("drives") or ()),
        "file": image["file"],
        **({"answers_within": image["answers_within"]} if image.get("answers_within") else {}),
        "firmware": {
            **_on_bench(image, needed),
            "tool": image["tool"],
            "component": component,
            "activation": image["activation"],
            "from": list(image.get("from") or ()),
            "boards": list(image.get("boards") or ()),
            "rollback": [{**_on_bench(each, needed), "component": component} for each in image.get("rollback") or ()],
        },
    }


def _on_bench(image: Mapping[str, Any], files: list[dict[str, str]]) -> dict[str, str]:
    signature = image.get("signature") or {}
    named = {"path": image["file"], "signature": signature.get("file", ""), "key": signature.get("key", "")}
    entry = {"sha256": image["sha256"], "version": image.get("version") or ""}
    for name, source in named.items():
        entry[name] = f"firmware/{image['sha256']}/{PurePath(source).name}" if source else ""
        if source:
            digest = image["sha256"] if name == "path" else _digest(source)
            files.append({"subsystem": "firmware", "from": source, "to": entry[name], "sha256": digest})
    return entry


def _package_file(source: str, files: list[dict[str, str]]) -> str:
    digest = _digest(source)
    path = f"packages/{digest}/{PurePath(source).name}"
    files.append({"subsystem": "driver", "from": source, "to": path, "sha256": digest})
    return path


def _kernel(kernel: Mapping[str, Any], files: list[dict[str, str]]) -> dict[str, Any]:
    """A kernel by the name of its package, or by files as the bench has them."""
    named = {"files": [_package_file(source, files) for source in kernel["files"]]} if "files" in kernel else {}
    return {**kernel, **named}


_BUILDS = ("dkms", "kmod", "module")


def _build(driver: Mapping[str, Any], files: list[dict[str, str]]) -> dict[str, Any]:
    """A DKMS package, packages with a built driver or a prebuilt module as the bench has it; empty without any."""
    package, kmod, prebuilt = (driver.get(name) or {} for name in _BUILDS)
    named = [package.get("package"), *(kmod.get("files") or ()), kmod.get("driver_disk"), prebuilt.get("file")]
    sources = [str(source) for source in named if source]
    if not sources:
        return {}
    module = package.get("module") or kmod.get("module") or PurePath(sources[0]).name.partition(".ko")[0]
    return {
        "module": str(module),
        "version": str(package.get("version") or kmod.get("version") or ""),
        "paths": [_package_file(source, files) for source in sources],
        "kmod": str(kmod.get("as") or ""),
        "sha256": str(prebuilt.get("sha256") or ""),
    }


def _digest(file: str) -> str:
    """The digest of a file on the control node; empty for one that is gone, which the copy will say."""
    try:
        return file_digest(Path(file))
    except OSError:
        return ""


def _options_as_found(as_found: Mapping[str, Any]) -> bool:
    """Whether only the other arm has module options, or a throttle that may have become one."""
    options = any("options" in names for names in (as_found.get("driver") or {}).values())
    return options or any("execution_throttle" in names for names in (as_found.get("nvram") or {}).values())


def _starting_adapters(spec: Mapping[str, Any]) -> list[str]:
    """The adapters whose drivers start again in any case: neighbours of one arm are two sessions."""
    again = spec.get("change") == "reload" and spec.get("boot") == "never" and spec.get("kind") != "local"
    return list(spec.get("adapters") or ()) if again else []


def resolve_drop(sources: Sequence[Path], bench: str, drop: str, adapters: Sequence[str] = ()) -> dict[str, Any]:
    """The bench as its inventory describes it, what the drop declares for it, and why it is `left_out` if it is.

    Raises BadInputError for files that cannot be used, a bench or an adapter that the lab does not have, and names in
    the drop that nothing in the lab has. A bench without any of the adapters is left out: nothing is declared for it.
    """
    whole, _, problems = read_lab(sources)
    benches = whole.benches
    if bench not in benches:
        raise_all(problems)
        raise BadInputError([f"{sources[0]}: {unknown('bench', bench, benches, most=len(benches))}"])
    here = benches[bench]
    known = list(dict.fromkeys(alias for each in benches.values() for alias in each.adapters))
    raise_all(
        f"--adapters: {unknown('adapter', alias, known, most=len(known))}" for alias in adapters if alias not in known
    )
    path = find_drop(drop, sources)
    manifest = load_drop(path)
    own = [alias for alias in here.adapters if alias in adapters]
    under_test = own if adapters else [alias for alias, adapter in here.adapters.items() if adapter.claimed]
    file = DropFile(manifest, path)
    problems = list(drop_problems(file, list(benches.values())))
    manifest = narrowed(manifest, [alias for alias in known if adapters and alias not in adapters])
    applied = [DropFile(manifest, path)]
    problems += [*queue_problems(applied, [(here, under_test)]), *file_problems(applied, [(here, under_test)])]
    problems += emulator_problems(applied[0], list(benches.values()), [] if adapters and not own else [here])
    raise_all(problems)
    left_out = f"{bench} has no adapter {' or '.join(adapters)}" if adapters and not own else ""
    spec = (Resolved() if left_out else resolve(manifest, here, under_test)).to_json()
    spec["expected_drivers"] = {
        alias: here.adapters[alias].driver for alias in under_test if here.adapters[alias].driver
    }
    described = {"bench": here.model_dump(mode="json", exclude_none=True), "declared": declared_document(spec)}
    return {**described, **({"left_out": left_out, "told": f"left out: {left_out}"} if left_out else {})}
