"""The record of the servers of a store tells which commits are left of those that a process has seen."""

from __future__ import annotations

from storage.disk.postgres.server_record import SeenCommit, ServerRecord
from storage.disk.postgres.server_state import Identity

RECORD = ServerRecord(1, 2, True, 10, 1, "5/bank")


def test_the_record_is_read_as_written() -> None:
    """With the servers before."""
    moved = RECORD.moved(Identity(10, 2, "5/bank"), incarnation=1, last_commit=40)
    assert ServerRecord.decode(moved.encode()) == moved
    assert moved.server == Identity(10, 2, "5/bank")


def test_commits_behind_the_last_kept_one_are_lost() -> None:
    """The process had seen commit 42; the next server has 40 of its incarnation."""
    moved = RECORD.moved(Identity(10, 2, "5/bank"), incarnation=1, last_commit=40)
    now = SeenCommit(2, 41)
    assert moved.kept_of(SeenCommit(1, 42), now) == 40
    assert moved.kept_of(SeenCommit(1, 40), now) is None
    assert moved.kept_of(SeenCommit(2, 41), now) is None
