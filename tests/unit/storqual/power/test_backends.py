# SPDX-License-Identifier: Apache-2.0
"""Backends against the programs and services that they call, on loopback."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.bench.ladder import Recovery, SilentBench, climb
from storqual.bench.reboot import Boot
from storqual.inputs.power import read_rendered_power
from storqual.power.backends import IpmiBackend, bench_backends, parse_chassis_power, parse_systems
from storqual.power.switch import PowerBackend, PowerBackendError, SwitchState
from tests.support.power_services import (
    FileSwitch,
    interrupting_controller,
    labgrid_lab,
    management_controller,
    power_daemon,
    python_environment,
    redfish_collection,
    redfish_service,
)

CANARY = "canary-" + "0cc175b9"
"""Sixteen characters, the most that an IPMI password of the first kind has."""
ON, OFF, UNKNOWN = SwitchState


def backend(**entry: Any) -> PowerBackend:
    (made,) = bench_backends(read_rendered_power([entry], "bench01"))
    return made


def awaited(state: Callable[[], str], wanted: str, limit_s: float = 20.0) -> bool:
    """A controller ends its machine some seconds after it was told to."""
    end = time.monotonic() + limit_s
    while state() != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return state() == wanted


class ArgumentsSeen(threading.Thread):
    """The command lines of all processes, every few milliseconds; a process is read in its first second only."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.lines: set[bytes] = set()
        self._ends = threading.Event()

    def run(self) -> None:
        began: dict[Path, float] = {}
        while not self._ends.wait(0.002):
            now = time.monotonic()
            began = {process: began.get(process, now) for process in Path("/proc").glob("[0-9]*")}
            for process in (process for process, at in began.items() if now - at < 1):
                with suppress(OSError):
                    self.lines.add((process / "cmdline").read_bytes())

    def __enter__(self) -> "ArgumentsSeen":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self.join()


@pytest.fixture
def switch(tmp_path: Path) -> FileSwitch:
    return FileSwitch.made(tmp_path)


def test_ipmi_switches_a_machine_and_its_password_is_no_argument(switch: FileSwitch) -> None:
    with management_controller(switch, CANARY) as port:
        bmc = {"host": "127.0.0.1", "port": port, "user": "storqual", "password": CANARY, "cipher": 3}
        ipmi = backend(ipmi=bmc)
        with ArgumentsSeen() as seen:
            assert ipmi.state() == OFF
            ipmi.on()
            assert awaited(lambda: switch.state, "on")
            assert ipmi.state() == ON
            ipmi.off()
            assert awaited(lambda: switch.state, "off")
            assert ipmi.state() == OFF
    assert any(b"ipmitool" in line for line in seen.lines)
    assert not any(CANARY.encode() in line for line in seen.lines)


def hung(ask: Callable[[float], str], port: int, **more: Any) -> Recovery:
    """What the ladder makes of a bench that hangs behind the controller at that port."""
    bmc = {"host": "127.0.0.1", "port": port, "user": "storqual", "password": CANARY, "cipher": 3}
    ipmi = backend(ipmi=bmc)
    assert isinstance(ipmi, IpmiBackend)
    bench = SilentBench(boot_id="before", ask=ask, hangs=True, nmi=ipmi.interrupt, **more)
    return climb(bench, "it hangs", limit_s=120.0, tell=print, clock=time.monotonic, sleep=time.sleep)


@pytest.mark.long
def test_an_nmi_of_a_controller_ends_a_hang(programs: Path, tmp_path: Path) -> None:
    with interrupting_controller(tmp_path, programs, CANARY) as (port, nmi), ArgumentsSeen() as seen:
        # a kernel that is told to panics by it, and boots anew
        ended = hung(lambda _limit_s: "after" if nmi.exists() else "", port)
    assert (ended.ended_by, ended.boot_id) == ("NMI", "after")
    assert not any(CANARY.encode() in line for line in seen.lines)


def test_where_a_controller_refuses_to_send_an_nmi_the_power_is_cycled(switch: FileSwitch) -> None:
    with management_controller(switch, CANARY) as port:
        cycled: list[str] = []

        def cycle(reason: str) -> SimpleNamespace:
            cycled.append(reason)
            return SimpleNamespace(boot=Boot("after", "6.1"))

        ended = hung(lambda _limit_s: "after" if cycled else "", port, cycle_power=cycle)
    assert (ended.ended_by, ended.boot_id) == ("power cycle", "after")


def test_a_controller_that_refuses_the_password_is_an_error_without_it(switch: FileSwitch) -> None:
    with management_controller(switch, "another") as port:
        bmc = {"host": "127.0.0.1", "port": port, "user": "storqual", "password": CANARY, "cipher": 3}
        with pytest.raises(PowerBackendError) as problem:
            backend(ipmi=bmc).state()
    assert CANARY not in str(problem.value)


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        ({"ipmi": {"host": "a", "user": "b", "password": CANARY}}, "ipmitool"),
        ({"labgrid": {"place": "bench1"}}, "labgrid"),
        ({"command": {"on": ["lab-power"], "off": ["lab-power"], "state": ["lab-power"]}}, "lab-power"),
    ],
)
def test_a_program_that_is_not_installed_is_one_sentence(
    entry: dict[str, Any], remedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("storqual_core.kit.command._ADMINISTRATION", ())
    for call in (backend(**entry).state, backend(**entry).on, backend(**entry).off):
        with pytest.raises(PowerBackendError, match="is not installed") as problem:
            call()
        assert "\n" not in str(problem.value)
        assert remedy in str(problem.value)
        assert CANARY not in str(problem.value)


def test_all_outlets_are_switched_and_none_is_known(switch: FileSwitch, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    second = FileSwitch.made(tmp_path / "b")
    with power_daemon({"rack3a": switch, "rack3b": second}, tmp_path) as url:
        outlets = [{"pdu": "rack3a", "port": 7}, {"pdu": "rack3b", "port": 7}]
        pdu = backend(pdudaemon={"url": url, "outlets": outlets})
        pdu.off()
        assert awaited(lambda: switch.state + second.state, "offoff")
        assert pdu.state() == UNKNOWN
        pdu.on()
        assert awaited(lambda: switch.state + second.state, "onon")
    assert pdu.off_for_s == 30.0


def test_an_outlet_that_fails_leaves_no_other_one_unswitched(switch: FileSwitch, tmp_path: Path) -> None:
    with power_daemon({"rack3b": switch}, tmp_path) as url:
        outlets = [{"pdu": "rack3a", "port": 7}, {"pdu": "rack3b", "port": 7}]
        with pytest.raises(PowerBackendError, match="rack3a port 7"):
            backend(pdudaemon={"url": url, "outlets": outlets}).off()
        assert awaited(lambda: switch.state, "off")


def test_a_command_switches_and_says_what_is(switch: FileSwitch) -> None:
    program = str(switch.program)
    own = backend(command={"on": [program, "on"], "off": [program, "off"], "state": [program, "state"]})
    assert own.state() == ON
    own.off()
    assert (own.state(), switch.state) == (OFF, "off")
    own.on()
    assert own.state() == ON


@pytest.mark.parametrize(("said", "state"), [("maybe", UNKNOWN), ("", UNKNOWN), ("power is OFF", OFF)])
def test_what_a_command_says_is_on_off_or_unknown(said: str, state: SwitchState) -> None:
    assert backend(command={"on": ["true"], "off": ["true"], "state": ["echo", said or "-n"]}).state() == state


def test_a_command_that_fails_is_an_error_with_its_last_words() -> None:
    failing = backend(command={"on": ["sh", "-c", "echo out of order >&2; exit 3"], "off": ["true"]})
    with pytest.raises(PowerBackendError, match=r"status 3: out of order"):
        failing.on()
    assert failing.state() == UNKNOWN


def test_two_backends_of_one_kind_have_names_of_their_own() -> None:
    entries = [{"ipmi": {"host": host, "user": "u", "password": "p"}} for host in ("a", "b")]
    made = bench_backends(read_rendered_power([*entries, {"labgrid": {"place": "x"}}], "bench01"))
    assert [each.name for each in made] == ["ipmi 1", "ipmi 2", "labgrid"]


@given(st.text())
def test_any_answer_of_ipmitool_is_a_state(text: str) -> None:
    assert parse_chassis_power(text) in SwitchState
    assert parse_chassis_power(f"Chassis Power is on\n{text}\nChassis Power is off\n") == SwitchState.UNKNOWN


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_answer_of_a_controller_is_a_state(systems: Any) -> None:
    assert parse_systems({"systems": systems}, None) in SwitchState


def test_the_system_that_was_named_counts() -> None:
    systems = [{"Id": "1", "PowerState": "On"}, {"Id": "2", "PowerState": "Off"}]
    assert parse_systems({"systems": systems}, "2") == OFF
    assert parse_systems({"systems": systems}, None) == UNKNOWN
    assert parse_systems({"systems": [{"PowerState": "PoweringOn"}]}, None) == UNKNOWN


def test_redfish_without_its_collection_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(tmp_path))
    redfish = backend(redfish={"url": "https://127.0.0.1:1", "user": "u", "password": CANARY})
    with pytest.raises(PowerBackendError, match=r"community\.general.*ansible-galaxy") as problem:
        redfish.state()
    assert CANARY not in str(problem.value)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of another environment: labgrid and sushy-tools are no dependencies of this project."""
    return python_environment(
        tmp_path_factory.mktemp("power"), "labgrid==26.0.1", "sushy-tools==2.2.0", "bcrypt", "pyghmi==1.6.19"
    )


@pytest.mark.long
def test_labgrid_switches_a_place(switch: FileSwitch, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    with labgrid_lab(switch, programs) as lab:
        lab.client("acquire")
        # the place of the reservation is that of the power
        place = {"labgrid": {"place": "bench1", "coordinator": lab.coordinator}}
        (labgrid,) = bench_backends(read_rendered_power([{"labgrid": {}}], "bench01", place))
        assert labgrid.state() == ON
        labgrid.off()
        assert (labgrid.state(), switch.state) == (OFF, "off")
        labgrid.on()
        assert (labgrid.state(), switch.state) == (ON, "on")


@pytest.mark.long
def test_redfish_switches_a_slow_system_and_its_password_is_no_argument(
    switch: FileSwitch, programs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "collections").mkdir()
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(redfish_collection(tmp_path / "collections", programs)))
    with redfish_service(switch, programs, CANARY) as (url, certificate), ArgumentsSeen() as seen:
        redfish = backend(redfish={"url": url, "user": "storqual", "password": CANARY, "authority": str(certificate)})
        assert redfish.state() == ON
        redfish.off()
        # it obeys after some seconds, and only when it is read
        assert awaited(lambda: str(redfish.state()), "off", 60.0)
        assert switch.state == "off"
        with pytest.raises(PowerBackendError, match="says that it is off"):
            redfish.off()
        redfish.on()
        assert awaited(lambda: str(redfish.state()), "on", 60.0)
        wrong = backend(redfish={"url": url, "user": "storqual", "password": "wrong", "authority": str(certificate)})
        with pytest.raises(PowerBackendError, match="redfish at"):
            wrong.state()
    assert any(b"redfish_power.yml" in line for line in seen.lines)
    assert not any(CANARY.encode() in line for line in seen.lines)
