"""Ctrl-C at every line of the code that writes what a transaction keeps, and a program that goes on after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from storage import Producer, Store, Table, TransactionState
from storage.client.work import batch_outcome, buffers, handle, outbox, work, write_behind, write_set
from storage.process.clock import ManualClock

FILES = {
    module.__file__ for module in (batch_outcome, buffers, handle, outbox, work, write_behind, write_set)
}


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line that is run of FILES."""

    def __init__(self, line: int) -> None:
        self._left = line
        self.came = False

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in FILES else None

    def _line(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        self._left -= event == "line"
        if not self._left:
            self.came = True
            sys.settrace(None)
            raise KeyboardInterrupt
        return self._line

    def during(self, call: Callable[[], object]) -> bool:
        """Run a call; whether it was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            assert self.came
        finally:
            sys.settrace(before)
        return self.came


@pytest.fixture
def producer(store: Store) -> Producer:
    """Connected to `t`."""
    return store.create_producer("t")


@pytest.fixture
def table(store: Store) -> Table:
    """`accounts`, in a process that has begun a transaction before."""
    store.create_table("accounts")
    table = store.table("accounts")
    table.put(b"k", b"-1")
    return table


def last_values(store: Store, count: int) -> list[tuple[bytes | None, str]]:
    """The last messages of `t`, with their ids."""
    return [(message.value, str(message.message_id)) for message in list(store.reader("t"))[-count:]]


def test_what_is_sent_after_an_interrupted_flush_is_not_lost(
    store: Store, producer: Producer, table: Table
) -> None:
    """Each message of the transaction is stored once and stands where its id says, wherever the flush was."""
    line, was_interrupted = 0, True
    while was_interrupted:
        line += 1
        txn = store.transaction()
        before = producer.send(b"before", txn=txn)
        table.put(b"k", b"%d" % line, txn=txn)
        was_interrupted = Interrupt(line).during(txn.flush)
        after = producer.send(b"after", txn=txn)
        txn.commit()
        assert last_values(store, 2) == [(b"before", str(before)), (b"after", str(after))], line
        assert (len(list(store.reader("t"))), table.get(b"k")) == (2 * line, b"%d" % line)
    assert line > 50


@pytest.mark.parametrize("goes_on", ["at once", "after the watch has looked"])
def test_an_interrupted_commit_can_be_repeated(
    store: Store, producer: Producer, table: Table, clock: ManualClock, goes_on: str
) -> None:
    """It commits if it had not, and says so if it had; what was sent is stored once."""
    line, was_interrupted = 0, True
    while was_interrupted:
        line += 1
        txn = store.transaction()
        sent = producer.send(b"%d" % line, txn=txn)
        table.put(b"k", b"%d" % line, txn=txn)
        was_interrupted = Interrupt(line).during(txn.commit)
        if goes_on != "at once":
            clock.advance(1)
        txn.commit()
        assert txn.state is TransactionState.COMMITTED
        assert last_values(store, 1) == [(b"%d" % line, str(sent))]
        assert (len(list(store.reader("t"))), table.get(b"k")) == (line, b"%d" % line)
    assert line > 50
