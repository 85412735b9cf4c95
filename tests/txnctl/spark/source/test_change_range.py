"""A partition of changes, in a task."""

from __future__ import annotations

import pytest

from storage import Store, Table
from storage.errors import RequestTooOld
from tests.txnctl.spark.asked import struct
from tests.txnctl.spark.source.change_steps import COLUMNS, collect, given, rows
from txnctl.spark import options
from txnctl.spark.source.change_range import ChangeRange
from txnctl.spark.source.change_reader import ChangeReader


@pytest.fixture
def table(store: Store) -> Table:
    store.create_table("accounts")
    return store.table("accounts")


def test_changes_removed_after_the_plan(store: Store, table: Table) -> None:
    """A task fails, or goes on with those that are left."""
    table.put(b"a", b"1")
    kept = {
        fails: ChangeReader(options.change_read(given(store, failOnDataLoss=fails)), struct(*COLUMNS))
        for fails in ("true", "false")
    }
    plans = {fails: reader.partitions() for fails, reader in kept.items()}
    assert all(isinstance(part.value, ChangeRange) for plan in plans.values() for part in plan)
    collect(store)
    with pytest.raises(RequestTooOld):
        rows(kept["true"], plans["true"])
    assert rows(kept["false"], plans["false"]) == []
