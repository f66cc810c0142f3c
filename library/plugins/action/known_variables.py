# SPDX-License-Identifier: Apache-2.0
"""Refuse variables with a role's prefix that the role does not know."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import yaml
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Compare the variables named `<role>_…` with the role's argument_specs; for use as a role's first task.

    Ansible checks what a role declares, and passes over what it does not: a misspelt variable would silently leave a
    bench as it is. What the role's tasks leave behind (`register`, `set_fact`, `vars`) is known too, and what `also`
    names: what a playbook hands to a single file of its tasks.
    """

    _VALID_ARGS = frozenset({"also"})
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail with exit code 3 when a variable is not known, naming the nearest one."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        role = self._task._role  # noqa: SLF001 - no public name for it
        if role is None:
            return {**result, "failed": True, "msg": "known_variables is for the tasks of a role"}
        prefix = f"{role.get_name(include_role_fqcn=False)}_"
        known = self._known(Path(role._role_path), prefix) | {str(name) for name in self._task.args.get("also", [])}  # noqa: SLF001
        unknown = sorted(name for name in (task_vars or {}) if name.startswith(prefix) and name not in known)
        if not unknown:
            return {**result, "changed": False}
        lines = []
        for name in unknown:
            near = difflib.get_close_matches(name, known, n=1)
            lines.append(
                f"{name} is not a variable of role {prefix[:-1]}" + (f"; did you mean {near[0]}?" if near else "")
            )
        return {**result, "failed": True, "msg": "\n".join(lines), "storqual_exit_code": 3}

    @staticmethod
    def _known(role: Path, prefix: str) -> set[str]:
        specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
        declared = {name for entry in specs["argument_specs"].values() for name in entry.get("options", {})}
        tasks = "".join(path.read_text(encoding="utf-8") for path in (role / "tasks").glob("*.yml"))
        return declared.union(re.findall(rf"^ +(?:register: )?({prefix}\w+)(?::|$)", tasks, re.MULTILINE))
