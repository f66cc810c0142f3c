# SPDX-License-Identifier: Apache-2.0
"""How a provisioning module ends: one result on success, one sentence and the true `changed` on failure."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from .errors import GuardRefusalError, StorqualError
from .provisioned import PartialError, TrialFailedError, changed

__all__ = ["finish"]


def finish(module: Any, work: Callable[[], Mapping[str, Any]]) -> None:  # noqa: ANN401 - Ansible's class is not typed
    """Do `work` and leave the module with its result.

    A failure before the first write is unchanged; one after it says what was done and what was read back. The exit
    code of the playbook run (design: 2 could not judge, 3 bad input, 4 refused) travels as `storqual_exit_code`.
    """
    try:
        result = dict(work())
    except PartialError as problem:
        module.fail_json(
            msg=str(problem),
            changed=bool(problem.steps) or changed(problem.settings),
            steps=problem.steps,
            settings=[entry.record() for entry in problem.settings],
            storqual_exit_code=problem.exit_code,
        )
        return
    except GuardRefusalError as problem:
        module.fail_json(
            msg=str(problem), changed=False, refusals=problem.refusals, storqual_exit_code=problem.exit_code
        )
        return
    except TrialFailedError as problem:
        module.fail_json(
            msg=str(problem),
            changed=False,
            facts=problem.facts,
            evidence=problem.evidence,
            storqual_exit_code=problem.exit_code,
        )
        return
    except StorqualError as problem:
        module.fail_json(msg=str(problem), changed=False, storqual_exit_code=problem.exit_code)
        return
    module.exit_json(**result)
