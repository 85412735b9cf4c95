"""Transactions that want attention: open for long, with what each holds back."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import InvalidValue
from storage.process.clock import ManualClock
from tests.row_json import row_json


def test_the_oldest_come_first_with_what_waits_for_each(store: Store, clock: ManualClock) -> None:
    """Younger ones are not among them; one that holds nothing frees nothing."""
    producer = store.create_producer("t")
    first, idle = store.begin_transaction(timeout=3600), store.begin_transaction(timeout=3600)
    producer.send(b"open", txn=first)
    for _ in range(3):
        producer.send(b"blocked")
    clock.advance(100)
    store.begin_transaction()
    rows = row_json(store.reports.list_slow_transactions(over=60))
    assert [(row["txnId"], row["frees"]) for row in rows] == [(str(first), 3), (str(idle), 0)]
    assert len(row_json(store.reports.list_slow_transactions(over=0))) == 3
    assert row_json(store.reports.list_slow_transactions(over=101)) == []


def test_an_age_is_no_less_than_nothing(store: Store) -> None:
    """And is a number."""
    with pytest.raises(InvalidValue, match="an age is 0 seconds or more"):
        row_json(store.reports.list_slow_transactions(over=-1))


def test_a_living_process_leaves_no_orphans(store: Store) -> None:
    """tests/processes has dead ones."""
    store.begin_transaction()
    assert row_json(store.reports.list_orphaned_transactions()) == []
