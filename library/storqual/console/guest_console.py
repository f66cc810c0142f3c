# SPDX-License-Identifier: Apache-2.0
"""The console of a virtual bench: its text is a file, and keys of sysrq come from its keyboard."""

from dataclasses import dataclass
from pathlib import Path

from storqual.virtual_bench import boot
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from storqual_core.kit.errors import StorqualError

_KEYS = ("alt", "sysrq")


@dataclass(frozen=True)
class VirtualConsole:
    """The console of the bench of a state folder, as the ladder wants one."""

    places: BenchPlaces

    def sysrq(self, letter: str) -> None:
        """Press the key. Raises StorqualError where the bench is off, or QEMU does not answer."""
        state = power_state(self.places)
        if state is None:
            raise StorqualError("the virtual bench is off")
        keys = [{"type": "qcode", "data": key} for key in (*_KEYS, letter)]
        converse(Path(state.monitor), lambda monitor: monitor.ask("send-key", {"keys": keys}))

    def mark(self) -> int:
        return boot.mark(self.places.console)

    def text_since(self, mark: int) -> str:
        return boot.written_since(self.places.console, mark)
