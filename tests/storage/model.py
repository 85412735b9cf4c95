"""What semantics sections 2 to 5 say, in lists and dictionaries: the model that the store is compared with.

It shares no code with the store but the enums that name levels, types and states. It recomputes everything from
the log at every question, so that there is nothing to keep consistent: maxReadPosition is a search for the first
message of an open transaction, markDeletePosition a walk over what is acknowledged. Sets are sets of *slots*:
(index of the entry in the log, index of the message in the entry); a marker has the one slot (index, 0).

A rule that may refuse is asked first (`..._problems` names the errors of which one must be raised), then applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy

from storage import IsolationLevel, TransactionState
from tests.storage.model_subscription import ModelSubscription

RC, RU = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
OPEN, COMMITTED, ABORTED = TransactionState.OPEN, TransactionState.COMMITTED, TransactionState.ABORTED
Slot = tuple[int, int]


class ModelMessage:
    """What was sent; `producer` is None for a name that the store made up, `due_ns` without a delivery time."""

    def __init__(
        self,
        value: bytes | None,
        key: bytes | None,
        producer: str | None,
        sequence_id: int | None,
        due_ns: int | None = None,
    ) -> None:
        self.value = value
        self.key = key
        self.producer = producer
        self.sequence_id = sequence_id
        self.due_ns = due_ns


class ModelEntry:
    """An entry of a log: `kind` is messages, commit or abort."""

    def __init__(self, at: tuple[int, int], kind: str, txn: int, messages: list[ModelMessage]) -> None:
        self.at = at
        self.kind = kind
        self.txn = txn
        self.messages = messages


class ModelTransaction:
    """A transaction; an attached one ends with its process."""

    def __init__(self, number: int, deadline_ns: int, attached: bool) -> None:
        self.number = number
        self.deadline_ns = deadline_ns
        self.attached = attached
        self.state = OPEN


class ModelTopic:
    """A topic: a log, the sequence ids in use, its subscriptions."""

    def __init__(self, model: Model, name: str, first_ledger: int, ledger_entries_max: int) -> None:
        self.model = model
        self.name = name
        self.first_ledger = first_ledger
        self.ledger_entries_max = ledger_entries_max
        self.log: list[ModelEntry] = []
        self.sequences: dict[str, dict[int, int]] = {}
        self.subscriptions: dict[str, ModelSubscription] = {}

    def position(self, index: int) -> tuple[int, int]:
        return self.log[index].at if index >= 0 else (self.first_ledger, -1)

    def index_through(self, at: tuple[int, int]) -> int:
        """The last entry at or below a position; -1 if there is none."""
        return sum(entry.at <= at for entry in self.log) - 1

    def append(self, kind: str, txn: int, messages: list[ModelMessage]) -> int:
        """Write an entry; its index."""
        at = (self.first_ledger, 0)
        if self.log:
            ledger_id, entry_id = self.log[-1].at
            is_full = entry_id + 1 >= self.ledger_entries_max
            at = (ledger_id + 1, 0) if is_full else (ledger_id, entry_id + 1)
        self.log.append(ModelEntry(at, kind, txn, messages))
        return len(self.log) - 1

    def slots(self, index: int) -> list[Slot]:
        return [(index, place) for place in range(max(1, len(self.log[index].messages)))]

    def message(self, slot: Slot) -> ModelMessage:
        return self.log[slot[0]].messages[slot[1]]

    def message_id(self, slot: Slot) -> tuple[int, int, int]:
        """The message id as (ledger, entry, batch index), which is -1 where the entry has one message."""
        entry = self.log[slot[0]]
        return (*entry.at, slot[1] if len(entry.messages) > 1 else -1)

    def state(self, index: int) -> TransactionState | None:
        """The state of an entry's transaction; None if it has none."""
        txn = self.log[index].txn
        return self.model.txns[txn].state if txn else None

    def open_transactions(self) -> list[int]:
        """Open transactions with messages here, in order of their first message."""
        found: dict[int, None] = {}
        for index, entry in enumerate(self.log):
            if entry.kind == "messages" and self.state(index) is OPEN:
                found[entry.txn] = None
        return list(found)

    def max_read(self) -> int:
        """Index of the entry at maxReadPosition: before the first message of an open transaction."""
        for index, entry in enumerate(self.log):
            if entry.kind == "messages" and self.state(index) is OPEN:
                return index - 1
        return len(self.log) - 1

    def bound(self, level: IsolationLevel) -> int:
        return self.max_read() if level is RC else len(self.log) - 1

    def is_delivered(self, index: int, level: IsolationLevel) -> bool:
        """Whether an entry at or below the bound is handed out at this level."""
        if self.log[index].kind != "messages":
            return False
        return level is RU or self.state(index) is not ABORTED

    def visible(self, level: IsolationLevel, after: int = -1) -> list[Slot]:
        """What a reader of this level is shown after an entry."""
        through = self.bound(level)
        return [
            slot
            for index in range(after + 1, through + 1)
            if self.is_delivered(index, level)
            for slot in self.slots(index)
        ]

    def used_sequence(self, producer: str) -> int:
        return max(self.sequences.get(producer, {}), default=-1)


def _copied(value: object) -> object:
    """A container with containers of its own; what is in these stays the same object."""
    if isinstance(value, dict):
        return {key: dict(inner) if isinstance(inner, dict) else inner for key, inner in value.items()}
    return copy(value) if isinstance(value, (list, set)) else value


class Model:
    """A whole store."""

    def __init__(self) -> None:
        self.topics: dict[str, ModelTopic] = {}
        self.next_ledger: dict[str, int] = {}
        self.txns: dict[int, ModelTransaction] = {}
        self.letters: dict[str, list[bytes | None]] = {}
        self.now: Callable[[], int] = lambda: 0

    def create_topic(self, name: str, ledger_entries_max: int) -> None:
        first = self.next_ledger.get(name, 1)
        self.topics[name] = ModelTopic(self, name, first, ledger_entries_max)

    def delete_topic(self, name: str) -> None:
        topic = self.topics.pop(name)
        self.next_ledger[name] = (topic.log[-1].at[0] if topic.log else topic.first_ledger) + 1

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Undo at the end of the block all ends of transactions within the block."""
        changed: list[object] = [*self.txns.values(), *self.topics.values(), *self.subscriptions()]
        before = [{name: _copied(value) for name, value in vars(each).items()} for each in changed]
        try:
            yield
        finally:
            for each, attributes in zip(changed, before, strict=True):
                vars(each).update(attributes)

    def topic_holders(self, name: str) -> set[int]:
        """Open transactions that hold a topic: with messages in it, or acknowledgements pending on it."""
        topic = self.topics[name]
        found = set(topic.open_transactions())
        for subscription in topic.subscriptions.values():
            found |= subscription.holders()
        return found

    def subscriptions(self) -> list[ModelSubscription]:
        return [each for topic in self.topics.values() for each in topic.subscriptions.values()]

    def open_transactions(self) -> list[ModelTransaction]:
        return [txn for txn in self.txns.values() if txn.state is OPEN]

    def use_problems(self, number: int, now_ns: int) -> set[str]:
        """Of producing or acknowledging in a transaction; 0 is none."""
        if not number:
            return set()
        txn = self.txns.get(number)
        if txn is None:
            return {"TransactionNotFound"}
        if txn.state is not OPEN:
            return {"TransactionNotOpen"}
        return {"TransactionTimedOut"} if now_ns >= txn.deadline_ns else set()

    def end_problems(self, number: int, committed: bool, now_ns: int) -> set[str]:
        txn = self.txns.get(number)
        if txn is None:
            return {"TransactionNotFound"}
        if txn.state is not OPEN:
            return set() if txn.state is (COMMITTED if committed else ABORTED) else {"TransactionNotOpen"}
        return {"TransactionTimedOut"} if committed and now_ns >= txn.deadline_ns else set()

    def end(self, number: int, committed: bool) -> None:
        """Decide a transaction for all that it touched; nothing if it was."""
        txn = self.txns[number]
        if txn.state is not OPEN:
            return
        touched = [topic for topic in self.topics.values() if number in topic.open_transactions()]
        txn.state = COMMITTED if committed else ABORTED
        for topic in touched:
            topic.append("commit" if committed else "abort", number, [])
        for topic in self.topics.values():
            self._settle_sequences(topic, number, committed)
            for subscription in topic.subscriptions.values():
                subscription.decide(number, committed)

    @staticmethod
    def _settle_sequences(topic: ModelTopic, number: int, committed: bool) -> None:
        for used in topic.sequences.values():
            for sequence_id in [each for each, txn in used.items() if txn == number]:
                if committed:
                    used[sequence_id] = 0
                else:
                    del used[sequence_id]

    def send_problems(
        self, topic: str, producer: str | None, ids: list[int] | None, txn: int, now_ns: int
    ) -> set[str]:
        found = self.use_problems(txn, now_ns)
        used = self.topics[topic].sequences.get(producer or "", {})
        if ids is not None and any(used.get(each, 0) not in (0, txn) for each in ids):
            found.add("SequenceConflict")
        return found

    def send(
        self,
        topic: str,
        producer: str | None,
        messages: list[tuple[bytes | None, bytes | None, int | None]],
        ids: list[int] | None,
        txn: int,
    ) -> list[Slot]:
        """Append messages, but those whose sequence ids are in use; the slots of those that were stored."""
        log = self.topics[topic]
        used = log.sequences.setdefault(producer or "", {})
        stored = []
        following = log.used_sequence(producer) + 1 if producer is not None else None
        for place, (value, key, due_ns) in enumerate(messages):
            sequence_id = None
            if ids is not None:
                sequence_id = ids[place]
                if sequence_id in used:
                    continue
            elif following is not None:
                sequence_id, following = following, following + 1
            if sequence_id is not None:
                used[sequence_id] = txn
            stored.append(ModelMessage(value, key, producer, sequence_id, due_ns))
        if not stored:
            return []
        return log.slots(log.append("messages", txn, stored))
