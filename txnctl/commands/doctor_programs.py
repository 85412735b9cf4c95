"""What only some commands need, and whether it is there: found without loading it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

_JAVA_START_S = 10


def programs() -> list[Row]:
    """Java and PySpark: name, path, version; both null where it is missing."""
    return [_java(), _pyspark()]


def _java() -> Row:
    """The Java that JAVA_HOME names, or PATH; its version is null where it does not start."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=os.path.join(home, "bin")) if home else None
    path = path or shutil.which("java")
    return {"name": "java", "path": path, "version": _java_version(path) if path else None}


def _java_version(path: str) -> str | None:
    try:
        done = subprocess.run(
            [path, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_JAVA_START_S, check=False
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return java_version_in((done.stderr + done.stdout).decode(errors="replace"))


def java_version_in(text: str) -> str | None:
    """`17.0.9` out of what `java -version` says."""
    found = re.search(r'version "([^"]+)"', text)
    return found[1] if found else None


def _pyspark() -> Row:
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    path = os.path.dirname(spec.origin) if spec is not None and spec.origin else None
    try:
        return {"name": "pyspark", "path": path, "version": version("pyspark") if path else None}
    except PackageNotFoundError:
        return {"name": "pyspark", "path": path, "version": None}
