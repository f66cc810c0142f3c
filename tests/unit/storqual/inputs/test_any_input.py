# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a file: the loaders give problems with lines, never another exception."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from storqual.inputs.drop import read_drop
from storqual.inputs.inventory import read_benches
from storqual.inputs.policy import read_gate, read_waivers
from storqual.inputs.suite_file import read_suite
from storqual.inputs.yaml_file import Document
from storqual_core.kit.errors import BadInputError

pytestmark = pytest.mark.slow

WORDS = """
driver kernel package options dkms module firmware file sha256 tool from activation nvram execution_throttle
drive  WCE queue_depth scheduler raid level members strip os cmdline governor virtual iops_limit all unplug
after_s  panic_at_boot on adapter model drives name description workloads factors bs iodepth rw criteria metric
against  margin min max unit at profiles cells runtime ramp sessions vary defaults costs waivers criterion owner
expiry iops  read randwrite quick baseline absolute peers 4k 3% 1 0 -1 true off 2s 10.5 0x10 .nan .inf {{7*7}}
drive.WCE
""".split()  # noqa: SIM905 - forty words are easier read than listed

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(st.characters(codec="utf-8", exclude_characters="\x85"), max_size=8),
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=6), inner, max_size=5)
    ),
    max_leaves=25,
)
readers = st.sampled_from([read_drop, read_suite, read_gate, read_waivers])
LINE = re.compile(r"\S+:\d+: \S.* \S", re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(reader=readers, value=values)
@example(reader=read_drop, value={"[key]": None})
@example(reader=read_drop, value={"drive": {"[key]": 1, "on": {"[key]": 2}}})
def test_any_value_is_read_or_told_with_its_line(
    folder: Path, reader: Callable[[Path], tuple[object, list[str]]], value: Any
) -> None:
    path = folder / "any.suite.yml"
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        read, problems = reader(path)
    except BadInputError as refused:
        problems, read = refused.problems, None
    assert all(LINE.match(problem) for problem in problems)
    if read is None:
        assert problems


HOST_WORDS = """
storqual_kind storqual_adapters storqual_virtual storqual_state_dir storqual_under_test storqual_adapter local
virtual  hardware model drives wwn serial size claim file vendor port pci ceiling slot link device adapters cpus
memory sym
""".split()  # noqa: SIM905 - forty words are easier read than listed
host_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(HOST_WORDS), inner, max_size=5)
    ),
    max_leaves=25,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(HOST_WORDS[:6]), host_values, max_size=6))
def test_any_host_variables_are_read_or_told(variables: dict[str, Any]) -> None:
    inventory, problems = read_benches({"b": variables}, {"b": Document("hosts.yml", None, {})}, Path("/lab"))
    assert problems or inventory.benches["b"].adapters
