"""Objects of two stores do not mix: the one rule of every call that is given an object of a store.

A transaction, and the object that the transaction is used with, belong to one incarnation of one store, through one
handle or two. A message is acknowledged on the topic that the message was read from. A bare id, or text, means the
store and topic of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import InvalidValue

if TYPE_CHECKING:
    from storage.disk.connection import Connection
    from storage.topic.message import Message, MessageOrigin
    from storage.values.store_incarnation import StoreIncarnation


def check_same_store(ours: Connection, theirs: Connection) -> None:
    """See that a transaction begun through a connection may be used through this one.

    Raises:
        InvalidValue
        StoreClosed: one of the connections is closed.
    """
    if theirs is not ours and theirs.incarnation != ours.incarnation:
        raise _mixed("the transaction", theirs.incarnation, ours.incarnation)


def check_same_topic(ours: MessageOrigin, message: Message) -> None:
    """See that a message is of the topic on which the message is acknowledged.

    Raises:
        InvalidValue
    """
    theirs = message.origin
    if theirs is ours or theirs == ours or theirs.store is None:
        return
    if ours.store is not None and theirs.store != ours.store:
        raise _mixed(f"message {message.message_id} of topic {theirs.topic}", theirs.store, ours.store)
    other = f"topic {theirs.topic}" if theirs.topic != ours.topic else "a deleted topic of the same name"
    raise InvalidValue(
        f"message {message.message_id} belongs to {other}, not to topic {ours.topic}",
        hint="Acknowledge a message with a consumer of its topic.",
        topic=ours.topic,
    )


def _mixed(noun: str, theirs: StoreIncarnation, ours: StoreIncarnation) -> InvalidValue:
    other = f"the store {theirs.path}" if theirs.path != ours.path else "a former store at the same path"
    return InvalidValue(
        f"{noun} belongs to {other}, not to the store {ours.path}",
        hint="Use objects of one store together.",
        store=ours.path,
    )
