"""The record of a subscription: type, isolation level, dead-letter policy, start."""

from __future__ import annotations

from functools import partial

from storage.disk.codec import decoded, pack, unpack
from storage.disk.schema import SUBSCRIPTIONS
from storage.subscription.isolation import IsolationLevel, OnOpen, SubscriptionType, bound
from storage.topic.state import TopicState
from storage.values.position import MessageId, Position, as_position


class Subscription:
    """The record of a subscription.

    Attributes:
        on_open: block or skip at open transactions; part of the isolation level.
        dead_letter_topic, max_redeliver_count: the topic for messages that were redelivered so often; None: no topic.
        start: the first position of the cursor; messages before were never in the backlog.
        redriven: by the id of a dead-letter topic, the last letter that redrive has examined there (batch index -1: the
            whole entry).
    """

    __slots__ = (
        "created_ms", "dead_letter_topic", "level", "max_redeliver_count", "name", "on_open",
        "redriven", "start", "subscription_id", "topic_id", "type",
    )  # fmt: skip

    def __init__(self, topic_id: int, name: str, subscription_id: int = 0) -> None:
        self.topic_id = topic_id
        self.name = name
        self.subscription_id = subscription_id
        self.type = SubscriptionType.EXCLUSIVE
        self.level = IsolationLevel.READ_COMMITTED
        self.on_open = OnOpen.BLOCK
        self.created_ms = 0
        self.dead_letter_topic: str | None = None
        self.max_redeliver_count: int | None = None
        self.start = Position(0, -1)
        self.redriven: dict[int, MessageId] = {}

    @property
    def skips(self) -> bool:
        """Whether the subscription is READ_COMMITTED and passes over open transactions."""
        return self.on_open is OnOpen.SKIP

    @property
    def keeps_keys(self) -> bool:
        return self.type is SubscriptionType.KEY_SHARED

    @property
    def delays(self) -> bool:
        """Whether delivery times are heeded; the other types deliver in the order of the log."""
        return not self.type.is_ordered

    def bound(self, state: TopicState) -> Position:
        """The last position that the subscription may deliver."""
        return bound(self.level, state.max_read, state.last_confirmed, self.on_open)

    def encode(self) -> bytes:
        return pack(
            [
                self.subscription_id, self.type.value, self.level.value, self.on_open.value, self.created_ms,
                self.dead_letter_topic, self.max_redeliver_count, self.start,
                [[topic_id, *examined] for topic_id, examined in self.redriven.items()],
            ]
        )  # fmt: skip

    @classmethod
    def decode(cls, key: bytes, payload: memoryview) -> Subscription:
        return decoded(SUBSCRIPTIONS, key, payload, partial(cls._of, key))

    @classmethod
    def _of(cls, key: bytes, payload: memoryview) -> Subscription:
        fields = unpack(payload, 8)
        subscription = cls(int.from_bytes(key[:8], "big"), key[8:].decode("ascii"), fields[0])
        subscription.type, subscription.level = SubscriptionType(fields[1]), IsolationLevel(fields[2])
        subscription.on_open, subscription.created_ms = OnOpen(fields[3]), fields[4]
        subscription.dead_letter_topic, subscription.max_redeliver_count = fields[5:7]
        subscription.start = as_position(fields[7])
        if len(fields) > 8:
            subscription.redriven = {row[0]: MessageId(*row[1:4]) for row in fields[8]}
        return subscription
