"""The programs that pipelines need beside txnctl: Java, PySpark, PyArrow; checks, and hints for their installation."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from storage.errors import ProgramMissing
from txnctl.spark.runtime import java

PACKAGES = {"pyspark": ("PySpark", (4, 2)), "pyarrow": ("PyArrow", (18,))}
"""Distribution -> its display name and oldest supported version; pyproject.toml has the same versions."""

HINT = "Install it with: pip install 'txnctl[spark]'"


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
        problem = _problem(package)
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
    """Require Java and all packages; return the Java to use.

    Raises:
        ProgramMissing: names the first missing program, with a hint for its installation.
    """
    for package in PACKAGES:
        require_package(package)
    return java.require_java()


def require_package(package: str) -> None:
    """Require one of `PACKAGES`, for a command that needs no more.

    Raises:
        ProgramMissing
    """
    problem = _problem(package)
    if problem is not None:
        raise problem


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _problem(package: str) -> ProgramMissing | None:
    name, oldest = PACKAGES[package]
    installed = _version(package)
    required = ".".join(map(str, oldest))
    if installed is None:
        return ProgramMissing(f"{name} is not installed, and pipelines run on it", hint=HINT, program=package)
    if _numbers(installed) < oldest:
        return ProgramMissing(
            f"{name} {installed} is too old: {required} or newer is needed",
            hint=HINT.replace("Install", "Renew").replace("install", "install -U"),
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
