"""The result of `produce`: counts, the first and last message, the producer."""

from __future__ import annotations

from typing import NamedTuple

from storage.json_form import Flat
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import AccessMode, MessageId


class PrintedIds(NamedTuple):
    """The messages stored, where ids are printed."""

    message_ids: list[MessageId]


class Produced(NamedTuple):
    """The result of one run."""

    topic: str
    name: str
    messages: int
    duplicates: int
    skipped: int
    first_message_id: MessageId | None
    last_message_id: MessageId | None
    producer_name: str | None
    access_mode: AccessMode
    topic_epoch: int | None
    last_sequence_id: int | None
    txn_id: str | None
    ids: Flat[PrintedIds | None]


FIELDS = fields_of(
    Produced,
    {
        "topic": Help("The topic's full name.", kind="id"),
        "name": Help("The same, short in the default namespace.", kind="id"),
        "messages": "Messages stored.",
        "duplicates": "Messages left out: their sequence ids are stored already.",
        "skipped": "Lines that --on-error skip left out.",
        "first_message_id": Help("The first message stored; null if there is none.", kind="id"),
        "last_message_id": Help("The last message stored; null if there is none.", kind="id"),
        "producer_name": "The producer's name; null if nothing was sent.",
        "access_mode": Help("Shared, Exclusive, WaitForExclusive or ExclusiveWithFencing.", kind="text"),
        "topic_epoch": "The epoch of the messages; null while the topic has had no exclusive producer.",
        "last_sequence_id": "The sequence id of the last message stored; null if there is none.",
        "txn_id": Help("The transaction they were sent in, or null.", kind="id"),
        "message_ids": "With --print-ids: the id of every message stored.",
    },
)
