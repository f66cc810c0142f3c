# SPDX-License-Identifier: Apache-2.0
"""A place of labgrid: named once, by `storqual_queue`, it serves reservation, power and console of a bench."""

from __future__ import annotations

from collections.abc import Mapping

from storqual.inputs.bmc import Word
from storqual.inputs.shape import Shape, raise_all, shaped
from storqual.inputs.yaml_file import Document
from storqual_core.kit.errors import BadInputError

NO_PLACE = "labgrid: no place is named, here or by `storqual_queue: {labgrid: {place: NAME}}`"


class LabgridPlace(Shape):
    """A place, reached by labgrid-client; an empty one is that of `storqual_queue`. LG_COORDINATOR is the default."""

    place: Word | None = None
    coordinator: Word | None = None

    @property
    def argv(self) -> list[str]:
        """labgrid-client and its options, before what it is to do."""
        return ["labgrid-client", *(["-x", self.coordinator] if self.coordinator else []), "-p", str(self.place)]


def queue_place(queue: object, bench: str) -> LabgridPlace | None:
    """The place in `storqual_queue` as Ansible has filled it; None where it names none. Raises BadInputError."""
    if not isinstance(queue, Mapping) or queue.get("labgrid") is None:
        return None
    read, problems = shaped(LabgridPlace, Document(f"storqual_queue of {bench}", queue["labgrid"], {}))
    raise_all(problems)
    return filled(read, None, bench)


def filled(given: LabgridPlace | None, queue: LabgridPlace | None, bench: str) -> LabgridPlace | None:
    """The place that power or console use: the bench's own, or that of its reservation. Raises BadInputError."""
    if given is None or given.place is not None:
        return given
    if queue is None:
        raise BadInputError([f"{bench}: {NO_PLACE}"])
    return queue
