"""Compare a write with the recorded write of the same id, pure: a repetition, or an error.

People choose ids, and choose one twice by mistake. So the row of a write describes the target, the number of rows and
the content, and a job may add a fingerprint of the input. All of these have to agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import AlreadyExists
from storage.values.names import short_topic_name

if TYPE_CHECKING:
    from txnctl.spark.sink.progress import BatchRecord


def check_same(write_id: str, stored: BatchRecord, asked: BatchRecord) -> None:
    """Check that a write repeats the recorded write. The content of a row of txnctl 0.1.0 cannot be compared.

    Raises:
        AlreadyExists: the id was used for a different write.
    """
    difference = find_difference(stored, asked)
    if difference is None:
        return
    raise AlreadyExists(
        f"write id {write_id} was used for a different write: {difference}; it stored {describe(stored)}.",
        hint="Nothing was stored. Give this write an id of its own.",
        write_id=write_id,
        txn_id=stored.txn,
        at=stored.at,
    )


def find_difference(stored: BatchRecord, asked: BatchRecord) -> str | None:
    """The first difference of two writes in words; None if the rows agree."""
    if stored.table != asked.table or set(stored.topics) != set(asked.topics):
        return f"this one is for {_target(asked)}"
    for topic, topic_id in asked.topics.items():
        if stored.topics[topic] and stored.topics[topic] != topic_id:
            return f"topic {short_topic_name(topic)} was deleted since"
    if None not in (stored.fingerprint, asked.fingerprint) and stored.fingerprint != asked.fingerprint:
        return "its input or options were different"
    if stored.rows != asked.rows:
        return f"this one has {_rows(asked.rows)}"
    if None not in (stored.content, asked.content) and stored.content != asked.content:
        return "its rows were different"
    return None


def describe(stored: BatchRecord) -> str:
    """Rows, target, transaction and time of a recorded write."""
    return f"{_rows(stored.rows)} in {_target(stored)}, by transaction {stored.txn} at {stored.at}"


def _target(record: BatchRecord) -> str:
    if record.table is not None:
        return f"table {record.table}"
    names = [short_topic_name(topic) for topic in record.topics]
    return (
        ", ".join(names[:3]) + (f" and {len(names) - 3} more topics" if len(names) > 3 else "") or "no topic"
    )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
