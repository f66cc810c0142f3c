# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas for editors: what ships is valid by them, slips are not, and none is stricter than its reader."""

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from storqual.cli.schema import NAMES
from storqual.inputs.drop import read_drop
from storqual.inputs.inventory import read_benches
from storqual.inputs.json_schema import SCHEMAS, json_schema, schema_of
from storqual.inputs.policy import load_trust, read_gate, read_waivers
from storqual.inputs.suite_file import read_suite
from storqual.inputs.yaml_file import Document, read_yaml
from storqual_core.kit.errors import BadInputError
from tests.support.site_blocks import REPOSITORY, blocks, pages
from tests.unit.storqual.inputs.test_any_input import scalars

pytestmark = pytest.mark.slow

BY_SCHEMA = {name: Draft202012Validator(json_schema(name)) for name in SCHEMAS}
SHIPPED = [path for folder in ("inventories", "suites") for path in sorted((REPOSITORY / folder).rglob("*.yml"))]
SHOWN = [block for page in pages() for block in blocks(page) if schema_of(Path(block.title))]


def data_of(path: Path) -> Any:
    """A file as its reader takes it; an inventory is read by Ansible, as YAML 1.1."""
    return yaml.safe_load(path.read_bytes()) if schema_of(path) == "hosts" else read_yaml(path).data


def problems_of_hosts(data: Mapping[str, Any]) -> list[str]:
    hosts = {name: variables or {} for name, variables in data["benches"]["hosts"].items()}
    documents = {name: Document("hosts.yml", None, {}) for name in hosts}
    return read_benches(hosts, documents, Path("/lab"))[1]


def problems_of(name: str, data: Any, folder: Path) -> list[str]:
    if name == "hosts":
        return problems_of_hosts(data)
    path = folder / f"any.{name}.yml"
    path.write_text(json.dumps(data, default=str), encoding="utf-8")
    readers: Mapping[str, Callable[[Path], Any]] = {
        "drop": read_drop,
        "suite": read_suite,
        "gate": read_gate,
        "waivers": read_waivers,
        "keys": lambda path: (load_trust(path), []),
    }
    try:
        problems: list[str] = readers[name](path)[1]
    except BadInputError as refused:
        return list(refused.problems)
    return problems


def test_every_kind_that_the_command_names_has_a_schema() -> None:
    assert NAMES == SCHEMAS
    for name in SCHEMAS:
        Draft202012Validator.check_schema(json_schema(name))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_shipped_file_is_valid(path: Path) -> None:
    name = schema_of(path)
    if not name:
        assert path.parent.name in ("group_vars", "published"), "no schema is meant for this file"
        return
    assert not [error.message for error in BY_SCHEMA[name].iter_errors(data_of(path))]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.name)
def test_a_file_that_a_page_shows_is_valid(block: Any, tmp_path: Path) -> None:
    path = tmp_path / block.title
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    assert not [error.message for error in BY_SCHEMA[schema_of(path)].iter_errors(data_of(path))]


def test_files_of_pages_are_found() -> None:
    assert {schema_of(Path(block.title)) for block in SHOWN} == set(SCHEMAS)


BENCH = Path(__file__).with_suffix(".bench").read_text(encoding="utf-8")
SUITE = """
workloads: {w: {rw: randread, factors: {bs: [4k]}}}
criteria: [{metric: iops, against: baseline}]
profiles: {quick: {runtime: 2s}}
"""
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHW9mwCTXohxjesMhr2ymZ9qabziuZ0Q9i1F7QUovZ9O"
KEYS = f"keys: [{{name: T, role: technician, public: {KEY}, expires: 2030-01-01}}]"
WAIVERS = "waivers: [{criterion: iops, owner: o, reason: r, reference: x, expiry: 2030-01-01}]"
SLIPS = [
    ("hosts", BENCH, "storqual_kind: hardware", "storqual_kind: physical"),
    ("hosts", BENCH, "storqual_kind:", "storqual_knd:"),
    ("hosts", BENCH, "serial: S1", "serial: S1, size: 1.2 TB"),
    ("hosts", BENCH, "serial: S1", "serial: S1, claims: true"),
    ("hosts", BENCH, '"0000:3b:00.0"', '"3b:00"'),
    ("hosts", BENCH, '"0x5000c500a0000001"', "/dev/sdb"),
    ("hosts", BENCH, "model: m, ", ""),
    ("drop", "drive: {WCE: 0}", "WCE: 0", "WCE: off"),
    ("drop", "drive: {WCE: 0}", "WCE: 0", "queue_depth: auto"),
    ("drop", "drive: {WCE: 0}", "drive:", "drives:"),
    ("drop", "raid: {level: 5}", "5", "raid5"),
    ("drop", "driver: {kernel: {package: p}}", "{package: p}", "linux-image-6"),
    ("drop", "driver: {kernel: {package: p}}", "package: p", "package: p, files: [a.rpm]"),
    ("drop", "driver: {kernel: {files: [a.rpm]}}", "[a.rpm]", "[a.ko]"),
    ("drop", "driver: {kmod: {files: [a.rpm], module: m}}", "[a.rpm]", "[a.deb]"),
    ("drop", "driver: {kmod: {driver_disk: a.iso, module: m}}", "a.iso", "a.img"),
    ("drop", "driver: {kmod: {driver_disk: a.iso, module: m}}", "a.iso", "a.iso, files: [a.rpm]"),
    ("drop", "driver: {kmod: {files: [a.rpm], module: m}}", "module: m", "as: module"),
    ("drop", "driver: {kmod: {files: [a.rpm], module: m}}", "module: m", "module: m, as: modul"),
    ("drop", "drive: {on: {adapter: hba0}, WCE: 0}", "adapter: hba0", "bench: b1"),
    ("drop", "drive: {on: {adapter: hba0}, WCE: 0}", "hba0", '"hba*"'),
    ("suite", SUITE, "randread", "random_read"),
    ("suite", SUITE, "runtime: 2s", "runtime: 3 minutes"),
    ("suite", SUITE, "against: baseline", "against: base"),
    ("suite", SUITE, "against: baseline", "against: baseline, margin: 3"),
    ("suite", SUITE, "{bs: [4k]}", "{blocksize: [4k]}"),
    ("suite", SUITE, "factors: {bs: [4k]}", "iodepth: 0"),
    ("suite", SUITE, "profiles:", "profile:"),
    ("suite", SUITE, "runtime: 2s", "cells: some"),
    ("gate", "signatures: [technician]", "signatures", "signature"),
    ("gate", "baseline_max_age: 90d", "90d", "a quarter"),
    ("gate", "marginal_passes: true", "true", "sometimes"),
    ("waivers", WAIVERS, "2030-01-01", "31.12.2035"),
    ("waivers", WAIVERS, "owner: o", "owner: o, max_loss: 6"),
    ("waivers", WAIVERS, "owner: o, ", ""),
    ("keys", KEYS, "role: technician", "role: Release Manager"),
    ("keys", KEYS, KEY, "AAAA"),
    ("keys", KEYS, "expires:", "expiry:"),
]


@pytest.mark.parametrize(("name", "text", "right", "wrong"), SLIPS, ids=[f"{s[0]}-{s[3][:30]}" for s in SLIPS])
def test_a_slip_is_refused_by_the_schema_and_by_the_reader(
    name: str, text: str, right: str, wrong: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.yml"
    for version, is_good in ((text, True), (text.replace(right, wrong, 1), False)):
        path.write_text(version, encoding="utf-8")
        data = yaml.safe_load(version) if name == "hosts" else read_yaml(path).data
        assert BY_SCHEMA[name].is_valid(data) is is_good
        assert (not problems_of(name, data, tmp_path)) is is_good


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


def whole_files() -> list[tuple[str, Any]]:
    texts = (("hosts", BENCH), ("keys", KEYS), ("waivers", WAIVERS))
    found = [(name, json.loads(json.dumps(yaml.safe_load(text), default=str))) for name, text in texts]
    for path in SHIPPED:
        name = schema_of(path)
        data = data_of(path) if name else None
        if name == "hosts":
            shared = data["benches"].get("vars") or {}
            data = {"benches": {"hosts": {h: {**shared, **(v or {})} for h, v in data["benches"]["hosts"].items()}}}
        if name and path.stat().st_size < 8000:
            found.append((name, json.loads(json.dumps(data, default=str))))
    return found


FILES = whole_files()


def places(data: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from places(value, (*at, key))


@st.composite
def changed_files(draw: st.DrawFn) -> tuple[str, Any]:
    """A good file in which one thing was removed, replaced, renamed or added."""
    name, data = draw(st.sampled_from(FILES))
    data = copy.deepcopy(data)
    least = 4 if name == "hosts" else 1
    listed = [place for place in places(data) if len(place) >= least]
    *way, last = draw(st.sampled_from(listed))
    around = data
    for step in way:
        around = around[step]
    value = draw(
        scalars.filter(lambda value: not (isinstance(value, float) and math.isnan(value)))
        | st.just([])
        | st.just({})
        | st.just([1, "4k"])
    )
    act = draw(st.sampled_from(["remove", "replace", "replace", "many", "rename", "add"]))
    if act == "remove":
        del around[last]
    elif act == "many":
        around[last] = [around[last]]
    elif act == "replace" or isinstance(around, list):
        around[last] = value
    elif act == "rename":
        around[str(last) + "x"] = around.pop(last)
    else:
        around[draw(st.sampled_from(["on", "name", "claim", "bs", "tool", "storqual_kind"]))] = value
    return name, data


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changed=changed_files())
def test_what_a_schema_refuses_its_reader_refuses(folder: Path, changed: tuple[str, Any]) -> None:
    name, data = changed
    errors = [f"{list(error.absolute_path)}: {error.message[:200]}" for error in BY_SCHEMA[name].iter_errors(data)]
    if errors:
        assert problems_of(name, data, folder), errors


def keys_of(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for part in (schema, *schema.get("$defs", {}).values()):
        for key, value in part.get("properties", {}).items():
            yield key, value, part


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_has_a_meaning_and_a_default_that_the_file_may_say(name: str) -> None:
    schema = json_schema(name)
    skipped = {"benches", "children"}
    assert not [key for key, value, _ in keys_of(schema) if not value.get("description") and key not in skipped]
    for key, value, _ in keys_of(schema):
        if "default" in value:
            validator = Draft202012Validator({**value, "$defs": schema.get("$defs", {})})
            assert validator.is_valid(value["default"]), key


def test_no_meaning_is_told_of_a_key_that_there_is_not() -> None:
    parts = {name: part for schema in map(json_schema, SCHEMAS) for name, part in schema.get("$defs", {}).items()}
    tops = {"DropManifest": "drop", "Suite": "suite", "Gate": "gate", "Trust": "keys"}
    parts |= {model: json_schema(name) for model, name in tops.items()}
    told = json.loads((REPOSITORY / "library/storqual/inputs/key_meanings.json").read_text(encoding="utf-8"))
    told.pop("WaiversFile")
    assert not [
        f"{model}.{key}"
        for model, keys in told.items()
        for key in keys
        if key and key not in parts[model]["properties"]
    ]
