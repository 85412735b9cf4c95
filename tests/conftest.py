"""What holds for all tests: signals, JVMs, the seed of models, markers by where a test lies and what it uses."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests import lean_java, model_runs

pytest_plugins = ["tests.not_run"]

# nohup ignores SIGHUP, and a shell ignores SIGINT in a background job. Commands that tests start would inherit both.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("JDK_JAVA_OPTIONS", lean_java.options())

ONE_AT_A_TIME = "one_at_a_time"
"""The group of tests that take much memory and both cores: one worker runs all of them (`--dist loadgroup`)."""
STARTS_JVM = {"quick", "spark"}
"""Fixtures that start a JVM: the benchmarks in their quick form, and a session of Spark."""
KILLS = {"children", "start"}
"""Fixtures that start processes for a test to kill, stop or interrupt."""
BUILDING = "tests/project/test_wheel.py"
"""Tests that share one build of the wheel, and start `pip`."""
KILLING = ("tests/examples/", "tests/processes/", "tests/scale/", "tests/txnctl/spark/sink/test_adoption.py")
"""Where all tests do that."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of models and properties, before Hypothesis reads the option."""
    model_runs.choose_seed(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the processes they start, before `-m` selects; keep all JVMs and `pip` on one worker."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if item.nodeid.startswith(KILLING) or KILLS.intersection(fixtures):
            item.add_marker("kills")
        uses = STARTS_JVM.intersection(fixtures)
        if "spark" in uses:
            item.add_marker(pytest.mark.needs_program("java"))
        if uses or any("java" in marker.args for marker in item.iter_markers("needs_program")):
            item.add_marker("jvm")
        if item.get_closest_marker("jvm") or item.nodeid.startswith(BUILDING):
            item.add_marker(pytest.mark.xdist_group(ONE_AT_A_TIME))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the seed of models and properties."""
    terminalreporter.write_line(model_runs.seed_line(config))
