# SPDX-License-Identifier: Apache-2.0
"""Start `ansible-playbook` as this project needs it, and ask benches over it: one JSON answer per bench."""

import ctypes
import difflib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import jinja2.nodes
import yaml

from storqual.base import child
from storqual.base.files import project_root
from storqual.inputs.lab import missing_inventories
from storqual.inputs.shape import raise_all
from storqual_core.kit.errors import StorqualError

_PR_SET_PDEATHSIG = 1
_STDERR = 2
"""The file descriptor."""


def _end_with_parent() -> None:
    """Have the kernel end ansible-playbook when its parent is killed: a bench goes on by itself, a play must not."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _program() -> Path:
    """`ansible-playbook` of the environment this interpreter belongs to."""
    program = Path(sys.executable).parent / "ansible-playbook"
    if not program.is_file():
        raise StorqualError(f"{program} is missing; install the project into this environment (`make setup`)")
    return program


def run_playbook(
    name: str,
    *,
    inventories: Sequence[str],
    variables: Mapping[str, object],
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    output: Path | None = None,
    quiet: bool = False,
    lines: bool = False,
) -> int:
    """Run `playbooks/<name>` and return its exit status; its output goes to the terminal, or to the file `output`.

    `quiet` leaves standard output to the caller's own answer: what Ansible says goes to standard error. `lines` are
    phases, progress and failures in the place of Ansible's own account of each task.
    ANSIBLE_CONFIG is set because Ansible does not read an ansible.cfg of another folder or of a world-writable one.
    Raises BadInputError for a variable that Ansible would execute as a template: a run may have any name.
    """
    templates = [name for name, value in variables.items() if re.search(r"\{[{%#]", json.dumps(value))]
    raise_all(f"{name}: {variables[name]} is a template to Ansible; use a name without braces" for name in templates)
    root = project_root()
    argv = [str(_program()), str(root / "playbooks" / name)]
    for inventory in inventories:
        argv += ["-i", inventory]
    if variables:
        argv += ["-e", json.dumps(variables)]
    argv += options
    # whoever starts the command may say otherwise
    own = {
        # a technician follows the live line; what changed and what failed is still shown
        "ANSIBLE_DISPLAY_OK_HOSTS": "false",
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "false",
        "ANSIBLE_FORKS": str(forks()),
        **({"ANSIBLE_STDOUT_CALLBACK": "storqual_lines"} if lines else {}),
    }
    env = {**own, **os.environ, **_locale(), "ANSIBLE_CONFIG": str(root / "ansible.cfg"), **(environment or {})}
    # a file, never a pipe: the SSH master that stays behind would hold a pipe open for minutes
    with output.open("wb") if output else nullcontext() as stream:
        play = child.start(
            argv,
            env=env,
            preexec_fn=_end_with_parent,  # no threads here yet
            stdout=_STDERR if quiet and stream is None else stream,
            stderr=stream,
        )
    while True:
        try:
            return play.wait()
        except KeyboardInterrupt:
            # Ctrl-C reached the play as well; wait for it to end instead of leaving it behind
            continue


def _locale() -> dict[str, str]:
    """A locale for Ansible where the present one is not UTF-8: it refuses to start under LC_ALL=C."""
    present = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    return {} if "utf8" in present.lower().replace("-", "") else {"LC_ALL": "C.UTF-8"}


_EXPRESSIONS = frozenset({"when", "that", "until", "failed_when", "changed_when"})
_OF_ANSIBLE = ("ansible_",)
_CUTOFF = 0.6
_READER = jinja2.Environment(autoescape=True)


def unknown_variables(playbook: Path, roles: Path, given: Iterable[str]) -> list[str]:
    """One sentence for each of `given` that neither the playbook nor a role uses or declares."""
    used = set(_used(yaml.safe_load(playbook.read_text(encoding="utf-8"))))
    known = used | set(_declared(roles))
    for path in roles.glob("*/*/*.yml"):
        if path.parent.name in ("defaults", "tasks", "vars"):
            known |= set(_used(yaml.safe_load(path.read_text(encoding="utf-8"))))
    problems = []
    for name in sorted(given):
        if name in known or name.startswith(_OF_ANSIBLE):
            continue
        # what the playbook itself takes is what people misspell
        near = difflib.get_close_matches(name, used, 1, _CUTOFF) or difflib.get_close_matches(name, known, 1, _CUTOFF)
        problems.append(
            f"{name} is not a variable of {playbook.name}" + (f"; did you mean {near[0]}?" if near else "")
        )
    return problems


def _used(value: Any, *, expression: bool = False) -> Iterator[str]:  # noqa: ANN401 - any YAML
    """The variables of every template and condition below a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _used(inner, expression=key in _EXPRESSIONS)
    elif isinstance(value, list):
        for inner in value:
            yield from _used(inner, expression=expression)
    elif isinstance(value, str) and (expression or "{{" in value or "{%" in value):
        text = value if "{{" in value or "{%" in value else "{{ (" + value + ") }}"
        # only read, never rendered: filters and tests are Ansible's, and need not be known here
        yield from (name.name for name in _READER.parse(text).find_all(jinja2.nodes.Name) if name.ctx == "load")


def _declared(roles: Path) -> Iterator[str]:
    for path in sorted(roles.glob("*/meta/argument_specs.yml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            yield from entry.get("options", {})


_WORKER_BYTES = 96 * 2**20
"""What one worker takes beyond the pages that it shares with its parent, generously."""
_WORKERS_A_PROCESSOR = 64
"""A worker sleeps between two looks at its bench: a campaign of a minute takes it four seconds of processor."""
_LEAST = 8
_MEMORY = Path("/proc/meminfo")


def forks(available: int | None = None, processors: int | None = None) -> int:
    """The most workers that memory (`available` bytes) and processors of the control node permit, at least 8.

    Ansible starts no more of them than there are benches. Both are read from this machine without an argument.
    """
    free = _available() if available is None else available
    by_processors = _WORKERS_A_PROCESSOR * (processors or os.cpu_count() or 1)
    return max(_LEAST, min(free // _WORKER_BYTES, by_processors))


def _available() -> int:
    """Bytes that programs can still have; 0 where the kernel does not say."""
    try:
        match = re.search(r"^MemAvailable:\s+(\d+) kB$", _MEMORY.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return 0
    return int(match.group(1)) * 1024 if match else 0


@dataclass(frozen=True)
class Answers:
    """What each bench answered, and why each of the others did not."""

    by_bench: Mapping[str, Any]
    silent: Mapping[str, str]


def ask_every_bench(
    playbook: str, inventories: Sequence[str], *, limit: str | None = None, variables: Mapping[str, Any] | None = None
) -> Answers:
    """The answers by bench of `playbooks/<playbook>`, which writes `<folder>/<bench>.json` where it is told to.

    The folder is the variable `answers_folder`. Raises StorqualError with the reason of each bench, or with Ansible's
    last words, when no bench answers; BadInputError for an inventory that is not there.
    """
    raise_all(missing_inventories([Path(source) for source in inventories if "," not in source]))
    with tempfile.TemporaryDirectory(prefix="storqual-answers-") as folder:
        log, events = Path(folder) / "log", Path(folder) / "events.jsonl"
        status = run_playbook(
            playbook,
            inventories=inventories,
            variables={**(variables or {}), "answers_folder": folder},
            options=["--limit", limit] if limit else [],
            environment={"STORQUAL_PROGRESS_FILE": str(events)},
            output=log,
        )
        answers = {
            path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.json"))
        }
        silent = {bench: why for bench, why in silent_benches(read_events(events)).items() if bench not in answers}
        log_lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["Ansible said nothing"]
    if not answers:
        raise StorqualError(none_of_them(f"no bench answered (status {status})", silent, log_lines[-1]))
    return Answers(answers, silent)


def read_events(events: Path) -> list[dict[str, Any]]:
    """The event stream of a play (STORQUAL_PROGRESS_FILE); nothing where the play came to none."""
    if not events.is_file():
        return []
    return [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]


def silent_benches(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Why benches did not answer, from the events of a play: the first line of each failure."""
    failures = [event for event in events if event.get("kind") in ("failed", "unreachable")]
    return {
        str(event.get("host")): (str(event.get("message") or "").strip() or "no message").splitlines()[0]
        for event in failures
    }


def none_of_them(sentence: str, silent: Mapping[str, str], otherwise: str) -> str:
    """`sentence` with a line for each bench; behind it what is known `otherwise` where no bench has a reason."""
    if not silent:
        return f"{sentence}: {otherwise}"
    return "\n".join([f"{sentence}:", *(f"{bench} did not answer: {why}" for bench, why in sorted(silent.items()))])


def ask_benches(
    playbook: str, inventories: Sequence[str], *, limit: str | None = None, variables: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return dict(ask_every_bench(playbook, inventories, limit=limit, variables=variables).by_bench)
