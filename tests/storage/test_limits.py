"""Limits: `storage/limits.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from storage import Store
from storage.errors import (
    InvalidValue,
    NotFound,
    WriteTooOld,
)
from tests.row_json import row_json


def something_of_everything(store: Store) -> None:
    """An ended transaction, a conflict, a change; and open transactions, messages, intents, two each."""
    store.create_table("a")
    table, producer = store.table("a"), store.create_producer("t")
    older = store.begin_transaction()
    table.put(b"0", b"0")
    with pytest.raises(WriteTooOld):
        table.put(b"0", b"1", txn=older)
    for number in range(2):
        txn = store.begin_transaction()
        table.put(b"%d" % (number + 1), b"0", txn=txn)
        producer.send(b"x", txn=txn)
    store.admin.settings.set_reap_policy("manual")


class TestLimits:
    """How many rows are asked for: all, none, or so many; anything else is bad input."""

    LISTS: ClassVar[list[Callable[[Store, Any], Any]]] = [
        lambda store, limit: row_json(store.reports.list_transactions(limit=limit)),
        lambda store, limit: row_json(store.reports.list_transactions(ended=True, limit=limit)),
        lambda store, limit: row_json(store.reports.list_ended_transactions(limit=limit)),
        lambda store, limit: row_json(store.reports.list_audit_records(limit)),
        lambda store, limit: row_json(store.reports.list_intents(limit=limit)),
        lambda store, limit: row_json(store.reports.list_conflicts(limit)),
        lambda store, limit: list(row_json(store.reports.topic_log("t", limit=limit))),
    ]

    @pytest.mark.parametrize("rows", LISTS)
    def test_a_limit_is_kept_or_refused(self, store: Store, rows: Callable[[Store, Any], Any]) -> None:
        """However large it is: there are never so many."""
        something_of_everything(store)
        every = rows(store, None)
        assert every
        assert rows(store, 1 << 70) == every
        assert (rows(store, 1), rows(store, 0)) == (every[:1], [])
        with pytest.raises(InvalidValue):
            rows(store, -1)

    def test_a_record_that_never_was_is_not_found(self, store: Store) -> None:
        """Also under a number that no record can have."""
        for number in (0, -1, 1, 1 << 63, 1 << 70):
            with pytest.raises(NotFound):
                store.reports.show_audit_record(number)

    @pytest.mark.parametrize("parts", [0, -1])
    def test_a_table_is_cut_into_one_part_at_least(self, store: Store, parts: int) -> None:
        """One part needs no cut."""
        store.create_table("a")
        assert store.table("a").split(1) == []
        with pytest.raises(InvalidValue):
            store.table("a").split(parts)
