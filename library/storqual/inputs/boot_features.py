# SPDX-License-Identifier: Apache-2.0
"""What the inventory says of an adapter's boot code, for the chart of features."""

from __future__ import annotations

from pydantic import Field

from storqual.inputs.fields import Text
from storqual.inputs.shape import Shape


class BootFeatures(Shape):
    """What an adapter's boot code offers, by its manual: for the chart of features, where the bench does not tell."""

    bios: Text | None = Field(default=None, description="version of the boot code")
    cdrom: bool | None = Field(default=None, description="whether it boots from a CD-ROM")
    drives: Text | None = Field(default=None, description="the drives that it boots from, in words")
    options: tuple[Text, ...] = Field(default=(), strict=False, description="what can be set in its menu")
