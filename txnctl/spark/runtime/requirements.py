"""The programs that pipelines need beside txnctl: Java, PySpark, PyArrow; checks, and hints for their installation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from storage.errors import PlatformUnsupported, ProgramMissing
from storage.process.machine import user_name
from txnctl.spark.runtime import java

Packages = Mapping[str, tuple[str, tuple[int, ...]]]
"""Distribution -> its display name and oldest supported version; pyproject.toml has the same versions."""

PACKAGES: Packages = {"pyspark": ("PySpark", (4, 2)), "pyarrow": ("PyArrow", (18,))}

CONNECT_PACKAGES: Packages = {
    "pandas": ("pandas", (2, 2)),
    "grpcio": ("grpcio", (1, 76)),
    "grpcio-status": ("grpcio-status", (1, 76)),
    "googleapis-common-protos": ("googleapis-common-protos", (1, 71)),
    "zstandard": ("zstandard", (0, 25)),
}
"""What PySpark needs beside, to talk to a Spark Connect server."""

HINT = "Install it with: pip install 'txnctl[spark]'"
CONNECT_HINT = "Install it with: pip install 'txnctl[connect]'"


@dataclass(frozen=True, slots=True)
class Requirement:
    """The state of a program that pipelines need.

    Attributes:
        what: its display name.
        version: None if the program is missing.
        place: directory of Java; None for packages.
        hint: how to install the program; None if it is usable.
    """

    what: str
    ok: bool
    version: str | None
    place: str | None
    hint: str | None


def check_all() -> list[Requirement]:
    """Check every requirement, without raising."""
    requirements = [_java_requirement()]
    for package, (name, _) in PACKAGES.items():
        problem = _problem(package, PACKAGES)
        hint = None if problem is None else problem.hint
        requirements.append(Requirement(name, problem is None, _version(package), None, hint))
    return requirements


def _java_requirement() -> Requirement:
    installed = java.find_java()
    if installed is None:
        return Requirement("Java", False, None, None, java.HINT)
    hint = f"{installed.problem}. {java.HINT}" if installed.problem else None
    version_text = str(installed.version) if installed.version else None
    return Requirement("Java", not installed.problem, version_text, installed.home, hint)


def require_all() -> java.Java:
    """Require Java, all packages, and a user whom Java knows; return the Java to use.

    Raises:
        ProgramMissing: names the first missing program, with a hint for its installation.
        PlatformUnsupported: the user, as of a container, has no passwd entry: Java's login ends Spark at the start.
    """
    for package in PACKAGES:
        require_package(package)
    installed, user = java.require_java(), os.geteuid()
    if user_name(user) is None:
        raise PlatformUnsupported(
            f"user {user} has no passwd entry, and Spark does not start without one",
            hint=f"Add one: echo 'spark:x:{user}:0::/tmp:/bin/sh' >> /etc/passwd, or run as a known user.",
            missing="passwd",
        )
    return installed


def require_package(package: str) -> None:
    """Require one of `PACKAGES`, for a command that needs no more.

    Raises:
        ProgramMissing
    """
    problem = _problem(package, PACKAGES)
    if problem is not None:
        raise problem


def require_connect() -> None:
    """Require what a session of a Spark Connect server needs: packages, and no Java.

    Raises:
        ProgramMissing: names the first missing package, with a hint for its installation.
    """
    for package in PACKAGES:
        require_package(package)
    for package in CONNECT_PACKAGES:
        problem = _problem(package, CONNECT_PACKAGES, CONNECT_HINT)
        if problem is not None:
            raise problem


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _problem(package: str, packages: Packages, hint: str = HINT) -> ProgramMissing | None:
    name, oldest = packages[package]
    user = "pipelines run on it" if packages is PACKAGES else "Spark Connect needs it"
    installed = _version(package)
    required = ".".join(map(str, oldest))
    if installed is None:
        return ProgramMissing(f"{name} is not installed, and {user}", hint=hint, program=package)
    if _numbers(installed) < oldest:
        return ProgramMissing(
            f"{name} {installed} is too old: {required} or newer is needed",
            hint=hint.replace("Install", "Renew").replace("install", "install -U"),
            program=package,
        )
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """Parse the leading numbers of a version: `4.3.0.dev1` is (4, 3, 0)."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
