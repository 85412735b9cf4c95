"""The three check modes on every intent there can be: open, committed and not finalised, aborted and not removed.

What each read must return is told from the rule alone: an intent counts if its transaction has committed and the mode
looks; `full` always looks, `none` never, `minimal` if the writer began before the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from storage import CheckMode, Store, Table, Transaction, TxnID
from tests.row_json import row_json

WriteMany = Callable[[TxnID, dict[bytes, bytes]], None]

STATES = ("open", "committed", "aborted")
BELOW: dict[str, bytes | None] = {"nothing": None, "value": b"old", "deleted": None}
WRITTEN: dict[str, bytes | None] = {"put": b"new", "deletion": None}
CASES = list(product(STATES, BELOW, WRITTEN))


def key_of(state: str, below: str, written: str) -> bytes:
    return f"k/{state}/{below}/{written}".encode()


class Prepared:
    """A key for each case, and readers of each mode begun before and after the writers."""

    def __init__(self, store: Store, table: Table, write_many: WriteMany) -> None:
        self.store, self.table = store, table
        for state, below, written in CASES:
            if below != "nothing":
                table.put(key_of(state, below, written), b"old")
            if below == "deleted":
                table.delete(key_of(state, below, written))
        self.readers: list[tuple[CheckMode, bool, Transaction | TxnID]] = []
        self._begin_readers(is_after=False)
        writers = {state: store.begin_transaction(timeout=3600) for state in STATES}
        for state, txn in writers.items():
            keys = {
                key_of(state, below, written): WRITTEN[written] or b""
                for below, written in product(BELOW, WRITTEN)
            }
            write_many(txn, keys)
            for below in BELOW:
                table.delete(key_of(state, below, "deletion"), txn=txn)
        store.commit_transaction(writers["committed"])
        store.admin.transactions.abort_transaction(writers["aborted"])
        assert {row["state"] for row in row_json(table.intents())} == {state.upper() for state in STATES}
        self._begin_readers(is_after=True)

    def _begin_readers(self, *, is_after: bool) -> None:
        for check in CheckMode:
            for begin in (self.store.transaction, self.store.begin_transaction):
                self.readers.append((check, is_after, begin(isolation="read-committed", check=check)))


@pytest.fixture
def prepared(store: Store, table: Table, write_many: WriteMany) -> Prepared:
    return Prepared(store, table, write_many)


def ways(table: Table, key: bytes, **how: object) -> Iterator[bytes | None]:
    """The value under a key, in every way in which it can be read."""
    yield table.get(key, **how)  # type: ignore[arg-type]
    row = table.get_row(key, **how)  # type: ignore[arg-type]
    yield None if row is None else row.value
    for bounds in (
        {"prefix": key},
        {"prefix": key, "reverse": True},
        {"start": key, "limit": 1, "end": key + b"\0"},
        {"start": b"k/", "end": key + b"\0", "reverse": True, "limit": 1},
    ):
        rows = [row for row in table.scan(**bounds, **how) if row.key == key]  # type: ignore[arg-type]
        yield rows[0].value if rows else None


def expected(case: tuple[str, str, str], check: CheckMode, is_after: bool) -> bytes | None:
    state, below, written = case
    looks = check is CheckMode.FULL or (check is CheckMode.MINIMAL and is_after)
    return WRITTEN[written] if looks and state == "committed" else BELOW[below]


def test_each_reader_sees_what_its_mode_says(prepared: Prepared) -> None:
    """In transactions of both kinds, begun before and after the writers, by key and by range, in both directions."""
    for case in CASES:
        key = key_of(*case)
        for check, is_after, reader in prepared.readers:
            for found in ways(prepared.table, key, txn=reader):
                assert found == expected(case, check, is_after), (case, check, is_after)
        for check in CheckMode:
            for found in ways(prepared.table, key, check=check):
                assert found == expected(case, check, is_after=True), (case, check)


def test_reading_changes_the_state_of_nobody(prepared: Prepared) -> None:
    """All intents are as they were after all those reads, and no conflict was recorded."""
    before = row_json(prepared.table.intents())
    for case in CASES:
        for _, _, reader in prepared.readers:
            list(ways(prepared.table, key_of(*case), txn=reader))
    without_age = [
        [{**row, "ageMs": 0} for row in rows] for rows in (before, row_json(prepared.table.intents()))
    ]
    assert without_age[0] == without_age[1]
    assert row_json(prepared.store.reports.list_conflicts()) == []


def test_once_finalised_every_mode_sees_the_same(prepared: Prepared) -> None:
    """gc changes no answer that looks, and lets those that do not look catch up (invariant 22)."""
    prepared.store.maintenance.collect_garbage()
    assert {row["state"] for row in row_json(prepared.table.intents())} == {"OPEN"}
    for case in CASES:
        for _, _, reader in prepared.readers:
            for found in ways(prepared.table, key_of(*case), txn=reader):
                assert found == expected(case, CheckMode.FULL, is_after=True), case


def test_a_serializable_reader_sees_committed_intents_and_pushes_open_ones(prepared: Prepared) -> None:
    """Whether finalised or not is nobody's business: a newer reader sees what is committed."""
    reader = prepared.store.begin_transaction()
    for case in CASES:
        for found in ways(prepared.table, key_of(*case), txn=reader):
            assert found == expected(case, CheckMode.FULL, is_after=True), case
    assert {row["winner"] for row in row_json(prepared.store.reports.list_conflicts())} == {str(reader)}


def test_a_read_in_the_past_sees_what_had_committed_by_then(prepared: Prepared) -> None:
    """At the version of the commit and after it, not before; aborted intents are nothing, open ones were aborted."""
    for each in row_json(prepared.store.reports.list_transactions()):
        prepared.store.admin.transactions.abort_transaction(each["txnId"])
    for case in CASES:
        row = next(row for row in row_json(prepared.table.versions(key_of(*case))) if row["intent"])
        version = int(row["version"])
        for found in ways(prepared.table, key_of(*case), at=version):
            assert found == expected(case, CheckMode.FULL, is_after=True), case
        for found in ways(prepared.table, key_of(*case), at=version - 1):
            assert found == BELOW[case[1]], case
