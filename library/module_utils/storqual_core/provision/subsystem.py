# SPDX-License-Identifier: Apache-2.0
"""What a subsystem of provisioning is: how one kind of setting is read, refused, written, proven and watched."""

from __future__ import annotations

from typing import Any, Collection, Dict, Mapping, Protocol, Sequence, Tuple, TypeVar

C_contra = TypeVar("C_contra", contravariant=True)
Values = Dict[str, Any]
Proof = Tuple["bool | None", str]


class Subsystem(Protocol[C_contra]):
    """One kind of setting. `section` is the vocabulary's, `owned_by` is `drive`, `adapter`, or empty: the bench.

    `watched` are the names that watching can show in effect, the cheapest first.
    """

    section: str
    owned_by: str
    watched: Sequence[str]

    def read(self, target: C_contra, names: Sequence[str]) -> Values:
        """The values that `names` have now; what the target does not have is left out. Raises ToolError."""

    def objections(self, target: C_contra, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """Why `wanted` cannot be brought about, where that can be known before a write. Raises ToolError."""

    def disturbs(self, name: str) -> Collection[str]:
        """The names that a write of `name` may change, itself not among them."""

    def together(self, name: str) -> object:
        """Names for which this is equal go in one write."""

    def write(self, target: C_contra, values: Mapping[str, Any]) -> list[str]:
        """Write names that go together; what was done. Raises ToolError."""

    def prove(self, target: C_contra, name: str, value: object) -> Proof:
        """Whether `value` is in effect (None: not shown), and how that is known without watching anything."""

    def watch(self, target: C_contra, name: str, value: Any, seconds: float) -> Proof | None:  # noqa: ANN401
        """The same by watching for about `seconds`, without a write; None: `prove` is all there is."""


class Separate:
    """Names of a subsystem that leave each other alone, are written one by one, and are not watched."""

    watched: Sequence[str] = ()

    def watch(self, target: Any, name: str, value: Any, seconds: float) -> Proof | None:  # noqa: ANN401
        """Nothing."""
        del target, name, value, seconds
        return None

    def disturbs(self, name: str) -> Collection[str]:
        """Nothing."""
        del name
        return ()

    def together(self, name: str) -> object:
        """Each name for itself."""
        return name
