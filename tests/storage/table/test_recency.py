"""What is said of the order of time and of read-committed reads is found out where it does not hold."""

from __future__ import annotations

import pytest

from tests.storage.table.recency import Commit, CommittedRead, check_committed_reads, check_order

COMMITS = [
    Commit(1, 0, 1, 2, {"x": "10", "y": "20"}),
    Commit(5, 10, 20, 30, {"x": "11"}),
    Commit(7, 12, 40, 50, {"x": None}),
    Commit(9, 60, 70, None, {"x": "12"}),
]


def read(check: str, version: int, value: str | None, began: int, ended: int, key: str = "x") -> list[str]:
    reads = [CommittedRead(check, key, version, value, began, ended)]
    return [found.kind for found in check_committed_reads(COMMITS, reads)]


@pytest.mark.parametrize("check", ["full", "minimal", "none"])
def test_what_was_committed_may_be_read_from_the_moment_it_was_asked_for(check: str) -> None:
    """Answered or not, by whoever reads while or after it was; a deletion as nothing."""
    assert read(check, 5, "11", 15, 25) == []
    assert read(check, 5, "11", 31, 39) == []
    assert read(check, 5, "11", 31, 100) == []
    assert read(check, 0, None, 51, 52) == []
    assert read(check, 9, "12", 75, 76) == []
    assert read(check, 1, "20", 75, 76, "y") == []
    assert read(check, 0, None, 75, 76, "z") == []


@pytest.mark.parametrize("check", ["full", "minimal", "none"])
def test_what_was_not_committed_is_dirty(check: str) -> None:
    """A version of nobody, another value, a commit that was asked for later."""
    assert read(check, 6, "11", 31, 39) == ["dirty"]
    assert read(check, 5, "12", 31, 39) == ["dirty"]
    assert read(check, 5, "11", 15, 19) == ["dirty"]
    assert read(check, 9, "12", 55, 65) == ["dirty"]


@pytest.mark.parametrize(("check", "expected"), [("full", ["stale"]), ("minimal", ["stale"]), ("none", [])])
def test_older_than_what_was_answered_before_is_stale_but_for_none(check: str, expected: list[str]) -> None:
    """A value where a newer one, or a deletion, had been answered; nothing where there was a value."""
    assert read(check, 1, "10", 31, 39) == expected
    assert read(check, 5, "11", 51, 52) == expected
    assert read(check, 0, None, 31, 39) == expected
    assert read(check, 1, "10", 29, 39) == []


def test_the_order_of_time_is_that_of_timestamps() -> None:
    """Of two where one began after the other was answered; others may be in any order."""
    assert check_order(COMMITS) == []
    overlapping = Commit(3, 25, 26, 27, {})
    assert check_order([*COMMITS, overlapping]) == []
    late = Commit(4, 31, 32, 33, {})
    assert [found.kind for found in check_order([late, *COMMITS])] == ["real time"]
