"""Columns: `txnctl/output/column.py`."""

from __future__ import annotations

from typing import NamedTuple

from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from txnctl.output.column import Column
from txnctl.output.table import list_table


class Held(NamedTuple):
    """A row with every kind of value."""

    txn_id: TxnID
    first: Position | None
    age_ms: int
    size: int
    begin_at_ms: int
    state: TransactionState
    label: str


COLUMNS: tuple[Column[Held], ...] = (
    Column("TXN", "id", lambda row: row.txn_id),
    Column("FIRST", "position", lambda row: row.first),
    Column("AGE", "duration", lambda row: row.age_ms),
    Column("SIZE", "size", lambda row: row.size),
    Column("BEGUN", "time", lambda row: row.begin_at_ms),
    Column("STATE", "text", lambda row: row.state),
    Column("LABEL", "text", lambda row: row.label),
)


def test_a_column_words_the_value_of_its_kind() -> None:
    """Durations, sizes, times, enumerations and unknown values; text is harmless."""
    row = Held(TxnID(7), None, 61_000, 2048, 1_795_380_900_000, TransactionState.OPEN, "a\x1bb")
    assert [column.cell(row) for column in COLUMNS] == [
        "0:7", "-", "1m01s", "2.0 KiB", "2026-11-22T20:55:00.000Z", "OPEN", "a\\x1bb",
    ]  # fmt: skip


def test_numbers_stand_to_the_right() -> None:
    """Under a heading a column."""
    rows = [
        Held(TxnID(7), Position(1, 5), 5, 10, 0, TransactionState.OPEN, "x"),
        Held(TxnID(12), Position(1, 15), 50, 1000, 0, TransactionState.OPEN, "y"),
    ]
    assert str(list_table(rows, COLUMNS[:4])) == (
        "TXN   FIRST   AGE     SIZE\n0:7   1:5     5ms     10 B\n0:12  1:15   50ms  1,000 B"
    )
