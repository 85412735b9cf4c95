"""`consume -s`: messages that a subscription hands out, acknowledged when their lines are out, or a command is done."""

from __future__ import annotations

from os import environ
from time import sleep

from storage.errors import SubscriptionNotFound, TxnctlError, WaitTimeout
from storage.json_form import to_json
from txnctl.commands.consume.blocked import Hidden
from txnctl.commands.consume.bounds import start_at
from txnctl.commands.subscriptions.start import note_if_beyond

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from storage import Consumer, Message, Store, TxnID
    from txnctl.cli.context import Context
    from txnctl.commands.consume.output import Lines
    from txnctl.commands.consume.patience import Patience

    Handle = Callable[[Sequence[Message]], None]

WINDOW = 1000
"""Messages handed out, written and acknowledged at a time."""

_LEAVE_S = 1.0
"""How long an interrupted command waits for the writer gate, to leave the subscription on the way out."""


def take(
    context: Context, topic: str, name: str, lines: Lines, patience: Patience, how: dict[str, Any]
) -> None:
    """Attach to the subscription, print or run what it hands out, leave."""
    txn = how["txn"] or _txn_of_environment()
    with context.open_store(context.store_path, read_only=False) as store:
        if txn is not None:
            store.use_transaction(txn)  # before anything is handed out
        consumer = _subscribe(context, store, topic, name, patience, how)
        hidden = Hidden(context, topic, consumer.blocked_by)
        taking = _Taking(consumer, lines, patience, hidden, _newer(context, consumer, txn), txn)
        try:
            if how["run"] is None:
                writer = _Writer(consumer, lines, acknowledges=how["ack"] != "none", txn=txn)
                taking.run(WINDOW, writer.handle)
                writer.finish()
            else:
                _run(context, store, taking, txn, how)
        except BaseException:
            _leave(store, consumer)
            raise
        consumer.close()


def _txn_of_environment() -> TxnID | None:
    """TXNCTL_TXN, which is nobody's business who only reads: `consume` without -s must not stumble over it."""
    text = environ.get("TXNCTL_TXN")
    if not text:
        return None
    from storage import TxnID

    return TxnID.parse(text)


def _subscribe(
    context: Context, store: Store, topic: str, name: str, patience: Patience, how: dict[str, Any]
) -> Consumer:
    """A consumer; stderr is told what became of a subscription that was not there, or of --from for one that was."""
    from storage import LATEST

    before = _mode_before(store, topic, name)
    is_new = before is None
    start = LATEST if how["start"] is None or not is_new else start_at(store, topic, how["start"])
    consumer = store.subscribe(
        topic,
        name,
        subscription_type=how["subscription_type"],
        subscription_isolation_level=how["isolation_level"],
        on_open=how["on_open"],
        initial_position=start,
        consumer_name=how["consumer_name"],
        # A command takes its time over a message: nobody shall wait for the rest of a window.
        receiver_queue_size=1 if how["run"] is not None else min(WINDOW, patience.left),
        dead_letter_topic=how["dead_letter_topic"],
        max_redeliver_count=how["max_redeliver_count"],
    )
    now = _mode(
        consumer.subscription_type.value, consumer.subscription_isolation_level.value, consumer.on_open.value
    )
    if is_new:
        context.note(f"created subscription {name} of {topic} at {start} ({now})")
        if how["start"] is not None:
            note_if_beyond(
                context,
                topic,
                start,
                to_json(store.reports.subscription_stats(topic, name))["markDeletePosition"],
            )
    elif before != now:
        context.note(
            f"subscription {name} of {topic} was {before} and now is {now}; what was "
            f"acknowledged or skipped stays so: `txnctl subscriptions seek {topic} {name} POSITION` shows it again"
        )
    elif how["start"] is not None:
        context.note(
            f"subscription {name} of {topic} was there already: --from is for a new one, "
            f"`txnctl subscriptions seek {topic} {name} POSITION` moves it"
        )
    return consumer


def _mode(type_: str, level: str, on_open: str) -> str:
    from txnctl.fields.subscription import mode_of

    return mode_of({"type": type_, "subscriptionIsolationLevel": level, "onOpen": on_open})


def _mode_before(store: Store, topic: str, name: str) -> str | None:
    """Type, isolation level and on-open of a subscription in words; None if it is not there."""
    try:
        stats = to_json(store.reports.subscription_stats(topic, name))
    except SubscriptionNotFound:
        return None
    return _mode(stats["type"], stats["subscriptionIsolationLevel"], stats["onOpen"])


def _newer(context: Context, consumer: Consumer, txn: TxnID | None) -> Callable[[], bool]:
    """Tells whether the next message is too new for the transaction; the first time that it is, stderr is told."""
    told = False

    def is_newer() -> bool:
        nonlocal told
        if txn is None or not consumer.next_is_newer_than(txn):
            return False
        if not told:
            told = True
            context.note(
                f"the next message of {consumer.subscription} came after transaction {txn} began, which has used a "
                "table: commit it, and begin anew for what is left"
            )
        return True

    return is_newer


class _Taking:
    """Receives messages and has them handled, until it is over."""

    def __init__(
        self,
        consumer: Consumer,
        lines: Lines,
        patience: Patience,
        hidden: Hidden,
        is_newer: Callable[[], bool],
        txn: TxnID | None,
    ) -> None:
        self.consumer = consumer
        self._txn = txn
        self._lines = lines
        self._patience = patience
        self._hidden = hidden
        self._is_newer = is_newer

    def run(self, window: int, handle: Handle) -> None:
        """Go on until it is over, and say what is hidden where it stopped.

        Raises:
            WaitTimeout: what was waited for did not come.
        """
        patience = self._patience
        while patience.left > 0:
            wait_s = patience.slice_s()
            messages = self.consumer.receive_batch(min(window, patience.left), wait_s, txn=self._txn)
            if messages:
                handle(messages)
                patience.count(len(messages))
                continue
            is_newer = self._is_newer()
            if self._is_over():
                return
            if is_newer:
                # Nothing was waited for: it stays so, and what is asked for can only time out.
                sleep(wait_s)

    def _is_over(self) -> bool:
        try:
            is_over = self._patience.is_over()
        except WaitTimeout:
            self._hidden.at_end()
            raise
        if is_over:
            self._hidden.at_end()
        else:
            self._lines.check_reader()
            self._hidden.while_waiting(self._patience)
        return is_over


class _Writer:
    """Writes lines, then acknowledges them."""

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
        self._lines.flush()
        self._acknowledge(messages)

    def finish(self) -> None:
        """Nothing more comes: write what was held back, and acknowledge that."""
        self._lines.finish()
        for start in range(0, len(self._held), WINDOW):
            self._acknowledge(self._held[start : start + WINDOW])

    def _acknowledge(self, messages: Sequence[Message]) -> None:
        if self._acknowledges:
            self._consumer.acknowledge(messages, txn=self._txn)


def _run(context: Context, store: Store, taking: _Taking, txn: TxnID | None, how: dict[str, Any]) -> None:
    """Run a command for each message; say at the end how it went."""
    from txnctl.commands.consume.command import RETRY_DELAY_S
    from txnctl.commands.consume.exec import Commands

    delay = None
    if how["on_error"] == "retry":
        delay = RETRY_DELAY_S if how["retry_delay"] is None else how["retry_delay"]
    commands = Commands(context, store.path, taking.consumer, how["run"], txn=txn, retry_delay=delay)
    try:
        taking.run(1, commands.handle)
    finally:
        context.note(commands.summary())
    commands.check()


def _leave(store: Store, consumer: Consumer) -> None:
    """Give back what is in flight, if the writer gate is free; else our death does."""
    connection = store.connection
    connection.lock_timeout_s = min(connection.lock_timeout_s, _LEAVE_S)
    try:
        consumer.close()
    except TxnctlError:
        # The error that brought us here is the one to tell; the kernel tells everybody that we are gone.
        return
