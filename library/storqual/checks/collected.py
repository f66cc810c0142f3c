# SPDX-License-Identifier: Apache-2.0
"""In the process that collects a user's checks: what is wrong with them goes to a file, a line of JSON each.

Imported by pytest (as a plugin) and by Robot Framework (`DryRun` is a listener) beside code that is not trusted to
end, or to leave standard output alone; `storqual.checks.own` starts both and reads the file.
"""

import ast
import difflib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROBLEMS = "STORQUAL_PROBLEMS"
"""The environment variable that names the file."""
DONE: dict[str, Any] = {"done": True}
"""The last line: without it the collection did not reach its end."""
NO_TEST = {
    ".py": "has no test; pytest runs functions named test_* and methods test_* of classes named Test*",
    ".robot": "has no test; Robot Framework runs what is below *** Test Cases ***",
}
_FIXTURES = ("run", "point", "baseline", "candidate", "bench", "record_property", "request", "tmp_path")
_IN_FILE = re.compile(r"Error in file '(?P<file>.+)' on line (?P<line>\d+): (?P<text>.*)", re.DOTALL)
_IN_TEST = re.compile(r"In (?:\S+::)?(\w+):")


def _tell(file: str | os.PathLike[str] | None, line: int, text: str) -> None:
    named = Path(str(file)).name if file else ""
    first = text.strip().splitlines() or ["no message"]
    _write({"file": named, "line": line, "text": " ".join(first[0].split())})


def _write(entry: dict[str, Any]) -> None:
    with Path(os.environ[PROBLEMS]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def pytest_exception_interact(node: pytest.Collector | pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """A file that cannot be imported, a test that cannot be collected, and a fixture that nobody has."""
    if call.excinfo is None:
        return
    error: BaseException = call.excinfo.value
    while isinstance(error, pytest.Collector.CollectError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, pytest.FixtureLookupError):
        near = difflib.get_close_matches(str(error.argname), _FIXTURES, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; storqual has {', '.join(_FIXTURES[:5])}"
        _tell(node.path, _first_line(node), f"there is no fixture {error.argname!r}{hint}")
    elif isinstance(error, SyntaxError):
        _tell(node.path, error.lineno or 1, f"{type(error).__name__}: {error.msg}")
    else:
        kind = "" if isinstance(error, pytest.fail.Exception) else f"{type(error).__name__}: "
        _tell(node.path, _line_in(error, node), f"{kind}{error}")


def _first_line(node: pytest.Collector | pytest.Item) -> int:
    return (node.location[1] or 0) + 1 if isinstance(node, pytest.Item) else 1


def _line_in(error: BaseException, node: pytest.Collector | pytest.Item) -> int:
    """The line of the node's own file at which an error came up, or that of the test which its message names."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(node.path):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    if lines:
        return lines[-1]
    named = _IN_TEST.search(str(error))
    return _line_of(node.path, named[1]) if named else _first_line(node)


def _line_of(path: Path, test: str) -> int:
    functions = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    defined = (node for node in functions if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next((node.lineno for node in defined if node.name == test), 1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """A file in which pytest finds nothing to run; one that could not be collected was told already."""
    with_tests = {item.path.name for item in session.items} | _reported()
    for file in _test_files(session.config):
        if file.name not in with_tests:
            _tell(file, 1, NO_TEST[".py"])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that skips itself as a whole is not without tests."""
    if report.skipped:
        _write({"file": Path(report.nodeid).name, "skipped": True})


def pytest_unconfigure() -> None:
    _write(DONE)


def _test_files(config: pytest.Config) -> Iterator[Path]:
    return (Path(word) for word in config.args if word.endswith(".py"))


def _reported() -> set[str]:
    path = Path(os.environ[PROBLEMS])
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {json.loads(line).get("file", "") for line in lines}


class DryRun:
    """What a dry run of Robot Framework says against the files, each problem at the innermost keyword that has it."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self._in_test: list[str] = []

    def start_test(self, data: Any, result: Any) -> None:  # noqa: ANN401 - Robot Framework's own
        del data, result
        self._in_test = []

    def end_keyword(self, data: Any, result: Any) -> None:  # noqa: ANN401 - as above
        """A keyword that nobody has, or with other arguments than it takes."""
        message = str(result.message)
        if result.status == "FAIL" and message not in self._in_test:
            self._in_test.append(message)
            _tell(data.source, data.lineno or 1, message.replace("\n    ", " "))

    def end_test(self, data: Any, result: Any) -> None:  # noqa: ANN401 - as above
        """A test that is wrong as a whole: an empty one, a loop without its end."""
        if result.status == "FAIL" and not self._in_test:
            _tell(data.source, data.lineno or 1, f"test {data.name!r}: {result.message}")

    def end_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401 - as above
        """A file without a test."""
        del result
        if data.source and not data.suites and not data.tests:
            _tell(data.source, 1, NO_TEST[".robot"])

    def message(self, message: Any) -> None:  # noqa: ANN401 - as above
        """Settings, libraries and resources that cannot be read."""
        match = _IN_FILE.match(str(message.message)) if message.level == "ERROR" else None
        if match is not None:
            _tell(match["file"], int(match["line"]), match["text"])

    def close(self) -> None:
        _write(DONE)
