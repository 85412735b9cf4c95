"""The Java runtime for Spark: search, version check, and a hint for its installation.

Only the commands on Spark need Java. The search follows Spark's own scripts, JAVA_HOME and then PATH, and continues
with the usual directories of operating systems; the first Java that Spark can use is chosen.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from glob import glob

from storage.errors import ProgramMissing
from txnctl.spark.runtime.failure_text import cause_in_log

VERSION_MIN = 17
_PATTERNS = (
    "/usr/lib/jvm/*/bin/java",
    "/opt/java/*/bin/java",
)
_MODULE = "jdk.incubator.vector"
"""A module of Java that Spark always passes to its JVM: a Java without this module cannot run Spark."""

_START_S = 20
_VERSION = re.compile(r'version "(\d+)')
HINT = (
    "Install a Java runtime of version 17 or newer: apt-get install openjdk-17-jre-headless (Debian, Ubuntu), "
    "dnf install java-17-openjdk-headless (Fedora). Set JAVA_HOME where it is not in PATH."
)


class Java:
    """An installed Java.

    Attributes:
        home: the value of JAVA_HOME for this Java.
        version: the major version; 0 if the program does not start.
        problem: why Spark cannot use this Java; "" if Spark can.
    """

    __slots__ = ("home", "problem", "version")

    def __init__(self, home: str, version: int, problem: str = "") -> None:
        self.home = home
        self.version = version
        self.problem = problem


def candidates() -> list[str]:
    """Return the paths of programs called java, the likeliest first, without duplicates."""
    home = os.environ.get("JAVA_HOME")
    paths = [os.path.join(home, "bin", "java")] if home else []
    on_path = shutil.which("java")
    paths += [on_path] if on_path else []
    for pattern in _PATTERNS:
        paths += sorted(glob(pattern), reverse=True)
    real = [os.path.realpath(path) for path in paths if os.access(path, os.X_OK)]
    return list(dict.fromkeys(real))


def probe(path: str) -> Java:
    """Start a Java with the options that Spark passes, and return the Java with version or problem."""
    home = os.path.dirname(os.path.dirname(path))
    try:
        run = subprocess.run(
            [path, f"--add-modules={_MODULE}", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_START_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Java(home, 0, f"it does not start: {error}")
    output = f"{run.stderr}\n{run.stdout}"
    match = _VERSION.search(output)
    if run.returncode == 0 and match is not None:
        version = int(match[1])
        return Java(home, version, "" if version >= VERSION_MIN else f"version {version}")
    if _MODULE in output:
        return Java(home, VERSION_MIN, f"it lacks the module {_MODULE}")
    return Java(home, 0, f"it does not start: {cause_in_log(output)}")


def find_java() -> Java | None:
    """Return the first Java that Spark can use, else the first Java found, with its problem; None without any Java."""
    first = None
    for path in candidates():
        java = probe(path)
        if not java.problem:
            return java
        first = first or java
    return first


def require_java() -> Java:
    """Return a Java that Spark can use.

    Raises:
        ProgramMissing
    """
    java = find_java()
    if java is None:
        raise ProgramMissing("Java is not installed, and Spark runs on it", hint=HINT, program="java")
    if java.problem:
        raise ProgramMissing(
            f"Spark needs Java {VERSION_MIN} or newer and cannot use the Java in {java.home}: {java.problem}",
            hint=HINT,
            program="java",
            javaHome=java.home,
        )
    return java
