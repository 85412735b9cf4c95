"""The outcome of a batch, read off the transaction's record."""

from __future__ import annotations

import copy

from storage import TransactionState
from storage.client.work.batch_outcome import BatchOutcome
from storage.txn.record import TransactionRecord
from storage.values.txn_state import STATE_CODES

OPEN, COMMITTED, ABORTED = (STATE_CODES.index(state) for state in TransactionState)


def record(version: int, state: int = OPEN, used_ns: int = 5) -> TransactionRecord:
    """A record with these fields only."""
    made = TransactionRecord()
    made.version, made.state_code, made.used_ns = version, state, used_ns
    return made


def outcome(left: TransactionRecord, *, ends: bool = False) -> BatchOutcome:
    """An outcome whose batch was complete, and left this record."""
    made = BatchOutcome(lambda: None, ends=ends)
    made.note_start(left)
    made.note_end(left)
    return made


def test_a_record_with_as_many_writes_has_the_batch() -> None:
    """Fewer writes: the batch was lost. More: the transaction went on after the batch."""
    tried = outcome(record(3))
    assert [tried.is_committed(record(version)) for version in (2, 3, 4)] == [False, True, True]


def test_as_many_writes_by_another_process_are_not_the_batch() -> None:
    """The time of the last use tells the two apart."""
    assert not outcome(record(3, used_ns=5)).is_committed(record(3, used_ns=6))


def test_an_end_decided_elsewhere_is_no_write_of_the_batch() -> None:
    """A reaper's abort counts as one write."""
    tried = outcome(record(3))
    assert not tried.is_committed(record(3, ABORTED))
    assert tried.is_committed(record(4, ABORTED))


def test_a_batch_that_ends_the_transaction_is_known_by_the_state() -> None:
    """Whatever the count: a decided state never changes."""
    tried = outcome(record(3, COMMITTED), ends=True)
    assert tried.is_committed(record(3, COMMITTED))
    assert not tried.is_committed(record(3, ABORTED))
    assert not tried.is_committed(record(2))


def test_a_batch_that_was_not_complete_is_lost() -> None:
    """The change raised, so nothing of the batch was committed but a durable refusal."""
    made = BatchOutcome(lambda: None, ends=False)
    assert not made.is_committed(record(3))
    made.note_start(record(3))
    assert not made.is_committed(record(3))


def test_a_batch_that_runs_again_starts_anew() -> None:
    """The map had grown: the record of the first run does not count."""
    tried, again = outcome(record(3)), record(3, used_ns=9)
    tried.note_start(copy.copy(again))
    assert not tried.is_committed(again)
    tried.note_end(again)
    assert tried.is_committed(again)
