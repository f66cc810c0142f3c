"""Keep the compiled form of what Python imports from archives.

Ansible's modules and the bench program are archives of source text, and under emulation to compile them is half of
each call. The key is a hash of the source and of the interpreter that compiled it: nothing kept is ever out of date.
"""

from __future__ import annotations

import marshal
import os
import sys
import zipimport
from _imp import source_hash

_FOLDER = "/var/cache/compiled-once"
_compile = zipimport._compile_source  # type: ignore[attr-defined]  # the one place where an archive's source is compiled


def _kept(pathname: str, source: bytes) -> object:
    path = f"{_FOLDER}/{source_hash(sys.hexversion, source).hex()}"
    try:
        with open(path, "rb") as file:
            return marshal.load(file)
    except (OSError, ValueError, EOFError, TypeError):
        code = _compile(pathname, source)
    fresh = f"{path}.{os.getpid()}"
    try:
        os.makedirs(_FOLDER, mode=0o700, exist_ok=True)
        with open(fresh, "wb") as file:
            marshal.dump(code, file)
        os.replace(fresh, path)
    except OSError:
        # a full or read-only disk is for the program that is starting to find
        pass
    return code


zipimport._compile_source = _kept  # type: ignore[attr-defined]
