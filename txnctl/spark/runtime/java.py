"""Java: where it is, whether it is new enough for Spark, and what to do where it is not.

Nothing else of txnctl needs Java. It is looked for where Spark's own scripts look, JAVA_HOME and then PATH, and after
that where operating systems put it; the first that Spark can use is taken.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from glob import glob

from storage.errors import ProgramMissing

VERSION_MIN = 17
_PLACES = (
    "/usr/lib/jvm/*/bin/java",
    "/opt/java/*/bin/java",
    "/opt/homebrew/opt/openjdk*/bin/java",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
)
_MODULE = "jdk.incubator.vector"
"""Spark starts its JVM with this module, and no option turns that off."""

_START_S = 20
_VERSION = re.compile(r'version "(\d+)')
HINT = (
    "Install a Java runtime of version 17 or newer: apt-get install openjdk-17-jre-headless (Debian, Ubuntu), "
    "dnf install java-17-openjdk-headless (Fedora), brew install openjdk@17 (macOS). Set JAVA_HOME where it is not in "
    "PATH."
)


class Java:
    """A Java that was found.

    Attributes:
        home: what JAVA_HOME has to be for it.
        version: its major version, 0 where it does not even start.
        problem: why Spark cannot use it; "" where it can.
    """

    __slots__ = ("home", "problem", "version")

    def __init__(self, home: str, version: int, problem: str = "") -> None:
        self.home = home
        self.version = version
        self.problem = problem


def candidates() -> list[str]:
    """Paths of programs called java, the likeliest first, each once."""
    home = os.environ.get("JAVA_HOME")
    found = [os.path.join(home, "bin", "java")] if home else []
    on_path = shutil.which("java")
    found += [on_path] if on_path else []
    for place in _PLACES:
        found += sorted(glob(place), reverse=True)
    real = [os.path.realpath(path) for path in found if os.access(path, os.X_OK)]
    return list(dict.fromkeys(real))


def look_at(path: str) -> Java:
    """Start a Java, as Spark would, and say what it is."""
    home = os.path.dirname(os.path.dirname(path))
    try:
        done = subprocess.run(
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
    said = f"{done.stderr}\n{done.stdout}"
    match = _VERSION.search(said)
    if done.returncode == 0 and match is not None:
        version = int(match[1])
        return Java(home, version, "" if version >= VERSION_MIN else f"it is version {version}")
    if _MODULE in said:
        return Java(home, VERSION_MIN, f"it lacks the module {_MODULE}")
    return Java(
        home, 0, f"it does not start: {said.strip().splitlines()[0] if said.strip() else 'it says nothing'}"
    )


def find() -> Java | None:
    """The first Java that Spark can use; else the first there is, with its problem; None without any."""
    first = None
    for path in candidates():
        java = look_at(path)
        if not java.problem:
            return java
        first = first or java
    return first


def needed() -> Java:
    """A Java that Spark can use.

    Raises:
        ProgramMissing
    """
    java = find()
    if java is None:
        raise ProgramMissing("Java is not installed, and Spark runs on it", hint=HINT, program="java")
    if java.problem:
        raise ProgramMissing(
            f"Spark needs Java {VERSION_MIN} or newer; of that in {java.home} it cannot use any: {java.problem}",
            hint=HINT,
            program="java",
            javaHome=java.home,
        )
    return java
