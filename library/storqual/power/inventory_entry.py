# SPDX-License-Identifier: Apache-2.0
"""The power of a bench as Ansible sees it: `storqual_power` with vaults and templates filled in."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from storqual.bench.reached import ssh_words
from storqual.console.console import console_of
from storqual.inputs import load_inventory
from storqual.inputs.power import read_rendered_power
from storqual.power.backends import IpmiBackend, bench_backends
from storqual.power.cycling import BenchPower, usual_boot_limit_s
from storqual.power.switch import ANSWER_LIMIT_S
from storqual.power.watch import BenchWatch
from storqual.virtual_bench.description import BenchDescription, described
from storqual.virtual_bench.places import BenchPlaces


def power_of_bench(
    bench: str,
    variables: Mapping[str, Any],
    templar: Any,  # noqa: ANN401 - Ansible publishes no types
    connection: Any,  # noqa: ANN401 - as above
    address: str,
    *,
    usual_boot_s: float | None = None,
    answers_within_s: float = 0.0,
) -> BenchPower | None:
    """What switches a bench; None where its inventory names nothing.

    Each backend may be silent for `answers_within_s`, where its entry does not allow more. `variables` are those of
    the host, which `templar` fills in; `templar`, `connection` and `address` are those of an action plugin. Raises
    BadInputError for a wrong entry, StorqualError for SSH with a password.
    """

    def variable(name: str) -> Any:  # noqa: ANN401 - whatever the inventory has
        return templar.template(variables[name]) if name in variables else None

    entries = [
        entry.model_copy(update={"answers_within": max(entry.answers_within or ANSWER_LIMIT_S, answers_within_s)})
        for entry in read_rendered_power(variable("storqual_power") or (), bench, variable("storqual_queue"))
    ]
    if not entries:
        return None
    state, kind = variable("virtual_bench_state"), str(variable("storqual_kind"))
    places = BenchPlaces.of(str(state)) if state and kind == "virtual" else None
    description = partial(_description, variable("ansible_inventory_sources") or (), bench)
    host = str(connection.get_option("host") or address)
    words = partial(ssh_words, connection, address)
    backends = bench_backends(entries, places=places, description=description)
    return BenchPower(
        bench,
        backends,
        BenchWatch(words, host, console=console_of(bench, places)),
        usual_boot_limit_s(kind, usual_boot_s),
        nmi=next((backend.interrupt for backend in backends if isinstance(backend, IpmiBackend)), None),
    )


def _description(sources: Sequence[str], bench: str) -> BenchDescription:
    """What a virtual bench is made of, as its inventory says it."""
    return described(load_inventory([Path(source) for source in sources], limit=bench).benches[bench])
