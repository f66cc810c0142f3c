# SPDX-License-Identifier: Apache-2.0
"""Talk to a running QEMU through its monitor socket: one short conversation at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from storqual_core.kit.errors import StorqualError, ToolError

_ANSWER_LIMIT_S = 30.0


Answer = TypeVar("Answer")


class Client(Protocol):
    """What is used of `qemu.qmp.QMPClient`."""

    async def execute(self, command: str, arguments: dict[str, object]) -> object:
        """Run one command."""

    def listener(self, names: tuple[str, ...]) -> AbstractContextManager[Any]:
        """Hear events while the context is open."""


class Monitor:
    """An open conversation with QEMU."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, command: str, arguments: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Run one monitor command and return its answer. Raises ToolError with QEMU's own words."""
        from qemu.qmp import ExecuteError  # noqa: PLC0415 - an extra: only a virtual bench needs it

        try:
            return await asyncio.wait_for(self._client.execute(command, dict(arguments or {})), _ANSWER_LIMIT_S)
        except ExecuteError as problem:
            raise ToolError(f"QEMU refused {command}: {problem}") from problem
        except TimeoutError as problem:
            raise ToolError(f"QEMU did not answer {command} within {_ANSWER_LIMIT_S:g} s") from problem

    async def ask_and_await(
        self, command: str, arguments: Mapping[str, object], event: str, limit_s: float, **match: object
    ) -> bool:
        """Run a command, then wait for `event` whose data hold `match`; False when it did not come in `limit_s`."""
        with self._client.listener((event,)) as listener:
            await self.ask(command, arguments)

            async def wait_for_match() -> None:
                while True:
                    data = (await listener.get()).get("data", {})
                    if all(data.get(name) == value for name, value in match.items()):
                        return

            try:
                await asyncio.wait_for(wait_for_match(), limit_s)
            except TimeoutError:
                return False
            return True


@asynccontextmanager
async def _open(socket: Path) -> AsyncIterator[Monitor]:
    try:
        from qemu.qmp import ConnectError, QMPClient  # noqa: PLC0415 - an extra: only a virtual bench needs it
    except ImportError as problem:
        raise StorqualError(
            "the virtual bench needs the Python package qemu.qmp; install storqual[bench]"
        ) from problem
    client = QMPClient("storqual")
    try:
        await asyncio.wait_for(client.connect(str(socket)), _ANSWER_LIMIT_S)
    except (TimeoutError, ConnectError, OSError) as problem:
        raise ToolError(f"QEMU does not answer on {socket}: {problem}") from problem
    try:
        yield Monitor(client)
    finally:
        # QEMU closes its end first when it was told to quit
        with suppress(TimeoutError, EOFError, OSError):
            await asyncio.wait_for(client.disconnect(), _ANSWER_LIMIT_S)


def converse(socket: Path, talk: Callable[[Monitor], Awaitable[Answer]]) -> Answer:
    """Open the monitor at `socket`, run `talk` with it, close it, and return what `talk` returned."""

    async def conversation() -> Answer:
        async with _open(socket) as monitor:
            return await talk(monitor)

    return asyncio.run(conversation())
