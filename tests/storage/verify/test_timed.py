"""Verify recounts the entries with delivery times and their blocks: `storage/verify/timed.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import Store
from storage.disk.codec import pack, unpack
from storage.disk.schema import TIMED, TIMED_BLOCKS, Database
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.txn import timed_entries


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with a block and some more entries, that is not verified at the end."""
    monkeypatch.setattr(timed_entries, "BLOCK_TIMES", 4)
    place, clock = str(tmp_path / "store"), ManualClock()
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as opened:
        producer = opened.create_producer("t", create_topic=True)
        for number in range(6):
            producer.send(b"a", deliver_after=number)
        assert opened.maintenance.verify_store(full=True) == []
        yield opened


def lose(database: Database) -> Callable[[WriteBatch], None]:
    def change(batch: WriteBatch) -> None:
        batch.delete(database, next(iter(batch.keys(database))))

    return change


def other(database: Database) -> Callable[[WriteBatch], None]:
    """One more message at the first time of the first record."""

    def change(batch: WriteBatch) -> None:
        key, payload = next(iter(batch.scan(database)))
        fields = unpack(payload, 3)
        if database is TIMED:
            fields[2][0][1] += 1
        else:
            fields[4] += 1
        batch.put(database, key, pack(fields))

    return change


def invented(batch: WriteBatch) -> None:
    key, payload = next(iter(batch.scan(TIMED)))
    batch.put(TIMED, key[:16] + (99).to_bytes(8, "big"), bytes(payload))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lose(TIMED), "1:0 has delivery times, and is not noted with them"),
        (other(TIMED), "1:0 is noted with delivery times that its messages do not have"),
        (invented, "1:99 is noted with delivery times that its messages do not have"),
        (other(TIMED_BLOCKS), "the block of delivery times up to 1:3 is not the sum of its entries"),
    ],
)
def test_what_does_not_agree_with_the_log_is_found(
    store: Store, change: Callable[[WriteBatch], None], message: str
) -> None:
    """A count of delayed messages would be wrong."""
    store.connection.write(change)
    problems = store.maintenance.verify_store(full=True)
    assert message in [problem.message for problem in problems if problem.invariant == 23]
