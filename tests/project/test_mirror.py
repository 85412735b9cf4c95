"""Tests mirror the rooms: a module's tests are found by its path alone."""

from __future__ import annotations

from tests.project import figures


def test_four_modules_in_five_have_a_test_file_in_the_same_place() -> None:
    """`storage/txn/coordinator.py` in tests/storage/txn/test_coordinator.py; modules of a few lines are not counted."""
    without, wanting = figures.modules_without_tests()
    missing = "\n".join(map(str, without))
    assert len(without) * 5 <= wanting, (
        f"{len(without)} of {wanting} modules have no test file of their own:\n{missing}"
    )
