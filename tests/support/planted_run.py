# SPDX-License-Identifier: Apache-2.0
"""A run directory that somebody filled with everything a program might execute from where it is started."""

import pkgutil
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

EVIL = "evil"
_CONFIGURED = {
    "pytest.ini": f"[pytest]\naddopts = -p {EVIL}\npython_files = *.py\n",
    ".pytest.ini": f"[pytest]\naddopts = -p {EVIL}\n",
    "tox.ini": f"[pytest]\naddopts = -p {EVIL}\n",
    "setup.cfg": f"[tool:pytest]\naddopts = -p {EVIL}\n",
    "pyproject.toml": f'[tool.pytest.ini_options]\naddopts = "-p {EVIL}"\n',
    "robot.toml": f'python-path = ["."]\nlisteners = {{ "{EVIL}" = [] }}\n',
    "ansible.cfg": (
        "[defaults]\ncallback_plugins = ./callback_plugins\naction_plugins = ./action_plugins\nlibrary = ./library\n"
        f"filter_plugins = ./filter_plugins\nroles_path = ./roles\ncallbacks_enabled = {EVIL}\n"
    ),
}
_PLUGINS = (
    f"callback_plugins/{EVIL}.py",
    "action_plugins/storqual_command.py",
    f"filter_plugins/{EVIL}.py",
    *("library/known_variables.py", "library/storqual/__init__.py", "test_evil.py", "suites/test_evil.py"),
    *("inputs/conftest.py", "inputs/__init__.py"),
)
_PROGRAMS = (
    *("openssl", "ssh-keygen", "ssh", "git", "python", "python3", "ansible-playbook", "ansible-inventory"),
    "env",
)


def importable() -> list[str]:
    """Every name that a Python of this environment might import, and those that it imports by itself."""
    names = {*sys.stdlib_module_names, *packages_distributions(), *(module.name for module in pkgutil.iter_modules())}
    names |= {"storqual", "storqual_core", "tests", "conftest", "sitecustomize", "usercustomize", "pytest", EVIL}
    return sorted(name for name in names if name.isidentifier())


def plant(run: Path, marks: Path, *, packages: bool) -> None:
    """Fill `run`; whatever is executed leaves a file named for it in `marks`."""

    def python(name: str) -> str:
        return f"open({str(marks / name.replace('/', '-'))!r}, 'w').close()\n"

    for name in importable():
        path = run / name / "__init__.py" if packages else run / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(python(name), encoding="utf-8")
        if packages:
            (path.parent / "__main__.py").write_text(python(f"{name}.main"), encoding="utf-8")
    for name in ("__init__.py", "__main__.py", *_PLUGINS):
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(python(name), encoding="utf-8")
    for name, text in _CONFIGURED.items():
        (run / name).write_text(text, encoding="utf-8")
    (run / f"{EVIL}.pth").write_text(f"import {EVIL}\n", encoding="utf-8")
    touch = f"touch {marks}"
    for name, text in {
        "group_vars/all.yml": f"evil: \"{{{{ lookup('pipe', '{touch}/group_vars') }}}}\"\n",
        "host_vars/localhost.yml": f"ansible_connection: \"{{{{ lookup('pipe', '{touch}/host_vars') }}}}\"\n",
        "roles/publish/tasks/main.yml": f"- ansible.builtin.shell: {touch}/role\n",
        "playbooks/publish.yml": f"- hosts: localhost\n  tasks: [{{ansible.builtin.shell: {touch}/playbook}}]\n",
        "__init__.robot": f"*** Settings ***\nSuite Setup    Evaluate    open('{marks}/init.robot', 'w').close()\n",
        "robot/evil.robot": f"*** Test Cases ***\nEvil\n    Evaluate    open('{marks}/evil.robot', 'w').close()\n",
    }.items():
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in _PROGRAMS:
        path = run / name
        if not path.exists():
            path.write_text(f"#!/bin/sh\n: > {marks}/program-{name}\n", encoding="utf-8")
            path.chmod(0o755)
