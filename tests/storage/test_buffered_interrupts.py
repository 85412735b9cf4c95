"""Ctrl-C at every line of the code that writes what a transaction keeps, and a program that goes on after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from types import FrameType
from typing import Any

import pytest

from storage import Producer, Store, Table, TransactionState, client, faults
from storage.client.work import batch_outcome, buffers, handle, outbox, work, write_behind, write_set
from storage.errors import OutcomeUnknown
from storage.process.clock import ManualClock
from tests.storage.going_on import STEPS, GoingOn, Step
from tests.storage.interrupt_lines import is_interrupted

FILES = {
    module.__file__ for module in (batch_outcome, buffers, handle, outbox, work, write_behind, write_set)
}
CLIENT = tuple(import_module(found.name) for found in walk_packages(client.__path__, "storage.client."))
"""The modules of what an application holds."""

STRIDE = 29
"""Lines from one interrupt to the next, as a dozen commits follow each; with 1 each line is tried, for minutes."""


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


@pytest.mark.parametrize("step", STEPS)
def test_all_objects_go_on_behind_an_interrupt(store: Store, step: Step) -> None:
    """The cut call is repeated; the same objects and those beside lose and double nothing in what follows."""
    going_on, line, was_interrupted = GoingOn(store), 1, True
    while was_interrupted:
        call, repeat = step(going_on)
        was_interrupted = is_interrupted(line, call, *CLIENT)
        repeat()
        going_on.go_on()
        line += STRIDE
    assert line > 2 * STRIDE
    going_on.check_end()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutcomeUnknown])
@pytest.mark.parametrize("point", ["environment.before_commit", "environment.after_commit"])
def test_all_objects_go_on_behind_a_lost_answer(store: Store, point: str, error: type[BaseException]) -> None:
    """Of a commit that was made, or not: the cut call is repeated, and nothing is lost or doubled behind it."""
    going_on = GoingOn(store)
    for step in STEPS:
        call, repeat = step(going_on)
        lost = LostAnswer(error)
        faults.arm(point, lost)
        try:
            with suppress(error):
                call()
        finally:
            faults.disarm()
        assert lost.came, step.__name__
        repeat()
        going_on.go_on()
    going_on.check_end()


class LostAnswer:
    """Raises an error the first time that a fault point is reached."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self.came = False

    def __call__(self) -> None:
        if not self.came:
            self.came = True
            raise self._error("the answer is lost")
