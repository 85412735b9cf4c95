"""The Python that Spark starts beside its JVM, without the copy of PySpark that it would have it load.

Spark puts an archive of PySpark's sources first on the path of its Python processes. Each of them, and a job has half a
dozen, compiles these anew: more than a second of work, where the package that is installed is there compiled.
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


def worker_python(place: str) -> str:
    """What to tell Spark as its Python on this machine: a program that is made in a directory.

    It is this Python itself where the package is not one of its own, and where nothing in that directory may be run.
    """
    import pyspark

    root = os.path.dirname(os.path.dirname(os.path.abspath(pyspark.__file__)))
    if root not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return sys.executable
    program = os.path.join(place, _NAME)
    with open(program, "w", encoding="utf-8") as file:
        file.write(_SCRIPT % shlex.quote(sys.executable))
    os.chmod(program, 0o700)
    return program if os.access(program, os.X_OK) else sys.executable
