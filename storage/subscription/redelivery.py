"""Redelivery: a negative acknowledgement gives messages back, to be delivered again after a delay."""

from __future__ import annotations

from storage.disk.view import ReadView, WriteBatch
from storage.subscription.acknowledge import Item, is_trimmed, missing
from storage.subscription.delivered_window import UntouchedMessages
from storage.subscription.delivery import NOBODY, PENDING, Delivery
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log
from storage.topic.entry import MESSAGES
from storage.values.position import Position


def negative_acknowledge(
    opened: OpenSubscription[WriteBatch], items: list[Item], delay_ns: int, consumer_id: int = NOBODY
) -> list[Item]:
    """Make messages free and due after a delay; return the messages that were given back.

    Messages that are not in flight, such as acknowledged ones, stay as they are.

    Args:
        consumer_id: gives back only messages in flight at this consumer; NOBODY, for an operator, gives back all
            messages without a pending acknowledgement.

    Raises:
        MessageNotFound: nothing is given back.
    """
    batch, given_back, untouched = opened.view, list[Item](), UntouchedMessages(opened)
    for at, messages in items:
        delivery = opened.deliveries.find(at)
        _check_exists(opened, at, messages, delivery)
        if delivery is None:
            continue
        chosen = _returnable(delivery, consumer_id) & (messages or -1)
        taken = delivery.take(chosen)
        opened.deliveries.note_taken(taken, consumer_id)
        for part in untouched.uncount(at, taken, consumer_id):
            # A consumer names messages that its application has received; an operator cannot tell.
            delivery.give(part.freed(was_received=consumer_id != NOBODY, due_ns=batch.now_ns + delay_ns))
        opened.deliveries.put(delivery)
        if chosen:
            given_back.append((at, chosen))
    return given_back


def _check_exists(
    opened: OpenSubscription[ReadView], at: Position, messages: int, delivery: Delivery | None
) -> None:
    """See that an entry has the messages; an entry with a delivery need not be read."""
    if delivery is not None:
        count = delivery.count
    else:
        entry = log.read(opened.view, opened.topic_id, at)
        if entry is None and is_trimmed(opened, at):
            return
        count = entry.count if entry is not None and entry.kind == MESSAGES else 0
    if not count or messages >> count:
        raise missing(at)


def _returnable(delivery: Delivery, consumer_id: int) -> int:
    if consumer_id != NOBODY:
        return delivery.of(consumer_id)
    return delivery.known() & ~delivery.of(PENDING)
