"""Tests of one group run on one worker: a session of Spark, the build of the wheel and the benchmarks are made once."""

from __future__ import annotations

import pytest

SUITE = """
    import os
    import pytest

    @pytest.mark.xdist_group("one")
    @pytest.mark.parametrize("number", range(6))
    def test_of_the_group(number):
        print(f"worker of the group: {os.environ['PYTEST_XDIST_WORKER']}")

    @pytest.mark.parametrize("number", range(6))
    def test_of_no_group(number):
        assert number < 6
"""


def test_tests_of_a_group_run_on_one_worker(pytester: pytest.Pytester) -> None:
    """pytest-xdist 3.8 does not see groups with pytest 9.2 (its issue 1386), and says nothing of it."""
    pytester.makeini("[pytest]\naddopts = -p no:hypothesispytest\nmarkers = xdist_group(name): on one worker")
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup", "-rP")
    result.assert_outcomes(passed=12)
    workers = [line for line in result.outlines if line.startswith("worker of the group: ")]
    assert len(workers) == 6
    assert len(set(workers)) == 1, workers
