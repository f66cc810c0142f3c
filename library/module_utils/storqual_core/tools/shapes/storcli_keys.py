# SPDX-License-Identifier: Apache-2.0
"""The names of sections and columns in the JSON of storcli and its kin, in one spelling, and the counts they tell.

Releases write `Enclosure LIST` and `Enclosure List`, `PD LIST` and `PD List`: what is looked up by name gets the one
spelling of this table. A number that the answer tells of a list must be that of its rows.
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from ...kit.errors import ToolError
from ...kit.json_text import as_int, as_list, as_mapping
from ...kit.labelled_text import plain_label, respelt

_NAMES = {
    plain_label(name): name
    for name in (
        "Command Status",
        "Controller",
        "Status",
        "Description",
        "Detailed Status",
        "ErrCd",
        "ErrMsg",
        "Response Data",
        "Number of Controllers",
        "System Overview",
        "IT System Overview",
        "IR System Overview",
        "IR3 System Overview",
        "VD LIST",
        "PD LIST",
        "JBOD LIST",
        "LU/NS LIST",
        "TOPOLOGY",
        "Enclosure LIST",
        "Enclosure Information",
        "Physical Device Information",
        "Virtual Drives",
        "Physical Drives",
        "JBOD Drives",
        "Drives List",
        "Drive Information",
        "Drive Detailed Information",
        "VD Info",
        "VD Properties",
        "PDs",
        "VD Operation Status",
        "FOREIGN CONFIGURATION",
        "Total foreign Drive Groups",
        "BBU_Info",
        "Cachevault_Info",
        "EID:Slt",
        "EID:Slot",
        "NoVDs",
        "DG/VD",
        "DG",
        "TYPE",
        "State",
        "Size",
        "Name",
        "Cache",
        "CurrentCache",
        "Model",
        "Med",
        "SeSz",
        "Ctl",
        "Ctrl",
        "Policy",
        "Property",
        "Current",
        "Value",
        "Operation",
        "EID",
        "Slots",
        "ProdID",
    )
}
_NAMES[plain_label("Drive LIST")] = "PD LIST"  # as HPE's MR controllers call it
_LISTS = re.compile(
    r"(?:VD|PD|JBOD) LIST\Z|Virtual Drives\Z|Drives? /c\d+|/c\d+(?:/e\d+)?/[svd]\d+|PDs for VD|.*DRIVE LIST\Z"
    r"|Drive Information\Z",
    re.IGNORECASE,
)
# what needs attention, of an overview
_UNWELL = re.compile(r"Controller \d+\Z")
# enclosures are not among them: the tool counts some that it does not list
_COUNTS = (
    ("Virtual Drives", ("VD LIST",)),
    ("Physical Drives", ("PD LIST",)),
    ("JBOD Drives", ("JBOD LIST",)),
    ("Total foreign Drive Groups", ("FOREIGN CONFIGURATION",)),
)
# what an overview is called by the firmware that a controller has: MegaRAID, IT, IR
OVERVIEWS = ("System Overview", "IT System Overview", "IR System Overview", "IR3 System Overview")


def same_names(value: object) -> object:
    """The same value with its known names in one spelling."""
    return respelt(value, _NAMES)


def check_counts(data: Mapping[str, Any], tool: str) -> None:
    """Raise ToolError when an answer tells another number of something than it lists, or lists it elsewhere."""
    for count, lists in _COUNTS:
        told = as_int(data.get(count))
        listed = max(len(as_list(data.get(name))) for name in lists)
        if told is not None and told != listed:
            raise ToolError(f"{tool} reports {told} ({count}) and lists {listed}: the answer is not whole")
    told, listed = as_int(data.get("Number of Controllers")), sum(len(as_list(data.get(name))) for name in OVERVIEWS)
    if told is not None and told != listed:
        raise ToolError(f"{tool} reports {told} controllers and lists {listed}: the answer is not whole")
    if as_int(data.get("Drive Groups")) and not (data.get("TOPOLOGY") or data.get("VD LIST")):
        raise ToolError(f"{tool} reports drive groups and shows none: the answer is not whole")
    inner = data.get("Physical Device Information")
    for name, value in [*data.items(), *(inner.items() if isinstance(inner, dict) else ())]:
        known = _LISTS.match(name) or (listed and _UNWELL.match(name))
        # rows beside labelled lines are no list, and nobody looks for them there
        for row in [*([] if known else as_list(value)), *as_list(as_mapping(value).get("Rows"))]:
            if isinstance(row, dict) and {"EID:Slt", "DG/VD"} & set(row):
                raise ToolError(f"{tool} lists drives or volumes under {name[:60]!r}, which is not known")
