"""Messages of an acknowledgement, given as messages, batches or message ids, grouped by entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from storage.client.same_store import check_same_topic
from storage.subscription.acknowledge import Item, add_item, item_of
from storage.topic.message import Message, MessageOrigin
from storage.topic.message_batch import MessageBatch
from storage.values import position
from storage.values.position import LateMessageId, MessageId, Position

Acknowledged = Message | MessageId | LateMessageId | Sequence[Message | MessageId | LateMessageId]


def items_of(messages: Acknowledged, origin: MessageOrigin) -> list[Item]:
    """The entries of the messages, each with the messages of the entry.

    Args:
        origin: of the messages that the subscription delivers.

    Raises:
        InvalidPosition
        InvalidValue: a message of a different topic or store.
    """
    if isinstance(messages, MessageBatch):
        if messages and messages.origin is not origin:
            check_same_topic(origin, messages[0])
        return [(piece.entry.position, piece.messages) for piece in messages.pieces]
    # Texts and positions are sequences too, and no lists of messages.
    is_many = isinstance(messages, Sequence) and not isinstance(messages, MessageId | Position | str | bytes)
    many: Any = messages if is_many else [messages]
    items: dict[Position, int] = {}
    for message in many:
        if isinstance(message, Message):
            if message.origin is not origin:
                check_same_topic(origin, message)
            add_item(items, message.entry.position, 1 << message.index)
        else:
            add_item(items, *item_of(message))
    return list(items.items())


def message_id_of(message: object, origin: MessageOrigin) -> MessageId:
    """The id of a message, given as the message or as the id.

    Raises:
        InvalidPosition
        InvalidValue: a message of a different topic or store.
    """
    if isinstance(message, Message):
        check_same_topic(origin, message)
        return message.message_id
    return position.message_id_of(message)
