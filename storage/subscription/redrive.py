"""Redrive: give dead letters back to the subscription that they came from, as if never delivered before.

The original of a letter is still in the log of its topic, acknowledged by the subscription. Redrive takes back that
acknowledgement, so that the message reaches no other subscription, stands at its place in the order of its key, and
counts its redeliveries from 0. The subscription remembers the last letter that was examined in each dead-letter topic:
a letter is redriven once. The letter itself stays in the log of the dead-letter topic.
"""

from __future__ import annotations

from collections.abc import Mapping

from storage.disk.view import WriteBatch
from storage.errors import ObjectHeld
from storage.limits import REDRIVE_STEP_MESSAGES
from storage.subscription import dead_letter, pending_ack
from storage.subscription.delivery import NOBODY, Delivery, DeliveryPart
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log
from storage.topic.catalogue import Topic
from storage.topic.entry import MESSAGES, Entry
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple
from storage.values.position import MessageId, Position
from storage.values.txn_id import TxnID

_WHOLE = -1


class Redriven(NamedTuple):
    """Numbers of letters that were examined.

    Attributes:
        redriven: given back to the subscription.
        in_backlog: the original is in the backlog already, after a seek or a former redrive.
        originals_gone: the original was trimmed away, or belongs to an aborted transaction.
    """

    redriven: int
    in_backlog: int
    originals_gone: int


class Redrive:
    """One store transaction of redrive.

    Args:
        topic: of the subscription.
        letters: the dead-letter topic.
        count: letters to give back at most.
        given_before: messages that the earlier steps of a dry run gave back, in batches that were dropped.

    Attributes:
        given: the messages given back, by position of the entry.
    """

    def __init__(
        self,
        opened: OpenSubscription[WriteBatch],
        topic: Topic,
        letters: OpenTopic[WriteBatch],
        count: int,
        given_before: Mapping[Position, int],
    ) -> None:
        self._opened = opened
        self._topic = topic
        self._origin = OpenTopic.load(opened.view, opened.topic_id)
        self._letters = letters
        self._room = count
        self._given_before = given_before
        self.given: dict[Position, int] = {}
        self._first: tuple[Position, int] | None = None
        self._redriven = self._in_backlog = self._gone = 0

    def step(self) -> tuple[Redriven, bool]:
        """Examine the next letters, about `REDRIVE_STEP_MESSAGES`: their numbers, and whether the redrive is complete.

        `catalogue.save` writes the subscription afterwards.

        Raises:
            ObjectHeld: a cumulative acknowledgement is pending, which would acknowledge the messages again.
        """
        self._check_nothing_cumulative()
        redriven, letters = self._opened.subscription.redriven, self._letters
        examined = redriven.get(letters.topic_id, MessageId(0, -1))
        page = log.page(letters.view, letters.topic_id, _before(examined), letters.state.last_confirmed)
        is_last = not page
        for entry in page:
            through = examined.batch_index if entry.position == examined.position else -1
            stopped = self._examine(entry, through)
            if stopped is not None:
                examined = MessageId(*entry.position, stopped) if stopped >= 0 else examined
                is_last = True
                break
            examined = MessageId(*entry.position, _WHOLE)
            if self._redriven + self._in_backlog + self._gone >= REDRIVE_STEP_MESSAGES:
                break
        redriven[letters.topic_id] = examined
        self._restart()
        is_last |= self._room == 0 or examined.position >= letters.state.last_confirmed
        return Redriven(self._redriven, self._in_backlog, self._gone), is_last

    def _check_nothing_cumulative(self) -> None:
        pending, name = self._opened.cursor.pending_cumulative, self._opened.subscription.name
        if pending is not None:
            raise ObjectHeld(
                f"subscription {name} has a cumulative acknowledgement pending in {TxnID(pending[0])}",
                hint="Wait for that transaction to end, or abort it; then redrive again.",
                transactions=[str(TxnID(pending[0]))],
            )

    def _examine(self, letters: Entry, through: int) -> int | None:
        """Give the originals of one entry of letters back; None, or the last index examined when no room is left.

        Args:
            through: the last index examined before; -1 for none.
        """
        chosen: dict[Position, int] = {}
        stopped: int | None = None
        for index, origin in dead_letter.origins(letters, self._topic, self._opened.subscription):
            if index <= through:
                continue
            at, message = origin.position, 1 << max(origin.batch_index, 0)
            original = self._original(at)
            if original is None or message >> original.count:
                self._gone += 1
            elif not self._is_acknowledged(at, original.count, message & ~chosen.get(at, 0)):
                self._in_backlog += 1
            elif not self._room:
                stopped = index - 1
                break
            else:
                chosen[at] = chosen.get(at, 0) | message
                self._room -= 1
        for at, messages in chosen.items():
            self._give_back(log.stored(self._opened.view, self._opened.topic_id, at), messages)
        return stopped

    def _is_acknowledged(self, at: Position, count: int, message: int) -> bool:
        """Whether a message is acknowledged, and was not given back before."""
        return bool(self._opened.acks.of(at, count) & message & ~self._given_before.get(at, 0))

    def _original(self, at: Position) -> Entry | None:
        if at.ledger_id < self._origin.state.first_ledger:
            return None
        entry = log.read(self._opened.view, self._opened.topic_id, at)
        if entry is None or entry.kind != MESSAGES or dead_letter.is_aborted(self._opened.view, entry):
            return None
        return entry

    def _give_back(self, entry: Entry, messages: int) -> None:
        opened, at = self._opened, entry.position
        taken = opened.acks.unacknowledge(at, entry.count, messages)
        delivery = opened.deliveries.find(at) or Delivery(at, entry.count, [])
        # A cumulative acknowledgement may not pass over the messages before they were delivered again.
        is_ordered = opened.subscription.type.is_ordered
        delivery.give(DeliveryPart(taken, NOBODY, 0, recalled=is_ordered))
        opened.deliveries.put(delivery)
        self._redriven += taken.bit_count()
        self.given[at] = self.given.get(at, 0) | taken
        self._first = min(self._first or (at, taken), (at, taken))

    def _restart(self) -> None:
        """Tell the consumers: in order, delivery restarts at the first message; by key, later ones may have to wait."""
        if self._first is None:
            return
        at, messages = self._first
        if self._opened.subscription.type.is_ordered:
            pending_ack.recall(self._opened, at, -(messages & -messages))
        else:
            self._opened.cursor.generation += 1


def _before(examined: MessageId) -> Position:
    """The position after which the next letters are: an entry that was examined in part is read again."""
    at = examined.position
    return at if examined.batch_index < 0 else Position(at.ledger_id, at.entry_id - 1)
