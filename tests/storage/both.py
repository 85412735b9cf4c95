"""The store and its model side by side: run a step on both, and compare all that can be read.

Open transactions past their deadline may be ended by whoever writes next. After each step it is seen which ones
were, and they are ended in the model before the step itself, as the store does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import note

from storage import EARLIEST, LATEST, Consumer, MessageId, Position, Store, TxnctlError, TxnID
from storage.errors import MessageNotFound
from tests.row_json import row_json
from tests.storage.model import OPEN, RC, RU, Model, ModelTopic, ModelTransaction, Slot
from tests.storage.model_subscription import ModelConsumer, ModelSubscription, Problems
from tests.storage.modelled_store import ModelledStore

SECOND = 10**9


class Both(ModelledStore):
    """A store in a directory of its own, and the model of it.

    Attributes:
        handles: the store's consumer for each one of the model that the application still holds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.model.now = lambda: self.now_ns
        self.handles: dict[ModelConsumer, Consumer] = {}

    # Steps

    def attempt(
        self,
        what: str,
        call: Callable[[], Any],
        check: Callable[[], Problems | set[str]],
        txn: int = 0,
        writes: bool = True,
        forced: set[int] | None = None,
    ) -> tuple[Any, bool]:
        """Run a step on the store; its result, and whether it went well.

        Args:
            check: which errors are due, asked after what was reaped on the way is known.
            txn: the transaction that the step names; 0 for none.
            writes: whether the step, if it goes well, is a write, which ends what is overdue.
            forced: open transactions that the step aborts on purpose.
        """
        result, raised = None, None
        try:
            result = call()
        except TxnctlError as error:
            raised = type(error).__name__
            note(f"{what} -> {raised}: {error}")
        else:
            note(f"{what} -> {shown(result)}")
        self._notice_reaped(txn, writes and raised is None, forced or set())
        found = check() if raised is None else self._check_refused(check, txn)
        problems = found if isinstance(found, Problems) else Problems(found)
        if raised is None:
            assert not problems.must, f"{what} went well; it must raise one of {problems.must}"
        else:
            assert raised in problems.must | problems.may, f"{what} raised {raised}; expected {problems}"
        if raised == "TransactionTimedOut":
            self.model.end(txn, committed=False)
        return result, raised is None

    def _notice_reaped(self, named: int, must: bool, forced: set[int]) -> None:
        """End in the model what a writer on its way ended in the store: what is overdue, but never `named`."""
        still_open = {
            int(row["txnId"].split(":")[1]) for row in row_json(self.store.reports.list_transactions())
        }
        for txn in self._most_urgent_first():
            if txn.number == named:
                continue
            is_overdue = self.now_ns >= txn.deadline_ns
            if txn.number in still_open:
                assert not (is_overdue and must), f"0:{txn.number} is overdue, and the writer did not end it"
            elif is_overdue:
                note(f"  (0:{txn.number} was reaped)")
                self.model.end(txn.number, committed=False)
            else:
                assert txn.number in forced, f"0:{txn.number} was ended, and nobody asked for it"

    def _check_refused(self, check: Callable[[], Problems | set[str]], named: int) -> Problems | set[str]:
        """Errors that are due in the state that a refused writer judges, which ends overdue transactions first.

        The refusal takes the ends back: afterwards the model is as before.
        """
        with self.model.put_back():
            for txn in self._most_urgent_first():
                if txn.number != named and self.now_ns >= txn.deadline_ns:
                    self.model.end(txn.number, committed=False)
            return check()

    def _most_urgent_first(self) -> list[ModelTransaction]:
        return sorted(self.model.open_transactions(), key=lambda txn: (txn.deadline_ns, txn.number))

    def end_all(self, txns: set[int]) -> None:
        """What a forced step aborts."""
        for txn in sorted(txns):
            self.model.end(txn, committed=False)

    def close_and_open(self) -> None:
        """Everything attached to this process ends; everything stored is there."""
        note("close and open")
        self.store.close()
        self.store = Store.open(self.path, clock=self.clock)
        for consumer in self.handles:
            if not consumer.evicted:
                consumer.subscription.detach(consumer, untouched=False)
                consumer.subscription.has_dead_consumers = True
        self.handles.clear()
        self.store.admin.transactions.reap_transactions()
        for txn in self._most_urgent_first():
            if self.now_ns >= txn.deadline_ns:
                self.model.end(txn.number, committed=False)
        self.end_all({txn.number for txn in self.model.open_transactions() if txn.attached})

    def drop_handles(self, subscription: ModelSubscription) -> None:
        """Close the consumers of a subscription that is gone: that does no harm."""
        for consumer in [each for each in self.handles if each.subscription is subscription]:
            self.handles.pop(consumer).close()

    # Comparison

    def compare(self) -> None:
        """All that can be read of the store is what the model computes."""
        for topic in self.model.topics.values():
            for level in (RC, RU):
                wanted = topic.visible(level)
                self.compare_read(topic, level, EARLIEST, wanted)
                last = message_id(topic, wanted[-1]) if wanted else None
                assert self.store.reports.last_message_id(topic.name, level) == last
            self._compare_topic(topic)
        for name, letters in self.model.letters.items():
            # A receive that waits looks more than once: which of two is worn out first the model does not know.
            found = [message.value for message in self.store.reader(name)]
            assert Counter(found) == Counter(letters)

    def compare_read(self, topic: ModelTopic, level: Any, start: Any, wanted: list[Slot]) -> None:
        """A reader from `start` is shown these messages, each as it was sent (invariants 2, 3, 4)."""
        if never_had(topic, start):
            with pytest.raises(MessageNotFound):
                list(self.store.reader(topic.name, start=start, isolation_level=level))
            return
        got = list(self.store.reader(topic.name, start=start, isolation_level=level))
        assert [each.message_id for each in got] == [message_id(topic, slot) for slot in wanted]
        for message, slot in zip(got, wanted, strict=True):
            entry, stored = topic.log[slot[0]], topic.message(slot)
            assert (message.value, message.key) == (stored.value, stored.key)
            assert message.txn_id == (TxnID(entry.txn) if entry.txn else None)
            assert message.txn_state is topic.state(slot[0])
            if stored.producer is not None:
                assert (message.producer_name, message.sequence_id) == (stored.producer, stored.sequence_id)

    def _compare_topic(self, topic: ModelTopic) -> None:
        """The log is the log, and positions and counters are those recomputed from it (invariants 1, 5, 23)."""
        log = [
            (
                "{}:{}".format(*entry.at),
                entry.kind,
                len(entry.messages),
                f"0:{entry.txn}" if entry.txn else None,
            )
            for entry in topic.log
        ]
        rows = row_json(self.store.reports.topic_log(topic.name))
        assert [(row["position"], row["kind"], row["messages"], row["txnId"]) for row in rows] == log
        stats = row_json(self.store.reports.topic_stats(topic.name))
        differences = _differences(stats, _topic_counters(topic))
        assert differences == [], f"{topic.name}: {differences}"
        blocker = stats["blockedBy"] and stats["blockedBy"]["txnId"]
        assert blocker == next((f"0:{txn}" for txn in topic.open_transactions()), None)
        assert set(stats["subscriptions"]) == set(topic.subscriptions)
        for name, mine in topic.subscriptions.items():
            self._compare_subscription(topic, mine, stats["subscriptions"][name])

    def _compare_subscription(
        self, topic: ModelTopic, mine: ModelSubscription, stats: dict[str, Any]
    ) -> None:
        """Each message is in the first class that fits (invariant 8); what is pending, and where."""
        differences = _differences(stats, _subscription_counters(mine))
        assert differences == [], f"{topic.name}/{mine.name}: {differences}"
        visible = [slot for slot in mine.unread() if mine.is_shown(slot)]
        peeked = [
            message.message_id for message in self.store.reports.peek_messages(topic.name, mine.name, 10_000)
        ]
        assert peeked == [message_id(topic, slot) for slot in visible]
        mark = Position.parse(stats["markDeletePosition"])
        assert topic.index_through(mark) == mine.mark_delete()
        rows = row_json(self.store.reports.list_pending_acknowledgements(topic.name, mine.name))
        cumulative = [row["txnId"] for row in rows if row["kind"] == "cumulative"]
        assert cumulative == ([f"0:{mine.cumulative[0]}"] if mine.cumulative else [])
        listed = {
            (slot, row["txnId"])
            for row in rows
            if row["kind"] == "individual"
            for slot in _slots_of(topic, row["messageId"])
        }
        pending = {(slot, f"0:{txn}") for slot, txn in mine.pending.items()}
        assert pending <= listed
        # What the cumulative one absorbed in its own last entry may be listed beside it.
        assert all(
            mine.cumulative and (slot[0], txn) == (mine.cumulative[1][0], cumulative[0])
            for slot, txn in listed - pending
        )


def _slots_of(topic: ModelTopic, text: str) -> list[Slot]:
    """The slots that a row of pending acknowledgements names: a message, or by its position a whole entry."""
    ledger, entry, *place = map(int, text.split(":"))
    index = next(number for number, logged in enumerate(topic.log) if logged.at == (ledger, entry))
    return [(index, place[0])] if place else topic.slots(index)


def never_had(topic: ModelTopic, start: Any) -> set[str]:
    """The error for a start that a former topic of the name gave out, and this one never had; none for others."""
    is_former = start not in (EARLIEST, LATEST) and start.ledger_id < topic.first_ledger
    return {"MessageNotFound"} if is_former else set()


def after_start(topic: ModelTopic, start: Any, level: Any) -> tuple[int, list[Slot]]:
    """The entry after which a start begins, and the first messages of the next one that it leaves out."""
    if start is EARLIEST:
        return -1, []
    if start is LATEST:
        return topic.bound(level), []
    at = (start.ledger_id, start.entry_id)
    index = topic.index_through(at)
    if index < 0 or topic.log[index].at != at:
        return index, []
    inside = start.batch_index if isinstance(start, MessageId) else 0
    return index - 1, [(index, place) for place in range(inside)]


def message_id(topic: ModelTopic, slot: Slot, whole: bool = False) -> MessageId:
    """The message id of a slot, or of its whole entry; for a marker what it would be."""
    return MessageId(*topic.log[slot[0]].at) if whole else MessageId(*topic.message_id(slot))


def shown(result: Any) -> str:
    """A result in the report of a failing example."""
    if isinstance(result, list):
        return "[" + ", ".join(str(getattr(each, "message_id", each)) for each in result) + "]"
    return str(result) if isinstance(result, (str, int, TxnID, bool)) else type(result).__name__


def _differences(stats: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return [f"{name} is {stats[name]}, not {value}" for name, value in wanted.items() if stats[name] != value]


def _topic_counters(topic: ModelTopic) -> dict[str, Any]:
    max_read, last = topic.max_read(), len(topic.log) - 1
    messages = sum(len(entry.messages) for entry in topic.log)
    through = sum(len(entry.messages) for entry in topic.log[: max_read + 1])
    aborted = {entry.txn for entry in topic.log if entry.kind == "abort"}
    every_aborted = sum(len(entry.messages) for entry in topic.log if entry.txn in aborted)
    skipped = sum(len(entry.messages) for entry in topic.log[: max_read + 1] if entry.txn in aborted)
    uncommitted = sum(len(entry.messages) for i, entry in enumerate(topic.log) if topic.state(i) is OPEN)
    return {
        "maxReadPosition": "{}:{}".format(*topic.position(max_read)),
        "lastConfirmedEntry": "{}:{}".format(*topic.position(last)),
        "msgInCounter": messages,
        "markerCount": sum(entry.kind != "messages" for entry in topic.log),
        "ongoingTxnCount": len(topic.open_transactions()),
        "abortedTxnCount": len(aborted),
        "uncommittedMessages": uncommitted,
        "abortedMessages": every_aborted,
        "readableMessages": through - skipped,
        "skippedMessages": skipped,
        "blockedMessages": messages - through - uncommitted - (every_aborted - skipped),
    }


def _subscription_counters(mine: ModelSubscription) -> dict[str, Any]:
    classes = dict.fromkeys(
        ("marker", "acknowledged", "pending", "aborted", "uncommitted", "blocked", "delayed", "visible"), 0
    )
    for slot in mine.unread():
        classes[mine.class_of(slot)] += 1
    found = {
        "type": mine.type.value,
        "subscriptionIsolationLevel": mine.level.value,
        "onOpen": mine.on_open.value,
        "visible": classes["visible"],
        "blocked": classes["blocked"],
        "delayed": classes["delayed"],
        "uncommitted": classes["uncommitted"],
        "pending": classes["pending"],
        "acknowledgedAhead": classes["acknowledged"],
        "abortedAhead": classes["aborted"],
        "msgBacklog": sum(classes[name] for name in ("visible", "blocked", "delayed", "uncommitted")),
    }
    if not mine.has_dead_consumers:
        found["unackedMessages"] = len(mine.holder)
    return found
