"""Two transactions meet over a key: every way in which they can, and who survives.

One acts (reads or writes), the other has left an intent: it is open, committed or aborted, older or newer, of lower,
equal or higher priority. What must come of it is told from the rules of semantics section 7 alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, product

import pytest

from storage import Store, Table, Transaction, TransactionState, TxnID
from storage.errors import LostConflict, TxnctlError, WriteTooOld
from storage.limits import FINALIZE_INLINE_MAX
from tests.row_json import row_json

BELOW = b"below"
ACTS: dict[str, Callable[[Table, bytes, TxnID], object]] = {
    "get": lambda table, key, txn: table.get(key, txn=txn),
    "scan": lambda table, key, txn: next(iter(table.scan(prefix=key, txn=txn))).value,
    "scan back": lambda table, key, txn: next(iter(table.scan(prefix=key, reverse=True, txn=txn))).value,
    "put": lambda table, key, txn: table.put(key, b"mine", txn=txn),
    "delete": lambda table, key, txn: table.delete(key, txn=txn),
}
PRIORITIES = {"lower": ("low", "high"), "equal": ("medium", "medium"), "higher": ("highest", "high")}


class Meeting:
    """One of them, over a key of its own."""

    def __init__(self, store: Store, table: Table, key: bytes, is_newer: bool, priority: str) -> None:
        mine, other = PRIORITIES[priority]
        self.store, self.table, self.key = store, table, key
        table.put(key, BELOW)
        if is_newer:
            self.other, self.me = store.transaction(priority=other), store.begin_transaction(priority=mine)
        else:
            self.me, self.other = store.begin_transaction(priority=mine), store.transaction(priority=other)

    def leave_intent(self, state: str) -> None:
        """Of the other one; decided, so that it is not finalised."""
        self.table.put(self.key, b"other", txn=self.other)
        for number in range(FINALIZE_INLINE_MAX):
            self.table.put(b"~" + self.key + b"%02d" % number, b"", txn=self.other)
        self.other.flush()
        if state == "committed":
            self.other.commit()
        elif state == "aborted":
            self.other.abort()
        assert row_json(self.table.versions(self.key))[0]["intent"]

    def act(self, act: str) -> object:
        """What came of it: a value read, nothing for a write, or the kind of the error."""
        try:
            found = ACTS[act](self.table, self.key, self.me)
            return found if isinstance(found, bytes) else None
        except TxnctlError as error:
            return type(error)


def expected(act: str, state: str, is_newer: bool, priority: str) -> object:
    is_read = act in ("get", "scan", "scan back")
    if is_read and not is_newer:
        return BELOW
    if state == "committed":
        if is_read:
            return b"other"
        return None if is_newer else WriteTooOld
    survives = {"lower": False, "equal": is_newer, "higher": True}[priority]
    if state == "open" and not survives:
        return LostConflict
    return BELOW if is_read else None


@pytest.mark.parametrize("act", ACTS)
def test_what_comes_of_a_meeting(store: Store, table: Table, act: str) -> None:
    """The loser is aborted at once and completely, the winner goes on, and whoever need not meet does not."""
    numbers = count()
    for state, is_newer, priority in product(("open", "committed", "aborted"), (True, False), PRIORITIES):
        case = (state, is_newer, priority)
        meeting = Meeting(store, table, b"k%02d" % next(numbers), is_newer, priority)
        meeting.leave_intent(state)
        outcome = meeting.act(act)
        assert outcome == expected(act, state, is_newer, priority), case
        is_refused = isinstance(outcome, type)
        assert row_json(store.reports.show_transaction(meeting.me))["state"] == (
            "ABORTED" if is_refused else "OPEN"
        ), case
        must_meet = act in ("put", "delete") or is_newer
        is_pushed = state == "open" and must_meet and not is_refused
        if state == "open":
            wanted = TransactionState.ABORTED if is_pushed else TransactionState.OPEN
            assert meeting.other.state is wanted, case
        if not is_refused:
            store.commit_transaction(meeting.me)
        if meeting.other.state is TransactionState.OPEN:
            meeting.other.commit()
        elif is_pushed:
            with pytest.raises(LostConflict):
                meeting.other.commit()


LATER: dict[str, Callable[[Store, Table, Transaction | TxnID], object]] = {
    "get": lambda store, table, txn: table.get(b"elsewhere", txn=txn),
    "scan": lambda store, table, txn: list(table.scan(txn=txn)),
    "put and flush": lambda store, table, txn: (
        table.put(b"elsewhere", b"", txn=txn),
        isinstance(txn, Transaction) and txn.flush(),
    ),
    "send": lambda store, table, txn: store.create_producer("t", connected=False).send(b"m", txn=txn),
    "commit": lambda store, table, txn: store.commit_transaction(txn),
}


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("kind", ["detached", "flushed"])
@pytest.mark.parametrize("by", ["a newer reader", "a newer writer", "an older writer of higher priority"])
def test_who_was_aborted_learns_by_whom_and_over_which_key(
    store: Store, table: Table, kind: str, by: str, later: str
) -> None:
    """At the next operation, whichever it is; and it is recorded with the transaction and for operators."""
    older = store.begin_transaction(priority="high")
    loser: Transaction | TxnID = store.begin_transaction() if kind == "detached" else store.transaction()
    newer = store.begin_transaction()
    for key in (b"first", b"fought", b"last"):
        table.put(key, b"v", txn=loser)
    if isinstance(loser, Transaction):
        loser.flush()
    winner = older if "older" in by else newer
    if "reader" in by:
        assert table.get(b"fought", txn=winner) is None
    else:
        table.put(b"fought", b"w", txn=winner)
    with pytest.raises(LostConflict) as raised:
        LATER[later](store, table, loser)
    details = raised.value.details
    assert (details["winner"], details["table"], details["key"]) == (str(winner), "accounts", "fought")
    assert raised.value.retryable
    row = store.reports.show_transaction(loser)
    shown = row_json(row)
    assert (shown["state"], shown["reason"]) == ("ABORTED", "lost-conflict")
    assert shown["conflict"]["winner"] == str(winner)
    assert row.conflict is not None
    assert (row.conflict.table, row.conflict.key) == ("accounts", b"fought")
    recorded = store.reports.list_conflicts(table="accounts")[0]
    assert (str(recorded.winner), recorded.key, str(recorded.loser)) == (
        str(winner),
        b"fought",
        shown["txnId"],
    )
    store.commit_transaction(winner)
    assert [row.key for row in table.scan()] == ([] if "reader" in by else [b"fought"])


def test_whoever_retries_with_a_higher_priority_gets_through(store: Store, table: Table) -> None:
    """An old transaction against a stream of newer ones loses at each key, until it asks for more."""
    for priority, survives in (("medium", False), ("medium", False), ("high", True)):
        patient = store.begin_transaction(priority=priority)
        table.put(b"k", b"patient", txn=patient)
        hasty = store.begin_transaction()
        try:
            table.put(b"k", b"hasty", txn=hasty)
        except LostConflict:
            assert survives
        else:
            store.commit_transaction(hasty)
        assert (row_json(store.reports.show_transaction(patient))["state"] == "OPEN") is survives
        if survives:
            store.commit_transaction(patient)
    assert table.get(b"k") == b"patient"


def test_readers_do_not_meet_readers(store: Store, table: Table) -> None:
    """Any number of them, old and new, over the same keys: nobody is aborted."""
    table.put(b"k", b"v")
    readers = [store.begin_transaction(priority=priority) for priority in ("highest", "lowest", "medium") * 2]
    for reader in readers + readers[::-1]:
        assert table.get(b"k", txn=reader) == b"v"
        assert len(list(table.scan(txn=reader))) == 1
    for reader in readers:
        store.commit_transaction(reader)
    assert row_json(store.reports.list_conflicts()) == []
