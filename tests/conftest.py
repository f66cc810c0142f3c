# SPDX-License-Identifier: Apache-2.0
"""What all tests share: the core's two names are one module, and modules load beside the package."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

# A property holds or does not; how long a busy machine took to think of an example says nothing about it.
settings.register_profile("storqual", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("storqual")

REPOSITORY = Path(__file__).resolve().parents[1]
_SHIPPED = "ansible.module_utils.storqual_core"


class _OneCore(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import `ansible.module_utils.storqual_core…` as the `storqual_core…` that is loaded already.

    Loaded twice under two names, an error raised by one copy is not caught as the other copy's class.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _SHIPPED and not fullname.startswith(_SHIPPED + "."):
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module("storqual_core" + spec.name[len(_SHIPPED) :])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back: it was executed under its own name already."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _OneCore())


@pytest.fixture(autouse=True)
def own_state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this user's control node knows of benches is none of a test's business, nor the other way round."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture
def load_module() -> Callable[[str], ModuleType]:
    """Load `library/modules/<name>.py` as Ansible would, but in this process."""

    def load(name: str) -> ModuleType:
        path = REPOSITORY / "library" / "modules" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"storqual_module_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def transcripts() -> Path:
    """The folder of recorded tool outputs beside the checkout; a test that needs it is skipped without it."""
    folder = Path(os.environ.get("STORQUAL_TRANSCRIPTS") or REPOSITORY.parent / "shared" / "transcripts")
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here: recordings of vendor tools are kept outside the project")
    return folder
