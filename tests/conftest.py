"""What holds for all tests: signals, JVMs, the seed of models, markers by where a test lies and what it uses."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests import lean_java, model_runs

pytest_plugins = [
    "tests.not_run", "tests.on_server", "tests.postgres_cluster", "tests.throwaway_server",
]  # fmt: skip

# nohup ignores SIGHUP, and a shell ignores SIGINT in a background job. Commands that tests start would inherit both.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("JDK_JAVA_OPTIONS", lean_java.options())

ONE_AT_A_TIME = "one_at_a_time"
"""The group of tests that take much memory and both cores: one worker runs all of them (`--dist loadgroup`)."""
STARTS_JVM = {"connect", "quick", "spark"}
"""Fixtures that start a JVM: a Spark Connect server, the benchmarks in their quick form, and a session of Spark."""
KILLS = {"children", "start"}
"""Fixtures that start processes for a test to kill, stop or interrupt."""
BUILDING = "tests/project/test_wheel.py"
"""Tests that share one build of the wheel, and start `pip`."""
KILLING = (
    "tests/benchmarks/test_soak.py::test_neither_files_nor_memory_grow",
    "tests/examples/",
    "tests/faults/",
    "tests/processes/",
    "tests/scale/",
    "tests/txnctl/cli/test_watch.py",
    "tests/txnctl/commands/health/test_top.py",
    "tests/txnctl/spark/sink/test_adoption.py",
    "tests/txnctl/spark/sink/test_killed_replica.py",
)
"""Where all tests do that."""
SLOW = (
    BUILDING,
    "tests/project/test_lock.py::test_pip_",
    "tests/docs/test_examples.py::test_every_block_of_a_page_runs_in_order",
    "tests/docs/test_examples.py::test_the_tour_shows_what_the_readme_says_of_it",
    "tests/docs/test_picture.py",
    "tests/benchmarks/test_curves.py::test_every_axis_has_a_table_and_a_panel",
    "tests/benchmarks/test_soak.py::test_neither_files_nor_memory_grow",
    "tests/golden/test_golden.py::test_the_json_of_every_command_is_that_of_the_golden_file",
    "tests/storage/disk/lmdb/test_read_cache.py::TestBulkImport",
    "tests/processes/test_damage.py::test_a_flipped_bit_is_found_or_does_no_harm",
    "tests/processes/test_lost_records.py",
    "tests/txnctl/cli/test_supervise.py::test_the_end_of_a_short_command_is_seen_beside_another_thread",
    "tests/txnctl/commands/producers/test_lead.py",
    "tests/txnctl/commands/tables/test_transactions.py::TestRun",
    "tests/txnctl/commands/test_demo.py",
    "tests/txnctl/commands/transactions/test_retries.py::TestInput",
    "tests/txnctl/commands/transactions/test_retries.py::TestLostConflict",
    "tests/txnctl/demo/test_audit.py",
    "tests/txnctl/report/test_page.py",
    "tests/txnctl/test_rules.py::TestHeldGate",
    "tests/txnctl/test_rules.py::TestPipes",
    "tests/txnctl/test_widths.py",
)
"""Tests of several seconds each: a third of the time of `make check` for a hundredth of its tests."""


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
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
        uses = STARTS_JVM.intersection(fixtures)
        if {"connect", "spark"}.intersection(uses):
            item.add_marker(pytest.mark.needs_program("java"))
        if uses or any("java" in marker.args for marker in item.iter_markers("needs_program")):
            item.add_marker("jvm")
        if item.get_closest_marker("jvm") or item.nodeid.startswith(BUILDING):
            item.add_marker(pytest.mark.xdist_group(ONE_AT_A_TIME))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the seed of models and properties."""
    terminalreporter.write_line(model_runs.seed_line(config))
