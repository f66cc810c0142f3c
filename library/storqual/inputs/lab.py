# SPDX-License-Identifier: Apache-2.0
"""Read an inventory: what Ansible makes of it, with the lines of the files it came from."""

import fnmatch
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.files import project_root
from storqual.inputs.find import GATE, WAIVERS, parse_json, read_json
from storqual.inputs.inventory import Inventory, read_benches
from storqual.inputs.shape import raise_all, unknown
from storqual.inputs.yaml_file import Document, Keys, TooLargeError, read_yaml
from storqual_core.kit.durable import kind_of
from storqual_core.kit.errors import BadInputError, StorqualError

GROUP = "benches"
"""The group whose hosts are benches."""

_OWN = (GATE, WAIVERS, "keys.yml")
"""Files beside an inventory that hold no hosts."""

_ENTRY = f"YAML: `{GROUP}:`, below it `hosts:`, and below that each test server with its variables"
_SECTION = re.compile(r"\[[\w:.-]+\]\s*(?:[#;].*)?")
_SUFFIXES = (".yml", ".yaml")
_VARS = ("host_vars", "group_vars")
_TIMEOUT = 120.0


def load_inventory(sources: Sequence[Path], *, limit: str | None = None) -> Inventory:
    """The benches of an inventory. Raises BadInputError with every problem, also when no bench matches `limit`."""
    inventory, problems = read_inventory(sources, limit=limit)
    raise_all(problems)
    return inventory


def read_inventory(sources: Sequence[Path], *, limit: str | None = None) -> tuple[Inventory, list[str]]:
    """The benches and all problems, for a caller that has more files to check before it complains."""
    _, inventory, problems = read_lab(sources, limit=limit)
    return inventory, problems


def read_lab(sources: Sequence[Path], *, limit: str | None = None) -> tuple[Inventory, Inventory, list[str]]:
    """All benches of an inventory, those that `limit` means, and all problems with the latter.

    A `.json` file is the output of `ansible-inventory --list`; anything else is given to ansible-inventory.
    Raises BadInputError when Ansible cannot read it at all, or no bench matches `limit`.
    """
    hosts = _benches_of(sources)
    chosen = _limited(sources, hosts, limit)
    name = " ".join(str(source) for source in sources)
    folder = next((source if source.is_dir() else source.parent for source in sources), Path()).resolve()
    documents = _documents(sources, hosts, name)
    inventory, problems = read_benches({host: hosts[host] for host in chosen}, documents, folder)
    problems += _doubled_keys(sources)
    whole = inventory if len(chosen) == len(hosts) else read_benches(hosts, documents, folder)[0]
    return whole, inventory, problems


def bench_names(sources: Sequence[Path], limit: str | None) -> list[str]:
    """The names of the benches that `limit` means. Raises BadInputError with what there is when it means none."""
    return _limited(sources, _benches_of(sources), limit)


def host_variables(sources: Sequence[Path], name: str) -> dict[str, Any]:
    """All variables of a bench as they are written: templates in them are not filled."""
    return _benches_of(sources).get(name, {})


def _benches_of(sources: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Host variables by bench. Raises BadInputError when there is no bench."""
    listed = list_inventory(sources)
    hosts = _hosts(listed)
    if not hosts:
        raise_all(_without_hosts(sources))
        raise_all(_other_groups(sources))
        name = " ".join(str(source) for source in sources)
        raise BadInputError([f"{name}: no host is in the group `{GROUP}`; {_REMEDY}"])
    return hosts


_REMEDY = f"put the test servers under `{GROUP}:` and its `hosts:`"


def _other_groups(sources: Sequence[Path]) -> Iterator[str]:
    """Files whose hosts are in groups that storqual does not look at, with the line of the first."""
    for file in _files(sources):
        document = read_yaml(file, foreign_tags=True)
        groups = [str(key) for key in document.data] if isinstance(document.data, dict) else []
        named = [group for group in groups if group == "all" or (group, "hosts") in document.lines]
        named = [group for group in named if group != GROUP]
        if named or GROUP in groups:
            others = f"; this file has {' and '.join(f'`{group}`' for group in named)}" if named else ""
            yield document.about(((named or [GROUP])[0],), f"no host is in the group `{GROUP}`{others}; {_REMEDY}")


def _doubled_keys(sources: Sequence[Path]) -> Iterator[str]:
    """Keys that stand twice in one mapping, such as a host: Ansible takes the last one and loses the first."""
    for file in _files(sources):
        try:
            yield from read_yaml(file, foreign_tags=True).problems
        except BadInputError:
            # not YAML, or not ours: Ansible has read what it needs from it
            continue


def _limited(sources: Sequence[Path], hosts: Mapping[str, Any], limit: str | None) -> list[str]:
    """The benches that a pattern means, in the order of the inventory. Raises BadInputError when it means none."""
    if limit is None:
        return list(hosts)
    named = {word.strip() for word in limit.split(",") if word.strip()}
    if named <= hosts.keys():
        chosen = [host for host in hosts if host in named]
    elif sources[0].suffix == ".json":
        chosen = [host for host in hosts if _matches(host, limit)]
    else:
        # groups, ranges, exclusions: what a pattern means, only Ansible says
        meant = _hosts(list_inventory(sources, limit=limit))
        chosen = [host for host in hosts if host in meant]
    if not chosen:
        raise BadInputError([f"--limit: {unknown('bench', limit, hosts, most=len(hosts))}"])
    return chosen


def inventory_from_hostvars(hosts: Mapping[str, Mapping[str, Any]]) -> Inventory:
    """The benches of host variables that somebody has already. Raises BadInputError with every problem."""
    documents = {host: Document(f"inventory, host {host}", None, {}) for host in hosts}
    inventory, problems = read_benches(hosts, documents, Path.cwd())
    raise_all(problems)
    return inventory


def list_inventory(sources: Sequence[Path], *, limit: str | None = None) -> dict[str, Any]:
    """What `ansible-inventory --list` says. Raises BadInputError with Ansible's own words when it cannot."""
    missing = missing_inventories(sources)
    if not sources:
        missing.append("an inventory is needed (-i)")
    raise_all(missing)
    wanted = "a .json inventory is the output of ansible-inventory --list"
    if len(sources) == 1 and sources[0].suffix == ".json":
        listed, _ = read_json(sources[0], wanted, _unmarked)
    else:
        raise_all(_unbounded(sources))
        listed = parse_json(_ask_ansible(sources, limit), str(sources[0]), wanted, _unmarked)
    if not isinstance(listed, dict):
        raise BadInputError([f"{sources[0]}: not the output of ansible-inventory --list"])
    return listed


def missing_inventories(sources: Sequence[Path]) -> list[str]:
    return [f"{source}: no such inventory; expected a folder or a file" for source in sources if not source.exists()]


def _unbounded(sources: Sequence[Path]) -> Iterator[str]:
    """What Ansible would read for ever, or expand: pipes and devices, files too large, aliases of aliases."""
    for source in sources:
        inside = chain(source.iterdir(), *((source / name).rglob("*") for name in _VARS)) if source.is_dir() else ()
        for file in (source, *sorted(inside)):
            kind = kind_of(file.stat().st_mode) if file.exists() else ""
            if kind and not file.is_dir():
                yield f"{file}: this is {kind}; expected a regular file"
    for file in _files(sources):
        try:
            read_yaml(file, foreign_tags=True)
        except TooLargeError as problem:
            yield from problem.problems
        except BadInputError:
            # Ansible says so, or reads what is no YAML
            continue


def _matches(host: str, limit: str) -> bool:
    """Whether a host is meant, for a list that Ansible has made before: names with `*`, separated by commas."""
    return any(fnmatch.fnmatchcase(host, pattern.strip()) for pattern in limit.split(","))


def _unmarked(entry: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A text that its author marked `!unsafe` is text for us like any other."""
    return entry["__ansible_unsafe"] if set(entry) == {"__ansible_unsafe"} else entry


def _ask_ansible(sources: Sequence[Path], limit: str | None) -> str:
    program = Path(sys.executable).parent / "ansible-inventory"
    argv = [str(program) if program.is_file() else "ansible-inventory", "--list"]
    for source in sources:
        argv += ["-i", str(source)]
    if limit is not None:
        argv += ["--limit", limit]
    # a configuration in the working directory must not change what the inventory says; Ansible wants an UTF-8 locale
    environment = {"ANSIBLE_CONFIG": str(project_root() / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
    # what a verbose Ansible tells of itself stands in front of its answer
    environment["ANSIBLE_VERBOSITY"] = "0"
    try:
        done = child.run(
            argv, env=environment, timeout=_TIMEOUT, capture_output=True, encoding="utf-8", errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise StorqualError(f"{argv[0]}: {problem}; is the environment complete (`make setup`)?") from None
    if done.returncode != 0:
        complaints = [
            line.strip() for line in done.stderr.splitlines() if "ERROR" in line or "Failed to parse" in line
        ]
        if limit is not None and any("pattern" in line.lower() for line in complaints):
            return "{}"
        # Ansible names no line: our own reading of the same files does
        located = list(_ini_files(sources))
        for file in _files(sources) if not located else ():
            try:
                if read_yaml(file, foreign_tags=True).data is None:
                    located.append(f"{file}:1: this file is empty; it needs hosts in the group `{GROUP}`")
            except BadInputError as problem:
                located += problem.problems
        raise_all(located or _without_hosts(sources))
        text = " ".join(complaints[:3]) or done.stderr.strip()[-300:] or f"status {done.returncode}"
        raise BadInputError([f"{sources[0]}: Ansible cannot read this inventory ({text})"])
    return str(done.stdout)


def _ini_files(sources: Sequence[Path]) -> Iterator[str]:
    """Inventories in Ansible's older form, which has no place for adapters and drives."""
    for source in sources:
        for file in sorted(source.iterdir()) if source.is_dir() else [source]:
            if not file.is_file() or file.name.startswith("."):
                continue
            with file.open(encoding="utf-8", errors="replace") as stream:
                lines = enumerate((line.strip() for line in stream), start=1)
                number, first = next(((n, line) for n, line in lines if line and line[0] not in "#;"), (1, ""))
            if _SECTION.fullmatch(first):
                yield f"{file}:{number}: this inventory is in INI form; write it as {_ENTRY}"


def _without_hosts(sources: Sequence[Path]) -> list[str]:
    """Folders that hold no file in which hosts could be."""
    return [
        f"{source}: this folder has no inventory; expected the file hosts.yml, with hosts in the group `{GROUP}`"
        for source in sources
        if source.is_dir()
        and all(file.is_dir() or file.name in _OWN or file.name.startswith(".") for file in source.iterdir())
    ]


def _hosts(listed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Host variables of every host in the group of benches, in the order of the inventory."""
    names: dict[str, None] = {}

    def walk(group: str, seen: frozenset[str]) -> None:
        entry = listed.get(group)
        if not isinstance(entry, dict) or group in seen:
            return
        for host in entry.get("hosts") or ():
            names.setdefault(str(host))
        for below in entry.get("children") or ():
            walk(str(below), seen | {group})

    walk(GROUP, frozenset())
    meta = listed.get("_meta")
    variables = meta.get("hostvars") if isinstance(meta, dict) else None
    variables = variables if isinstance(variables, dict) else {}
    return {name: dict(variables.get(name) or {}) for name in names}


def _documents(sources: Sequence[Path], hosts: Mapping[str, Any], name: str) -> dict[str, Document]:
    """For each host a document that knows where its `storqual_...` variables stand.

    Ansible's output has no lines. Where a variable is found in the files (beside the host, in its host_vars, else in
    a group) its lines are those; where it is not, messages name the inventory and the host.
    """
    shared: list[_Use] = []
    own: defaultdict[str, list[_Use]] = defaultdict(list)
    bare: dict[str, Document] = {}
    for file in _files(sources):
        try:
            document = read_yaml(file, foreign_tags=True)
        except BadInputError:
            # not YAML, or not ours: Ansible has read what it needs from it
            continue
        for use in _uses(document):
            owner = use.owner(file)
            (shared if owner is None else own[owner]).append(use)
        for keys, line in document.lines.items():
            if keys[-2:-1] == ("hosts",):
                bare.setdefault(str(keys[-1]), Document(document.name, None, {(): line}))
    documents = {}
    for host in hosts:
        uses = own[host] + shared
        label = uses[0].document.name if uses else f"{name}, host {host}"
        lines: dict[Keys, int] = {}
        for use in uses:
            if use.document.name == label:
                for inner, line in use.lines.items():
                    lines.setdefault(inner, line)
                lines.setdefault((), use.document.line(use.keys[:-1]))
        documents[host] = bare[host] if not uses and host in bare else Document(label, None, lines)
    return documents


@dataclass(frozen=True)
class _Use:
    """One variable of ours in one file: where it stands, and the lines of what is in it."""

    document: Document
    keys: Keys
    lines: dict[Keys, int]

    def owner(self, file: Path) -> str | None:
        """The host it belongs to; None for all hosts of a group."""
        if len(self.keys) >= 3 and self.keys[-3] == "hosts":
            return str(self.keys[-2])
        if "host_vars" in file.parts:
            return file.stem if file.parent.name == "host_vars" else file.parent.name
        return None


def _uses(document: Document) -> list[_Use]:
    """Every `storqual_...` variable of a file with its lines, in one pass."""
    uses: dict[Keys, _Use] = {}
    for keys, line in document.lines.items():
        for depth, step in enumerate(keys):
            if isinstance(step, str) and step.startswith("storqual_"):
                top = keys[: depth + 1]
                use = uses.setdefault(top, _Use(document, top, {}))
                use.lines[(step, *keys[depth + 1 :])] = line
                break
    return list(uses.values())


def _files(sources: Sequence[Path]) -> Iterator[Path]:
    """The YAML files of an inventory that may hold host variables; drops and other folders are none of it."""
    for source in sources:
        if source.is_file():
            yield source
            continue
        if not source.is_dir():
            continue
        yield from sorted(file for file in source.iterdir() if file.is_file() and file.suffix in _SUFFIXES)
        for folder in _VARS:
            yield from sorted(
                file for file in (source / folder).rglob("*") if file.is_file() and file.suffix in _SUFFIXES
            )
