"""A group: many ends in one flush. Within the block the commits and sends of the thread are queued.

    with store.group() as group:
        for request in requests:
            with store.transaction() as txn:
                producer.send(request.debit, key=request.payer, txn=txn)
                producer.send(request.credit, key=request.payee, txn=txn)

Each end stays atomic, with an outcome of its own: a refusal leaves all further ends untouched. No process sees an end
before the flush, which comes at the end of the block, at `flush`, when the queue is full or a second old, before the
thread reads what an end writes, and with a write that cannot wait (docs/decisions/0066).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from storage.client.block_end import BlockEnd
from storage.client.work.end_queue import EndQueue, queue_of
from storage.disk.batch_runs import unknown_outcome
from storage.errors import GroupRefused, OutcomeUnknown, TxnctlError
from storage.values.named_tuple import NamedTuple

if TYPE_CHECKING:
    from storage.client.transaction import Transaction
    from storage.client.work.end import End
    from storage.disk.connection import Connection
    from storage.values.receipt import BatchReceipt


class RefusedEnd(NamedTuple):
    """An end of a group that is not durable.

    Attributes:
        place: the number of the end among those with a known outcome, from 0 on.
        subject: the transaction, or the receipt of the send.
        error: as raised by the commit or send without a group.
    """

    place: int
    subject: Transaction | BatchReceipt
    error: TxnctlError


class EndGroup:
    """Made by `Store.group`. For the thread that opens the block.

    A group within a group of the thread shares the queue of the outer one, and flushes the queue at its end.

    Attributes:
        durable: the number of durable ends.
        refused: the ends that were refused, in order.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: EndQueue | None = None
        self._is_outer = False
        self._thread = 0
        self.durable = 0
        self.refused: list[RefusedEnd] = []

    def __enter__(self) -> EndGroup:
        connection = self._connection
        connection.check_writable()
        queue = queue_of(connection)
        self._is_outer, self._thread = queue is None, threading.get_ident()
        self._queue = queue or EndQueue(connection)
        try:
            self._queue.notes.append(self._note)
            if self._is_outer:
                connection.queue_writes(self._queue, self._thread)
            return self
        except BaseException:
            self._leave()
            raise

    def _end_block(self, _: type[BaseException] | None, error: BaseException | None, *__: object) -> None:
        try:
            self._flush_or_give_up(error)
            self._leave()
        except BaseException:
            # Again, if an interrupt came in between: later sends of the thread would be queued for ever.
            self._leave()
            raise
        if not self.refused:
            return
        if error is None:
            raise self._refusal()
        error.add_note(self._refusal().message)

    __exit__ = BlockEnd(_end_block, lambda group: group._leave())

    def _flush_or_give_up(self, error: BaseException | None) -> None:
        assert self._queue is not None, "a block that ends has begun"
        try:
            self._queue.flush_ends()
        except TxnctlError as failure:
            self._queue.give_up(failure)
            if error is None:
                raise
            error.add_note(f"the group could not be flushed: {failure.message}")
        except BaseException:
            self._queue.give_up(_interrupted())
            raise

    def _leave(self) -> None:
        """Write at once from now on; again without effect, and so for a block that has not begun."""
        if self._queue is None:
            return
        if self._is_outer:
            self._connection.queue_writes(None, self._thread)
        if self._note in self._queue.notes:
            self._queue.notes.remove(self._note)

    def flush(self) -> None:
        """Make the queued ends durable now. A refused end joins `refused`, and is not raised.

        Raises:
            WriterBusy, StoreFull: nothing of the rest was stored, and the rest stays queued.
            OutcomeUnknown
        """
        if self._queue is not None:
            self._queue.flush_ends()

    def _note(self, end: End) -> None:
        if end.error is None:
            self.durable += 1
        else:
            place = self.durable + len(self.refused)
            self.refused.append(RefusedEnd(place, end.subject, end.error))  # type: ignore[arg-type]

    def _refusal(self) -> GroupRefused:
        count, ends = len(self.refused), self.durable + len(self.refused)
        return GroupRefused(
            f"{count:,} of {ends:,} ends of a group were refused, the first one with: "
            f"{self.refused[0].error.message}",
            hint="The others are durable: repeat only those in `refused`.",
            refused=count,
            durable=self.durable,
        )


def _interrupted() -> OutcomeUnknown:
    return unknown_outcome("the flush of a group was interrupted", 0)
