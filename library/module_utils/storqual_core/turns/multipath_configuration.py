# SPDX-License-Identifier: Apache-2.0
"""The configuration of multipathd that a bench has while its trials run: maps of the claimed drives alone."""

from __future__ import annotations

from math import inf

MARK = "# written by storqual for its trials, and taken back after them; multipathd was"
_CONFIGURATION = """\
{mark} {state}
defaults {{
    user_friendly_names no
    find_multipaths yes
    polling_interval 1
    max_polling_interval 2
}}
overrides {{
    # all paths that the target rates alike carry the load, the best first; an error for which no path is left reaches
    # who asked
    path_grouping_policy group_by_prio
    failback immediate
    no_path_retry fail
{timers}}}
blacklist {{
    wwid ".*"
}}
blacklist_exceptions {{
    wwid "^({wwids})$"
}}
"""


ASK_TIMERS = (
    "grep -Hs '' /sys/class/fc_remote_ports/*/fast_io_fail_tmo /sys/class/iscsi_session/*/recovery_tmo || true"
)
_PROTOCOLS = {"fast_io_fail_tmo": "scsi:fcp", "recovery_tmo": "scsi:iscsi"}
_TIMER = """\
    protocol {{
        type "{protocol}"
        fast_io_fail_tmo {value}
    }}
"""


def _timers(lines: str) -> str:
    """What keeps the timers as they are, which a drop may have set: the daemon would set its own.

    It knows one for all ports of a protocol; of several the shortest, so that nothing waits longer than declared.
    """
    known: dict[str, list[float]] = {}
    for path, _, value in (line.rpartition(":") for line in lines.splitlines()):
        known.setdefault(_PROTOCOLS[path.rpartition("/")[2]], []).append(inf if value == "off" else float(value))
    shortest = {name: min(values) for name, values in known.items()}
    return "".join(
        _TIMER.format(protocol=name, value="off" if value == inf else int(value)) for name, value in shortest.items()
    )


def configuration(state: str, wwids: str, timers: str) -> str:
    """Its text: `state` is the service's, `wwids` a pattern of the drives, `timers` the answer to ASK_TIMERS."""
    return _CONFIGURATION.format(mark=MARK, state=state, wwids=wwids, timers=_timers(timers))
