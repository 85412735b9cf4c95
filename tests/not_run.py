"""Rules for tests that cannot run on a machine: each is named at the end of the run, and is a failure if CI=true.

A test that needs a program of the operating system carries `@pytest.mark.needs_program("zsh")`. Where the program is
missing the test does not run, and the end of the run names the test with the way to get the program. With CI=true every
test that did not run, for whatever reason, has failed: a gap must never look like a success there. No test skips itself
otherwise than by that mark and by `forbidden`.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Generator
from glob import glob
from typing import Any, NoReturn

import pytest

STRICT = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# A program and the package that brings it, where that has another name.
PACKAGES = {
    "cc": "gcc",
    "initdb": "postgresql",
    "ip": "iproute2",
    "java": "openjdk-17-jre-headless",
    "man": "man-db",
    "promtool": "prometheus",
    "redis-server": "redis",
    "unshare": "util-linux",
}

# Debian keeps these apart, a folder for each version.
APART = "/usr/lib/postgresql/*/bin"


def find_program(name: str) -> str | None:
    """The path of a program of the operating system; None where it is missing."""
    apart = sorted(glob(f"{APART}/{name}"), key=lambda path: int("0" + "".join(filter(str.isdigit, path))))
    return shutil.which(name) or (apart[-1] if apart else None)


def program(name: str) -> str:
    """The path of a program that is there."""
    path = find_program(name)
    assert path is not None, f"{name} is missing (apt-get install {PACKAGES.get(name, name)})"
    return path


def forbidden(what: str) -> NoReturn:
    """Leave out the running test, for which this machine withholds a right from this user; a failure with CI=true.

    No package brings a right, so `needs_program` cannot name the way.
    """
    pytest.skip(f"{what}: this machine lets the superuser alone do so, or nobody")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Do not run a test whose programs are not here."""
    for marker in item.iter_markers("needs_program"):
        for name in marker.args:
            if find_program(name) is None:
                package = PACKAGES.get(name, name)
                # A failure with CI=true, by the rule below.
                pytest.skip(f"{name} is missing (apt-get install {package})")


def _fail_what_did_not_run(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure. (An expected failure is reported as a skip too, and stays one.)"""
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = (
            f"{reason.removeprefix('Skipped: ')}\nWith CI=true a test that does not run has failed."
        )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Hold the rule for single tests."""
    report = yield
    _fail_what_did_not_run(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Hold the rule for whole files."""
    report = yield
    _fail_what_did_not_run(report)
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name each test that did not run, with the way to make it run."""
    reasons = Counter(
        (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)).removeprefix(
            "Skipped: "
        )
        for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        terminalreporter.section("not run on this machine")
        for reason, count in sorted(reasons.items()):
            terminalreporter.write_line(f"{count} test{'s'[: count > 1]}: {reason}")
