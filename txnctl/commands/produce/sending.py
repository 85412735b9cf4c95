"""Sending messages to a topic: batch by batch, with counts, printed ids and errors by line.

An error names the bad line and the last line stored. Lines before the bad line are stored first, so that a mended
input can go on from the bad line.
"""

from __future__ import annotations

from time import monotonic, sleep
from typing import NamedTuple

from storage.errors import BadInput, MessageTooLarge, TransactionNotOpen, TransactionTimedOut, TxnctlError
from storage.limits import TRANSACTION_TIMEOUT_MS
from storage.topic.delivery_times import due_after
from txnctl.cli.exit_cleanup import leave_soon
from txnctl.input.argument_bytes import argument_bytes
from txnctl.input.names_once import named_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage import MessageId, Transaction, TxnID
    from storage.client.producer import Producer
    from storage.process.clock import Clock
    from storage.values.receipt import BatchReceipt
    from txnctl.cli.context import Context
    from txnctl.commands.produce.options import ProduceOptions
    from txnctl.commands.produce.result import Produced

_LOOK_S = 0.01
"""Two clocks may differ about a deadline by this much; then it is looked at again."""


class OptionalColumns(NamedTuple):
    """Keys, properties, event and delivery times of a batch; None for a column without any."""

    keys: Sequence[bytes | None] | None = None
    properties: Sequence[dict[str, str] | None] | None = None
    event_times: Sequence[int | None] | None = None
    delivery_times: Sequence[int | None] | None = None


NO_COLUMNS = OptionalColumns()


class Batch:
    """Messages read, as parallel columns.

    Attributes:
        values: bytes, or None for a tombstone, each.
        numbers: the number of the line of each message.
        keys, properties, event_times, delivery_times: as long as `values`, or None where no message has any.
        errors: errors of bad lines, each with the detail `lineNumber`.
        unit: what `numbers` count: lines or messages.
    """

    __slots__ = ("delivery_times", "errors", "event_times", "keys", "numbers", "properties", "unit", "values")

    def __init__(
        self,
        values: Sequence[bytes | None],
        numbers: Sequence[int],
        columns: OptionalColumns = NO_COLUMNS,
        errors: Sequence[BadInput] = (),
        unit: str = "line",
    ) -> None:
        self.values = values
        self.numbers = numbers
        self.keys = columns.keys
        self.properties = columns.properties
        self.event_times = columns.event_times
        self.delivery_times = columns.delivery_times
        self.errors = errors
        self.unit = unit

    def part(self, start: int, stop: int) -> Batch:
        """Messages start to stop, stop excluded, without errors."""
        return Batch(
            self.values[start:stop],
            self.numbers[start:stop],
            OptionalColumns(
                self.keys[start:stop] if self.keys else None,
                self.properties[start:stop] if self.properties else None,
                self.event_times[start:stop] if self.event_times else None,
                self.delivery_times[start:stop] if self.delivery_times else None,
            ),
            unit=self.unit,
        )


class Common:
    """Key, properties, event and delivery time for messages without."""

    __slots__ = ("_clock", "deliver_after", "deliver_at", "event_time", "key", "properties")

    def __init__(self, options: ProduceOptions, clock: Clock) -> None:
        self._clock = clock
        self.deliver_after, self.deliver_at = options.deliver_after, options.deliver_at
        key = options.key
        self.key = None if key is None else argument_bytes(key, "--key")
        self.properties = named_once(options.properties, "--property: ")
        self.event_time = options.event_time

    def fill(self, batch: Batch) -> None:
        """Complete the columns of a batch."""
        count = len(batch.values)
        if self.key is not None:
            batch.keys = [self.key if key is None else key for key in batch.keys or [None] * count]
        if self.properties:
            own = batch.properties or [None] * count
            batch.properties = [
                {**self.properties, **properties} if properties else self.properties for properties in own
            ]
        if self.event_time is not None:
            times = batch.event_times or [None] * count
            batch.event_times = [self.event_time if own is None else own for own in times]
        due_ms = self.deliver_at
        if self.deliver_after is not None:
            due_ms = due_after(self._clock.wall_ms(), self.deliver_after)
        if due_ms is not None:
            delivery_times = batch.delivery_times or [None] * count
            batch.delivery_times = [due_ms if own is None else own for own in delivery_times]


class Sending:
    """One run of `produce`."""

    def __init__(
        self,
        context: Context,
        producer: Producer,
        options: ProduceOptions,
    ) -> None:
        self.skips = options.on_error == "skip"
        self._context = context
        self._producer = producer
        self._common = Common(options, context.store.connection.clock)
        self._txn: Transaction | TxnID | None = options.txn
        self._is_atomic = options.atomic
        self._timeout = options.timeout
        self._timeout_s = options.timeout or TRANSACTION_TIMEOUT_MS / 1000
        self._atomic: Transaction | None = None
        self._until_s: float | None = None
        self._sequence_id = options.sequence_id
        self._batch_max = options.batch or (1 << 62)
        self._prints_ids = options.print_ids or context.output == "name"
        self._ids: list[MessageId] = []
        self._unseen: list[tuple[BatchReceipt, int]] = []
        self._count = self._duplicates = self._skipped = 0
        self._first: MessageId | None = None
        self._last: MessageId | None = None
        self._last_sequence: int | None = None
        self._last_number = 0
        self._unit = "line"
        self._told = False

    def send_all(self, send: Callable[[], None]) -> None:
        """Run `send` to the end of the input; with --atomic, commit or abort the transaction."""
        try:
            send()
            if self._atomic is not None:
                self._atomic.commit()
                self._note_all()
        except BaseException as error:
            if self._atomic is not None:
                is_late = _is_too_late(error)
                self._told = self._told or is_late
                self._abort(self._atomic, error)
                if is_late:
                    raise self._too_late(self._atomic) from error
            elif (
                not self._is_atomic
                and self._count
                and not self._told
                and not isinstance(error, BrokenPipeError)
            ):
                self._context.note(f"at least {self._stored()}")
            raise
        if self._atomic is not None:
            self._print_ids()

    @property
    def has_sent(self) -> bool:
        """Whether a message was stored, now or before."""
        return bool(self._count or self._duplicates)

    def left_s(self) -> float | None:
        """Seconds until the deadline of the transaction of --atomic; None if there is none.

        Raises:
            TransactionTimedOut, TransactionNotOpen
        """
        if self._until_s is None or self._atomic is None:
            return None
        left_s = self._until_s - monotonic()
        if left_s <= 0:
            self._context.store.use_transaction(self._atomic)
            sleep(_LOOK_S)
        return max(0.0, left_s)

    def take(self, batch: Batch) -> None:
        """Send a batch, in commits of at most --batch messages.

        Raises:
            BadInput: a line cannot be sent; the lines before are stored.
        """
        failure: BadInput | None = None
        self._unit = batch.unit
        if batch.errors:
            batch, failure = self._cut(batch)
        self._common.fill(batch)
        at, count = 0, len(batch.values)
        while at < count:
            at = self._send(batch, at, min(count, at + self._batch_max))
        if failure is not None:
            self._fail(failure)

    def _cut(self, batch: Batch) -> tuple[Batch, BadInput | None]:
        """The batch up to the first error, and that error; or the whole batch, where errors are skipped."""
        errors = sorted(batch.errors, key=lambda error: error.details["lineNumber"])
        if self.skips:
            for error in errors:
                self._fail(error)
            return batch, None
        from bisect import bisect_left

        return batch.part(0, bisect_left(batch.numbers, errors[0].details["lineNumber"])), errors[0]

    def _send(self, batch: Batch, start: int, stop: int) -> int:
        """Send messages start to stop of a batch; where to go on."""
        if self._is_atomic and self._atomic is None:
            self._txn = self._atomic = self._context.store.transaction(timeout=self._timeout)
            self._until_s = monotonic() + self._timeout_s
        part = batch if start == 0 and stop == len(batch.values) else batch.part(start, stop)
        first = self._sequence_id
        try:
            receipt = self._producer.send_batch(
                part.values,
                keys=part.keys,
                properties=part.properties,
                event_times=part.event_times,
                deliver_at=part.delivery_times,
                sequence_ids=None if first is None else [first + number - 1 for number in part.numbers],
                txn=self._txn,
            )
        except MessageTooLarge as error:
            # The engine checks every size before storing any message of a call.
            bad = start + int(error.details["index"])
            if bad > start:
                self._send(batch, start, bad)
            self._fail(_too_large(error, batch.unit, batch.numbers[bad]))
            return bad + 1
        if self._atomic is not None:
            # Reading the receipt now would write the transaction before the commit.
            self._unseen.append((receipt, part.numbers[-1]))
        else:
            self._note(receipt, part.numbers[-1])
        return stop

    def _note_all(self) -> None:
        """The transaction of --atomic is committed: all buffered messages are stored."""
        for receipt, number in self._unseen:
            self._note(receipt, number)

    def _note(self, receipt: BatchReceipt, number: int) -> None:
        self._count += receipt.count
        self._duplicates += receipt.duplicates
        self._last_number = number
        if not receipt.count:
            return
        if self._first is None:
            self._first = next(iter(receipt))
        self._last = receipt.last_message_id
        self._last_sequence = receipt.last_sequence_id
        if self._prints_ids:
            self._ids += receipt
            if self._atomic is None:
                self._print_ids()

    def _print_ids(self) -> None:
        """Print the ids, unless a JSON object at the end has the ids."""
        if self._ids and self._context.output not in ("json", "ndjson"):
            self._context.out.write("".join([f"{message_id}\n" for message_id in self._ids]))
            self._context.out.flush()
            self._ids.clear()

    def _fail(self, error: BadInput) -> None:
        """Report a line and go on, or stop there."""
        if self.skips:
            self._skipped += 1
            self._context.warn(f"{error.message}; skipped")
            return
        if self._is_atomic:
            state = "Nothing is stored."
        elif not self._count:
            state = "Nothing was stored before it."
        else:
            state = f"{self._stored()[:1].upper()}{self._stored()[1:]}."
        error.message = f"{error.message.rstrip('.')}. {state}"
        error.args = (error.message,)
        error.details["stored"] = 0 if self._is_atomic else self._count
        error.details["lastStoredLine"] = None if self._is_atomic else self._last_number or None
        self._told = True
        raise error

    def _stored(self) -> str:
        """`4,999 messages are stored, the last one from line 4999`."""
        from txnctl.output.human import plural

        where = "stored" if self._txn is None else f"sent in transaction {self._txn}"
        are = "is" if self._count == 1 else "are"
        return f"{plural(self._count, 'message')} {are} {where}, the last one from {self._unit} {self._last_number}"

    def _abort(self, txn: Transaction, error: BaseException) -> None:
        """Abort the transaction. Even if the abort fails, uncommitted messages never appear."""
        context, why = self._context, type(error).__name__
        named = f"transaction {txn.known_id}" if txn.known_id is not None else "the transaction"
        if not isinstance(error, Exception):
            leave_soon(context.store)
        try:
            txn.abort(f"{why} in produce --atomic")
        except TransactionNotOpen:
            context.warn(f"{named} had been committed by then")
        except TxnctlError as failed:
            context.warn(f"{named} is left to the next writer, which aborts it: {failed.message}")
        else:
            if not self._told:
                context.note(f"{named} is aborted: nothing is stored")

    def _too_late(self, txn: Transaction) -> TransactionTimedOut:
        return TransactionTimedOut(
            f"the input had not ended {self._timeout_s:g} s after the first message: transaction {txn.known_id} "
            "is aborted, nothing is stored",
            hint="Send it again with a longer --timeout (24h at most), or without --atomic.",
            transaction=str(txn.known_id),
            state="ABORTED",
            reason="timed-out",
        )

    def result(self) -> Produced:
        """The result as a row."""
        from storage.values.names import full_topic_name, short_topic_name
        from txnctl.commands.produce.result import PrintedIds, Produced

        topic, producer = full_topic_name(self._producer.topic), self._producer
        return Produced(
            topic=topic,
            name=short_topic_name(topic),
            messages=self._count,
            duplicates=self._duplicates,
            skipped=self._skipped,
            first_message_id=self._first,
            last_message_id=self._last,
            producer_name=producer.producer_name,
            access_mode=producer.access_mode,
            topic_epoch=producer.topic_epoch,
            last_sequence_id=self._last_sequence,
            txn_id=None if self._txn is None else str(self._txn),
            ids=PrintedIds(self._ids) if self._prints_ids else None,
        )

    def summary(self) -> str:
        """The result in a sentence."""
        from storage.values.names import short_topic_name
        from txnctl.output.human import plural

        verb, to = ("sent", "to") if self._txn is not None and self._atomic is None else ("stored", "in")
        ids = self._first if self._first == self._last else f"{self._first} to {self._last}"
        text = f"{verb} {plural(self._count, 'message')} {to} {short_topic_name(self._producer.topic)}"
        if self._count:
            text += f": {ids}"
        if self._duplicates:
            text += f"; {plural(self._duplicates, 'message')} stored before, left out"
        if self._skipped:
            text += f"; {plural(self._skipped, self._unit)} skipped"
        if self._atomic is not None:
            text += f"; transaction {self._txn} is committed"
        elif self._txn is not None:
            text += f"; visible when transaction {self._txn} commits"
        return text


def _is_too_late(error: BaseException) -> bool:
    """Whether the deadline ended the transaction: found here, or by a process that reaped the transaction."""
    return isinstance(error, TransactionTimedOut) or (
        isinstance(error, TransactionNotOpen) and error.details.get("reason") == "timed-out"
    )


def _too_large(error: MessageTooLarge, unit: str, number: int) -> MessageTooLarge:
    """The same error, naming the line."""
    from storage.limits import MESSAGE_BYTES_MAX

    size = error.details["bytes"]
    return MessageTooLarge(
        f"{unit} {number}: the message has {size:,} bytes; the limit is {MESSAGE_BYTES_MAX:,}",
        hint=error.hint,
        lineNumber=number,
        bytes=size,
    )
