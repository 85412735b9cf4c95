"""The choice of transactions for lists: all that is given must match."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from storage.errors import InvalidValue, TopicNotFound


@pytest.fixture
def loaders(store: Store) -> list[str]:
    """Three open transactions: two of a loader, the first of them with a message on a topic."""
    store.create_topic("orders")
    first = store.begin_transaction(labels={"job": "loader", "run": "7"})
    store.create_producer("orders", connected=False).send(b"x", txn=first)
    others = [store.begin_transaction(labels=labels) for labels in ({"job": "loader"}, None)]
    return [str(txn) for txn in (first, *others)]


@pytest.mark.parametrize(
    ("chosen", "matching"),
    [
        ({}, [0, 1, 2]),
        ({"labels": {"job": "loader"}}, [0, 1]),
        ({"labels": {"job": "loader", "run": "7"}}, [0]),
        ({"labels": {"job": ""}}, []),
        ({"topic": "orders"}, [0]),
        ({"owner": "@"}, [0, 1, 2]),
        ({"owner": "no such owner"}, []),
        ({"older_than": 3600}, []),
        ({"topic": "orders", "labels": {"job": "loader"}, "owner": "@"}, [0]),
    ],
)
def test_everything_given_must_match(
    store: Store, loaders: list[str], chosen: dict[str, Any], matching: list[int]
) -> None:
    """Open transactions and ended ones are chosen by the same rule."""
    expected = [loaders[number] for number in matching]
    assert [str(row.txn_id) for row in store.reports.list_transactions(**chosen)] == expected
    for txn in loaders:
        store.admin.transactions.abort_transaction(txn)
    assert sorted(str(row.txn_id) for row in store.reports.list_ended_transactions(**chosen)) == expected


def test_an_ended_transaction_is_as_old_as_it_was_at_its_end(store: Store) -> None:
    """An age counts from the begin to the end, as lists show it."""
    txn = store.begin_transaction()
    store.admin.transactions.abort_transaction(txn)
    age_s = store.reports.list_transactions(ended=True)[0].age_ms / 1000
    assert store.reports.list_transactions(ended=True, older_than=age_s) == []


def test_wrong_choices_are_refused(store: Store) -> None:
    """A topic that is not there, and values of other types."""
    with pytest.raises(TopicNotFound):
        store.reports.list_transactions(topic="none")
    for wrong in ({"labels": {"job": 1}}, {"owner": 1}, {"older_than": "1h"}, {"older_than": -1}):
        with pytest.raises(InvalidValue):
            store.reports.list_transactions(**wrong)  # type: ignore[arg-type]
