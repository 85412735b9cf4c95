"""`consume -s`: messages that a subscription hands out, acknowledged when their lines are out, or a command is done."""

from __future__ import annotations

from time import sleep

from storage.errors import SubscriptionNotFound, TxnctlError, WaitTimeout
from txnctl.cli.at_time import position_of
from txnctl.cli.current_transaction import of_environment
from txnctl.cli.exit_cleanup import leave_soon
from txnctl.commands.consume.blocked_note import Hidden
from txnctl.commands.consume.delayed_note import DelayedNote
from txnctl.commands.subscriptions.start_note import note_if_beyond
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage import Consumer, Message, Store, TxnID
    from txnctl.cli.context import Context
    from txnctl.commands.consume.options import ConsumeOptions
    from txnctl.commands.consume.output import Lines
    from txnctl.commands.consume.stop_condition import Patience

    Handle = Callable[[Sequence[Message]], None]

WINDOW = 1000
"""Messages handed out, written and acknowledged at a time."""

_SLIP = 0.75
"""The likeness of two names from which one may be a slip of the hand for the second."""


def take(context: Context, topic: str, lines: Lines, patience: Patience, options: ConsumeOptions) -> None:
    """Attach to the subscription, print or run a command for each message, close the consumer."""
    # Only with -s: `consume` without -s must not fail over a bad value.
    txn = options.txn or of_environment()
    with context.open_store(context.store_path, read_only=False) as store:
        if txn is not None:
            store.use_transaction(txn)  # before anything is handed out
        consumer = _subscribe(context, store, topic, options)
        hidden = Hidden(context, topic, consumer.blocked_by)
        newer, delayed = (
            _NewerMessages(context, consumer, txn),
            DelayedNote(context, topic, consumer, store.connection.clock),
        )
        taking = _Taking(consumer, lines, patience, (hidden, delayed), newer)
        try:
            if options.run is None:
                writer = _Writer(consumer, lines, acknowledges=options.ack != "none", txn=txn)
                taking.take_all(WINDOW, writer.handle)
                writer.finish()
            else:
                _run(context, store, taking, txn, options)
        except BaseException:
            _leave(store, consumer)
            raise
        consumer.close()


def _subscribe(context: Context, store: Store, topic: str, options: ConsumeOptions) -> Consumer:
    """A consumer; a note on stderr names a new subscription, a changed mode, or an unused --from."""
    from storage import LATEST

    name = options.subscription
    assert name is not None, "consume -s"
    before = _mode_before(store, topic, name)
    is_new = before is None
    start = LATEST if options.start is None or not is_new else position_of(store, topic, options.start)
    consumer = store.subscribe(
        topic,
        name,
        subscription_type=options.subscription_type,
        subscription_isolation_level=options.isolation_level,
        on_open=options.on_open,
        initial_position=start,
        consumer_name=options.consumer_name,
        # A command may take long over a message: the queue of one message leaves the rest to further consumers.
        receiver_queue_size=1 if options.run is not None else min(WINDOW, options.limit or WINDOW),
        dead_letter_topic=options.dead_letter_topic,
        max_redeliver_count=options.max_redeliver_count,
        read_compacted=options.read_compacted,
    )
    now = _mode(
        consumer.subscription_type.value, consumer.subscription_isolation_level.value, consumer.on_open.value
    )
    seek = line("subscriptions seek", topic, name, "POSITION")
    if is_new:
        context.note(
            f"created subscription {name} of {topic} at {start} ({now}){_similar(store, topic, name)}"
        )
        if options.start is not None:
            end = store.reports.subscription_stats(topic, name).row.stats.mark_delete_position
            note_if_beyond(context, topic, start, end)
    elif before != now:
        context.note(
            f"subscription {name} of {topic} was {before} and now is {now}; what was "
            f"acknowledged or skipped stays so: `{seek}` shows it again"
        )
    elif options.start is not None:
        context.note(
            f"subscription {name} of {topic} was there already: --from and --since are for a new one, `{seek}`"
            " moves it"
        )
    return consumer


def _similar(store: Store, topic: str, name: str) -> str:
    """The name of a subscription that the user may have meant, as the end of a sentence; empty if there is none."""
    from txnctl.cli.near_names import nearest

    others = [other for other in store.reports.topic_stats(topic).subscriptions if other != name]
    near = nearest(name, others, _SLIP)
    return "" if near is None else f"; there is {near} too, should you mean that one"


def _mode(type_: str, level: str, on_open: str) -> str:
    from txnctl.fields.subscription import mode_in_words

    return mode_in_words(type_, level, on_open)


def _mode_before(store: Store, topic: str, name: str) -> str | None:
    """Type, isolation level and on-open of a subscription in words; None for a missing subscription."""
    try:
        stats = store.reports.subscription_stats(topic, name).row.stats
    except SubscriptionNotFound:
        return None
    return _mode(stats.type, stats.subscription_isolation_level, stats.on_open)


class _NewerMessages:
    """Stop at a message too new for the transaction, with a note on stderr the first time.

    Attributes:
        txn: the transaction to acknowledge in, if any.
    """

    def __init__(self, context: Context, consumer: Consumer, txn: TxnID | None) -> None:
        self.txn = txn
        self._context = context
        self._consumer = consumer
        self._is_noted = False

    def come_next(self) -> bool:
        """Whether the next message is newer than a transaction that has used a table."""
        if self.txn is None or not self._consumer.next_is_newer_than(self.txn):
            return False
        if not self._is_noted:
            self._is_noted = True
            self._context.note(
                f"the next message of {self._consumer.subscription} came after transaction {self.txn} began, which "
                "has used a table: commit it, and begin anew for what is left"
            )
        return True


class _Taking:
    """Receive and handle messages until the end."""

    def __init__(
        self,
        consumer: Consumer,
        lines: Lines,
        patience: Patience,
        notes: tuple[Hidden, DelayedNote],
        newer: _NewerMessages,
    ) -> None:
        self.consumer = consumer
        self._lines = lines
        self._patience = patience
        self._hidden, self._delayed = notes
        self._newer = newer

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has ended the taking."""
        return self._patience.is_stopped

    def take_all(self, window: int, handle: Handle) -> None:
        """Receive until the end, then note messages hidden behind, or delayed.

        Raises:
            WaitTimeout: too few messages came in time.
        """
        patience = self._patience
        while (count := min(window, patience.left)) > 0:
            wait_s = patience.slice_s()
            messages = self.consumer.receive_batch(count, wait_s, txn=self._newer.txn)
            if messages:
                handle(messages)
                patience.count(len(messages))
                continue
            is_newer = self._newer.come_next()
            if self._is_over():
                return
            if is_newer:
                # The receive returned at once: wait here, as only the time limit can end this.
                sleep(wait_s)

    def _is_over(self) -> bool:
        try:
            is_over = self._patience.is_over()
        except WaitTimeout as error:
            self._hidden.at_end()
            self._delayed.at_end(error)
            raise
        if is_over:
            self._hidden.at_end()
            self._delayed.at_end()
        else:
            self._lines.check_reader()
            self._hidden.while_waiting(self._patience)
        return is_over


class _Writer:
    """Write lines, then acknowledge the messages."""

    def __init__(self, consumer: Consumer, lines: Lines, *, acknowledges: bool, txn: TxnID | None) -> None:
        self._consumer = consumer
        self._lines = lines
        self._acknowledges = acknowledges
        self._txn = txn
        self._held: list[Message] = []

    def handle(self, messages: Sequence[Message]) -> None:
        self._lines.messages(messages)
        if self._lines.is_held_back:
            self._held += messages
            return
        self._lines.write_out()
        self._acknowledge(messages)

    def finish(self) -> None:
        """Nothing more comes: write and acknowledge the lines held back."""
        self._lines.finish()
        for start in range(0, len(self._held), WINDOW):
            self._acknowledge(self._held[start : start + WINDOW])

    def _acknowledge(self, messages: Sequence[Message]) -> None:
        if self._acknowledges:
            self._consumer.acknowledge(messages, txn=self._txn)


def _run(context: Context, store: Store, taking: _Taking, txn: TxnID | None, options: ConsumeOptions) -> None:
    """Run a command for each message; note the counts at the end."""
    from txnctl.commands.consume.exec import Commands

    commands = Commands(context, context.store_of_children(store), taking.consumer, options, txn)
    try:
        taking.take_all(1, commands.handle)
    finally:
        context.note(commands.summary())
    if not taking.is_stopped:
        commands.check()


def _leave(store: Store, consumer: Consumer) -> None:
    """Give back messages in flight, if the writer gate is free; otherwise the end of this process does."""
    leave_soon(store)
    try:
        consumer.close()
    except TxnctlError:
        # The first error is the one to report; the kernel releases the lease of this process.
        return
