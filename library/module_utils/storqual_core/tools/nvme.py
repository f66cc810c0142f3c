# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: the volatile write cache (feature 6), which an NVMe drive has in place of the caching page's WCE."""

from __future__ import annotations

import re

from ..command import Completed, Runner
from ..errors import ToolError

__all__ = ["parse_feature", "read_write_cache", "write_write_cache"]

_WRITE_CACHE = 6
_TIMEOUT = 60.0
# nvme-cli 1.x and 2.x: `get-feature:0x06 (Volatile Write Cache), Current value:0x00000001`; digits and blanks vary
_FEATURE = re.compile(r"get-feature:\s*(0x[0-9a-f]+|\d+).*?value:\s*(0x[0-9a-f]+|[0-9a-f]+)\b", re.IGNORECASE)


def parse_feature(text: str, feature: int) -> int:
    """The value that `nvme get-feature` printed for `feature`. Raises ToolError when it did not."""
    for line in text.splitlines():
        match = _FEATURE.search(line)
        if match and int(match.group(1), 0) == feature:
            return int(match.group(2), 16)
    said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    raise ToolError(f"nvme printed no value of feature {feature}: {said[:200]}")


def _failure(ended: Completed, what: str) -> ToolError:
    said = (ended.stderr.strip() or ended.stdout.strip() or "no message").splitlines()[-1].strip()
    return ToolError(f"{what}: {said[:200]} (status {ended.rc}); command: {ended.line}")


def read_write_cache(runner: Runner, device: str) -> int:
    """1 when the controller's volatile write cache is on, else 0. Raises ToolError when it has none."""
    ended = runner(["nvme", "get-feature", device, f"--feature-id={_WRITE_CACHE}"], timeout=_TIMEOUT)
    if ended.rc != 0:
        raise _failure(ended, f"{device} has no volatile write cache that can be read")
    return parse_feature(ended.stdout, _WRITE_CACHE) & 1


def write_write_cache(runner: Runner, device: str, value: int, *, save: bool = False) -> None:
    """Switch the controller's volatile write cache. Raises ToolError."""
    argv = ["nvme", "set-feature", device, f"--feature-id={_WRITE_CACHE}", f"--value={value}"]
    ended = runner([*argv, "--save"] if save else argv, timeout=_TIMEOUT)
    if ended.rc != 0:
        raise _failure(ended, f"the volatile write cache of {device} could not be changed")
