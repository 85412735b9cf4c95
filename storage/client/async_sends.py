"""Sends of a producer that a thread of its own stores: one batch is filled while the one before it is being flushed.

`Producer.send_async` puts a message here and returns a future. The thread takes all messages that wait, in order, and
stores them in one durable commit of as few entries as the bounds allow; then it resolves their futures. Every future is
resolved once: with the message id that `send` returns, or with the error that `send` raises. Before the producer does
anything else, the thread has stored what waits, so the producer's messages keep their order.

The thread begins with a message and ends after a while without one. Closing producer or store, and the end of the
interpreter, wait for the thread; a forked child has neither the thread nor the messages.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from storage.client.append import Outgoing
from storage.errors import SequenceConflict, StoreClosed
from storage.limits import (
    ASYNC_BYTES_MAX,
    ASYNC_MESSAGES_MAX,
    ENTRY_MESSAGES_MAX,
    MESSAGE_BYTES_MAX,
    WRITE_BYTES_TARGET,
)
from storage.process.clock import Clock
from storage.topic.batching import check_sequence_ids, columns_of, sizes_of
from storage.topic.delivery_times import delivery_times
from storage.topic.entry import Columns
from storage.values.position import MessageId
from storage.values.receipt import BatchReceipt

if TYPE_CHECKING:
    from storage.client.producer import MessageFields

Store = Callable[[Columns, Sequence[int], Sequence[int] | None], BatchReceipt]
"""Stores messages durably, given columns, sizes and sequence ids."""

_IDLE_S: Final = 1.0
"""Time without a message after which the thread ends. The next message starts a new one."""

_FIELDS: Final = ("key", "properties", "event_time", "sequence_id", "deliver_after", "deliver_at")

_working: set[AsyncSends] = set()
"""Those with a thread."""


class _Sent:
    """A message that waits, and its future."""

    __slots__ = ("future", "outgoing", "size")

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.size = outgoing.buffered_bytes
        self.future: Future[MessageId] = Future()


class AsyncSends:
    """See the module."""

    def __init__(self, topic: str, store: Store, before_close: dict[object, Callable[[], None]]) -> None:
        """Args:
        before_close: what the store calls before it is closed.
        """
        self._topic = topic
        self._store = store
        self._before_close = before_close
        self._begin()

    def _begin(self) -> None:
        # Entered and left in one step each, as a condition is not: an interrupt (Ctrl-C) leaves no lock taken.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[_Sent] = deque()
        self._storing: list[_Sent] = []
        self._bytes = 0
        self._thread: threading.Thread | None = None

    def put(self, outgoing: Outgoing) -> Future[MessageId]:
        """Leave one checked message to the thread; wait while `ASYNC_MESSAGES_MAX` or `ASYNC_BYTES_MAX` is reached.

        A callback of a future, which runs in the thread, never waits.
        """
        sent = _Sent(outgoing)
        with self._lock:
            while self._is_full(sent.size) and self._thread is not threading.current_thread():
                self._changed.wait()
            # Before the message: an interrupt (Ctrl-C) of the start leaves none that no thread will store.
            has_thread = self._thread is not None or self._start()
            self._bytes += sent.size
            self._waiting.append(sent)
            if has_thread:
                self._changed.notify_all()
            else:
                self._store_all_here()
        return sent.future

    def _is_full(self, size: int) -> bool:
        count = len(self._waiting) + len(self._storing)
        return count > 0 and (count >= ASYNC_MESSAGES_MAX or self._bytes + size > ASYNC_BYTES_MAX)

    def _start(self) -> bool:
        """Start the thread; False if the process may have no more. An interrupted start may leave a thread too."""
        _working.add(self)
        self._before_close[self] = self.drain
        thread = threading.Thread(target=self._run, name=f"txnctl sends to {self._topic}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the limit on threads is reached, or the interpreter ends
            self._forget_thread()
            return False
        self._thread = thread
        return True

    def _forget_thread(self) -> None:
        self._thread = None
        _working.discard(self)
        self._before_close.pop(self, None)

    def _store_all_here(self) -> None:
        while self._waiting:
            self._store_batch(self._take())

    def drain(self) -> None:
        """Wait until every future is resolved. Nothing in a callback of a future, which runs in the thread."""
        with self._lock:
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: not (self._waiting or self._storing))

    # The thread

    def _run(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.current_thread()  # The start was interrupted.
        while True:
            with self._lock:
                if self._thread is not threading.current_thread():
                    return  # The start was interrupted, and another thread was started since.
                if not self._waiting:
                    self._changed.wait(_IDLE_S)
                if not self._waiting:
                    self._forget_thread()
                    return
                batch = self._take()
            self._store_batch(batch)

    def _take(self) -> list[_Sent]:
        """The next messages of one commit: in order, and all with a sequence id or all without."""
        batch, size = list[_Sent](), 0
        is_numbered = self._waiting[0].outgoing.sequence_ids is not None
        while self._waiting and len(batch) < ENTRY_MESSAGES_MAX:
            sent = self._waiting[0]
            if batch and (
                size + sent.size > WRITE_BYTES_TARGET
                or (sent.outgoing.sequence_ids is not None) is not is_numbered
            ):
                break
            size += sent.size
            batch.append(self._waiting.popleft())
        self._storing = batch
        return batch

    def _store_batch(self, batch: list[_Sent]) -> None:
        """Store messages and resolve their futures; messages whose futures are cancelled are left out."""
        try:
            sent = [message for message in batch if message.future.set_running_or_notify_cancel()]
            if sent:
                self._store_together(sent)
        finally:
            with self._lock:
                self._bytes -= sum(message.size for message in batch)
                self._storing = []
                self._changed.notify_all()

    def _store_together(self, sent: list[_Sent]) -> None:
        try:
            ids = self._stored(sent)
        except SequenceConflict as error:
            # Nothing of the batch is stored, and one message of it is in conflict.
            if len(sent) > 1:
                for message in sent:
                    self._store_together([message])
            else:
                _fail(sent, error)
        except BaseException as error:  # noqa: BLE001 (the future raises it)
            _fail(sent, error)
        else:
            for message, message_id in zip(sent, ids, strict=True):
                with suppress(BaseException):  # of a callback
                    message.future.set_result(message_id)

    def _stored(self, sent: list[_Sent]) -> list[MessageId]:
        """Store messages; their ids, DUPLICATE for one that is not stored again."""
        calls = [message.outgoing for message in sent]
        columns = calls[0].columns if len(calls) == 1 else Columns.joined([call.columns for call in calls])
        ids = None
        if calls[0].sequence_ids is not None:
            ids = [used for call in calls for used in call.sequence_ids or ()]
        receipt = self._store(columns, [size for call in calls for size in call.sizes], ids)
        return (
            list(receipt)
            if ids is None
            else [receipt.part(index).last_message_id for index in range(len(sent))]
        )

    def forked(self) -> None:
        """Fail the futures, whose messages the parent stores: this is the child of a fork."""
        unresolved = [*self._storing, *self._waiting]
        self._begin()
        for sent in unresolved:
            if not sent.future.done():
                # The locks of a future may be held by the thread, which the child does not have.
                Future.__init__(sent.future)
                sent.future.set_exception(
                    StoreClosed("the message was sent by the parent of this process, which stores it")
                )


def outgoing_of(clock: Clock, keeps_sequences: bool, value: bytes | None, message: MessageFields) -> Outgoing:
    """One message, checked.

    Args:
        keeps_sequences: whether the producer may give sequence ids.

    Raises:
        InvalidValue, MessageTooLarge
        TypeError: no field of a message; a transaction buffers its messages by itself.
    """
    if not message and type(value) is bytes and len(value) <= MESSAGE_BYTES_MAX:
        return Outgoing(Columns([value]), [len(value)], None)
    for name in message:
        if name not in _FIELDS:
            raise TypeError(f"send_async() got an unexpected keyword argument {name!r}")
    key, properties, event_time = message.get("key"), message.get("properties"), message.get("event_time")
    after, at, sequence_id = (
        message.get("deliver_after"),
        message.get("deliver_at"),
        message.get("sequence_id"),
    )
    columns = columns_of(
        [value],
        None if key is None else [key],
        None if not properties else [properties],
        None if event_time is None else [event_time],
        None if after is None and at is None else delivery_times(clock.wall_ms(), [value], after, at),
    )
    ids = None if sequence_id is None else [sequence_id]
    if ids is not None:
        check_sequence_ids(ids, 1, keeps_sequences)
    return Outgoing(columns, sizes_of(columns), ids)


def _fail(sent: list[_Sent], error: BaseException) -> None:
    for message in sent:
        with suppress(BaseException):  # of a callback
            message.future.set_exception(error)


def _drain_all() -> None:
    for sends in list(_working):
        sends.drain()


def _forked() -> None:
    working = list(_working)
    _working.clear()
    for sends in working:
        sends.forked()


atexit.register(_drain_all)
os.register_at_fork(after_in_child=_forked)
