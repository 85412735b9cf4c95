"""What the pipeline needs beside txnctl itself: Java, PySpark, PyArrow. What is there, and how to get the rest."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from storage.errors import ProgramMissing
from txnctl.spark.runtime import java

PACKAGES = {"pyspark": ("PySpark", (4, 2)), "pyarrow": ("PyArrow", (18,))}
"""Distribution -> its name for people and the oldest version that will do; pyproject.toml says the same."""

HINT = "Install it with: pip install 'txnctl[spark]'"


def describe() -> list[dict[str, Any]]:
    """A row each: `what`, `ok`, `version`, `place` and `hint`, the last two null where there is nothing to say."""
    found = java.find()
    rows: list[dict[str, Any]] = [
        {
            "what": "Java",
            "ok": found is not None and not found.problem,
            "version": None if found is None or not found.version else str(found.version),
            "place": None if found is None else found.home,
            "hint": java.HINT
            if found is None
            else f"{found.problem}. {java.HINT}"
            if found.problem
            else None,
        }
    ]
    for package, (name, _) in PACKAGES.items():
        problem = _problem(package)
        rows.append(
            {
                "what": name,
                "ok": problem is None,
                "version": _version(package),
                "place": None,
                "hint": problem and problem.hint,
            }
        )
    return rows


def check() -> java.Java:
    """See that all is there; the Java to use.

    Raises:
        ProgramMissing: names the first that is missing, and how to get it.
    """
    for package in PACKAGES:
        check_package(package)
    return java.needed()


def check_package(package: str) -> None:
    """See that one of `PACKAGES` is there, for what needs no more.

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
    has = _version(package)
    wanted = ".".join(map(str, oldest))
    if has is None:
        return ProgramMissing(f"{name} is not installed, and pipelines run on it", hint=HINT, program=package)
    if _numbers(has) < oldest:
        return ProgramMissing(
            f"{name} {has} is too old: {wanted} or newer is needed",
            hint=HINT.replace("Install", "Renew").replace("install", "install -U"),
            program=package,
        )
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """`4.3.0` as numbers; what is no number ends them: `4.3.0.dev1` is (4, 3, 0)."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
