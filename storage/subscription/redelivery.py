"""Redelivery: a negative acknowledgement gives messages back, to be delivered again after a delay."""

from __future__ import annotations

from storage.disk.view import ReadView, WriteBatch
from storage.subscription import span
from storage.subscription.acknowledge import Item, is_trimmed, missing
from storage.subscription.delivered_window import UntouchedMessages
from storage.subscription.delivery import NOBODY, PENDING, Delivery
from storage.subscription.open_subscription import OpenSubscription
from storage.topic.compaction import compacted_view
from storage.topic.entry import MESSAGES
from storage.values.position import Position


def negative_acknowledge(
    opened: OpenSubscription[WriteBatch], items: list[Item], delay_ns: int, consumer_id: int = NOBODY
) -> list[Item]:
    """Make messages free and due after a delay; return the messages that were given back.

    Messages that are not in flight, such as acknowledged ones, stay unchanged.

    Args:
        consumer_id: gives back only messages in flight at this consumer; NOBODY, for an operator, gives back all
            messages without a pending acknowledgement.

    Raises:
        MessageNotFound: nothing is given back.
    """
    given_back, untouched = list[Item](), UntouchedMessages(opened)
    times_due: dict[Position, int] = {}

    def free(delivery: Delivery, messages: int) -> None:
        first = span.first_of(delivery.at)
        if first not in times_due:
            times_due[first] = opened.deliveries.due_ns(first, delay_ns)
        taken = delivery.take(messages)
        opened.deliveries.note_taken(taken, consumer_id)
        for part in untouched.uncount(delivery, taken, consumer_id):
            # A consumer names messages that its application has received; an operator cannot tell.
            delivery.give(part.freed(was_received=consumer_id != NOBODY, due_ns=times_due[first]))
        opened.deliveries.put(delivery)

    # A record that has room for further fates takes all its messages at once.
    in_spans, rest = opened.deliveries.split_by_span(
        items, lambda record: _returnable(record, consumer_id) if record.has_room else 0
    )
    for record, messages in in_spans:
        free(record, messages)
        given_back += [(at, span.of_entry(at, messages)) for at in span.entries(record.at, messages)]
    for at, messages in rest:
        delivery = opened.deliveries.find(at)
        _check_exists(opened, at, messages, delivery)
        if delivery is None:
            continue
        chosen = _returnable(delivery, consumer_id) & (messages or -1)
        free(delivery, chosen)
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
        entry = compacted_view.read_anywhere(opened.view, opened.topic_id, at)
        if entry is None and is_trimmed(opened, at):
            return
        count = entry.count if entry is not None and entry.kind == MESSAGES else 0
    if not count or messages >> count:
        raise missing(at)


def _returnable(delivery: Delivery, consumer_id: int) -> int:
    if consumer_id != NOBODY:
        return delivery.of(consumer_id)
    return delivery.known() & ~delivery.of(PENDING)
