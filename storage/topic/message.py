"""A message, as readers and consumers deliver messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState

if TYPE_CHECKING:
    from storage.topic.entry import Entry
    from storage.values.store_incarnation import StoreIncarnation


class MessageOrigin(NamedTuple):
    """The topic that messages were read from: name, id, and the store; without a store for messages to be shown."""

    topic: str
    topic_id: int = 0
    store: StoreIncarnation | None = None


class Message:
    """A message of an entry. Fields are looked up in the entry at their use, so that a batch costs little."""

    __slots__ = ("entry", "index", "origin", "redelivery_count")

    entry: Entry
    """The entry that contains the message."""

    index: int
    """The index of the message in the entry."""

    origin: MessageOrigin
    """The topic that the message was read from."""

    redelivery_count: int
    """The number of deliveries by the subscription before this delivery."""

    def __init__(self, entry: Entry, index: int, origin: MessageOrigin, redelivery_count: int = 0) -> None:
        self.entry = entry
        self.index = index
        self.origin = origin
        self.redelivery_count = redelivery_count

    @property
    def topic(self) -> str:
        return self.origin.topic

    @property
    def message_id(self) -> MessageId:
        return self.entry.message_id(self.index)

    @property
    def value(self) -> bytes | None:
        """None is a tombstone."""
        return self.entry.values[self.index]

    @property
    def key(self) -> bytes | None:
        """An empty key is a key."""
        keys = self.entry.keys
        return keys[self.index] if keys else None

    @property
    def properties(self) -> dict[str, str]:
        properties = self.entry.properties
        return (properties[self.index] if properties else None) or {}

    @property
    def event_time(self) -> int | None:
        """Milliseconds since 1970, as given by the producer."""
        times = self.entry.event_times
        return times[self.index] if times else None

    @property
    def deliver_at(self) -> int | None:
        """Milliseconds since 1970 before which Shared and Key_Shared do not deliver the message."""
        times = self.entry.delivery_times
        return times[self.index] if times else None

    @property
    def publish_time(self) -> int:
        """Milliseconds since 1970 at which the message was stored."""
        return self.entry.publish_time

    @property
    def producer_name(self) -> str:
        return self.entry.producer_name

    @property
    def sequence_id(self) -> int:
        return self.entry.sequence_ids[self.index]

    @property
    def epoch(self) -> int:
        """The topic epoch of the producer; -1 if the topic had none."""
        return self.entry.epoch

    @property
    def txn_id(self) -> TxnID | None:
        """The transaction in which the message was sent, or None."""
        return self.entry.txn_id

    @property
    def txn_state(self) -> TransactionState | None:
        """The state of that transaction when the message was read."""
        return self.entry.txn_state

    def __eq__(self, other: object) -> bool:
        """The same message, however often delivered."""
        if not isinstance(other, Message):
            return NotImplemented
        return (self.topic, self.message_id) == (other.topic, other.message_id)

    def __hash__(self) -> int:
        return hash((self.topic, self.message_id))

    def __repr__(self) -> str:
        return f"<Message {self.message_id} of {self.topic}: {(self.value or b'')[:40]!r}>"
