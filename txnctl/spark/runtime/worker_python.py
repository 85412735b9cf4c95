"""The Python of Spark's worker processes, without Spark's own copy of PySpark on the path.

Spark puts an archive of PySpark's sources first on the path of its Python processes. Each process, half a dozen in a
job, compiles the sources again: more than a second of work, although the installed package is compiled already.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from typing import Final

_NAME: Final = "python"
_SCRIPT: Final = """#!/bin/sh
PYTHONPATH=${PYTHONPATH##*-src.zip:}
PYTHONPATH=${PYTHONPATH#*/spark-core_*.jar:}
exec %s "$@"
"""
"""The path begins, often twice, with `.../pyspark.zip:.../py4j-0.10.9.9-src.zip:.../spark-core_2.13-4.3.0.jar:`."""


def worker_python(directory: str) -> str:
    """Return the Python for Spark on this machine: a script made in a directory.

    Return this Python itself if the package is not installed in its site directory, or if the directory forbids
    execution.
    """
    import pyspark

    root = os.path.dirname(os.path.dirname(os.path.abspath(pyspark.__file__)))
    if root not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return sys.executable
    program = os.path.join(directory, _NAME)
    with open(program, "w", encoding="utf-8") as file:
        file.write(_SCRIPT % shlex.quote(sys.executable))
    os.chmod(program, 0o700)
    return program if os.access(program, os.X_OK) else sys.executable
