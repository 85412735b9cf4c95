"""The memory of a consumer: knowledge that the walks of one consumer share."""

from __future__ import annotations

from storage.subscription.deliveries import FreePlaces
from storage.subscription.dispatch.blocked_keys import BlockedKeys
from storage.subscription.dispatch.span_keys import SpanKeys
from storage.txn.aborted import AbortedSet


class ConsumerMemory:
    """The knowledge of one consumer that walks share: aborted transactions, places of free messages, and keys.

    Attributes:
        reads_compacted: whether the consumer reads the compacted view, and then the log behind the horizon.
    """

    __slots__ = ("aborted", "blocked_keys", "consumer_id", "free_places", "reads_compacted", "span_keys")

    def __init__(self, consumer_id: int, *, reads_compacted: bool = False) -> None:
        self.consumer_id = consumer_id
        self.reads_compacted = reads_compacted
        self.forget()

    def forget(self) -> None:
        """Forget everything: after a failed batch, whose changes the memory may contain."""
        self.aborted = AbortedSet()
        self.blocked_keys = BlockedKeys()
        self.free_places = FreePlaces()
        self.span_keys = SpanKeys()
