"""The share of one consumer of the messages that wait, where consumers share the work: on Shared and Key_Shared.

A dispatch hands out at most the asker's share, so that the consumers that ask next find messages too. A consumer that
asks and finds none makes the windows of the others *wanted*; each holder gives back, in its next call, the messages
beyond its share that its application has not received. Only the holder gives back: no message goes to two consumers.

On Key_Shared the share is one of keys: of n consumers each takes every n-th key that no consumer holds.
"""

from __future__ import annotations

from storage.disk.view import ReadView, WriteBatch
from storage.subscription import attached_consumers, message_set
from storage.subscription.dispatch.receiver_queue import Messages, ReceiverQueue
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log
from storage.topic.open_topic import OpenTopic


def sharers(opened: OpenSubscription[ReadView]) -> int:
    """The number of consumers that share the messages of a subscription; 1 where one alone receives them."""
    return attached_consumers.number(opened) if not opened.subscription.type.is_ordered else 1


def room(topic: OpenTopic[ReadView], opened: OpenSubscription[ReadView], size: int) -> int:
    """The number of messages that one dispatch hands out at most.

    Args:
        size: of the consumer's queue.
    """
    consumers = sharers(opened)
    return size if consumers < 2 else min(size, part(_waiting(topic, opened), consumers))


def part(messages: int, consumers: int) -> int:
    """The share of one of so many consumers, one message at least."""
    return max(1, -(-messages // consumers))


def number_of(opened: OpenSubscription[WriteBatch], messages: int) -> int:
    """The number of a window of so many messages, by which it is wanted; 0 where no other consumer can want it.

    A window of a consumer that is alone has a number too: others may come.
    """
    if messages < 2 or opened.subscription.type.is_ordered:
        return 0
    opened.cursor.windows += 1
    return opened.cursor.windows


def _waiting(topic: OpenTopic[ReadView], opened: OpenSubscription[ReadView]) -> int:
    """About the number of messages that a dispatch could hand out, of the counts that are kept.

    Aborted messages, and messages acknowledged ahead of the read position, count too.
    """
    view, cursor, state = topic.view, opened.cursor, topic.state
    through, read = opened.subscription.bound(state), max(cursor.read, cursor.mark_delete)
    new = 0
    if read < through:
        end, begin = (log.messages_through(view, topic.topic_id, state, at) for at in (through, read))
        new = end - begin
    again = cursor.released * max(state.messages // max(state.entries - state.markers, 1), 1)
    is_due = cursor.delayed and opened.delayed.is_due(view.clock.wall_ms())
    return new + again + (cursor.delayed if is_due else 0)


class KeyShare:
    """The keys that one consumer takes: of the free keys that come up, the first and then every n-th.

    Attributes:
        passed: the number of messages left to other consumers.
    """

    __slots__ = ("_consumers", "_met", "_taken", "passed")

    def __init__(self, consumers: int) -> None:
        self._consumers = consumers
        self._taken: dict[bytes | None, bool] = {}
        self._met = self.passed = 0

    def undecided(self, keys: set[bytes]) -> set[bytes]:
        """The keys that are not taken."""
        if self._consumers < 2:
            return set()
        return {key for key in keys if not self._taken.get(key)}

    def takes(self, key: bytes | None) -> bool:
        """Whether a free message is taken; without a key a message counts alone."""
        if key is not None and key in self._taken:
            return self._taken[key]
        is_taken = self._met % self._consumers == 0
        self._met += 1
        if key is not None:
            self._taken[key] = is_taken
        return is_taken

    def note_passed(self, key: bytes) -> None:
        """Count a message that is not taken, if it is left to other consumers."""
        self.passed += not self._taken.get(key, True)


def surplus(queue: ReceiverQueue, consumers: int, *, by_key: bool) -> Messages:
    """The queued messages that a holder gives back when they are wanted; the first message stays."""
    if by_key:
        return _keys_beyond_share(queue, consumers)
    left, given = part(sum(piece.count for piece in queue), consumers), Messages()
    for piece in queue:
        kept = message_set.lowest(piece.messages, left)
        left -= kept.bit_count()
        if kept != piece.messages:
            given[piece.at] = piece.messages & ~kept
    return given


def _keys_beyond_share(queue: ReceiverQueue, consumers: int) -> Messages:
    share, given = KeyShare(consumers), Messages()
    for piece in queue:
        keys = piece.entry.keys
        left = [index for index in piece.indexes if not share.takes(keys[index] if keys else None)]
        if left:
            given[piece.at] = sum(1 << index for index in left)
    return given
