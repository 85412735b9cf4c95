"""The settle job without Spark: the same batches, the same rule and the same notes, in this process.

Batches end where those of the stream on Spark end (`TopicProgress`), the subscription is the stream's, and each batch
is the same transaction (`BatchSettler`). So both engines may take turns on one topic and table, after a kill too.
Neither PySpark nor PyArrow is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from storage import MessageId
from txnctl.pipelines.request import legs_of
from txnctl.pipelines.settler import AccountSum
from txnctl.spark.source.topic_progress import TopicProgress
from txnctl.spark.source.topic_range import TopicRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from storage import Store
    from storage.values.position import Position
    from txnctl.pipelines.request import RequestForm
    from txnctl.pipelines.settler import BatchSettler
    from txnctl.spark.options import TopicStreamOptions
    from txnctl.spark.source.partition import Partition


def parse_options(options: Mapping[str, str]) -> TopicStreamOptions:
    """Parse the options of `format("txnctl")` that both engines settle with.

    Raises:
        InvalidValue, InvalidName, InvalidPosition
    """
    from txnctl.spark.options import topic_stream

    return topic_stream({**options, "isolationLevel": "READ_COMMITTED", "wholeTransactions": "true"})


def backlog(options: TopicStreamOptions) -> int:
    """Count the messages that a settlement would read now.

    Raises:
        TopicNotFound, InvalidPosition, InvalidValue, MessageNotFound
    """
    with TopicProgress(options) as progress:
        return progress.backlog()


def settle_backlog(
    settler: BatchSettler, store: Store, options: TopicStreamOptions, seconds: float | None = None
) -> None:
    """Settle the messages present, batch by batch.

    Args:
        seconds: take no further batch after so long; None settles all.

    Raises:
        BadInput, Conflict: as `BatchSettler.settle`.
        TopicNotFound, InvalidPosition, InvalidValue, MessageNotFound
    """
    clock = store.connection.clock
    until = None if seconds is None else clock.boot_ns() + int(seconds * 1e9)
    with TopicProgress(options, consumer_name=f"settle-{os.getpid()}") as progress:
        target, start = progress.latest(), progress.begin()
        batch_id = 0
        while until is None or clock.boot_ns() < until:
            end = progress.advance(start, options.max_messages, options.max_bytes, target)
            if end == start:
                return
            _settle_batch(settler, store, progress, (start, end), batch_id)
            start, batch_id = end, batch_id + 1


def _settle_batch(
    settler: BatchSettler,
    store: Store,
    progress: TopicProgress,
    span: tuple[dict[str, Position], dict[str, Position]],
    batch_id: int,
) -> None:
    ranges = progress.ranges(*span, slots=1)
    settler.settle(lambda after: sums_after(store, ranges, after, settler.form), batch_id)


def sums_after(
    store: Store, ranges: Sequence[Partition], after: MessageId | None, form: RequestForm
) -> Iterator[AccountSum]:
    """Compute the sums of the messages of some ranges after a position."""
    sums: dict[str, list[int]] = {}
    skipped, first, last = 0, None, None
    for message, key, value, _ in messages_of(store, ranges):
        if after is not None and message <= after:
            continue
        last = message
        legs = legs_of(key, value, form)
        if legs is None:
            skipped, first = skipped + 1, first or message
            continue
        for index, (account, hellers) in enumerate(legs):
            amounts = sums.setdefault(account, [0, 0])
            amounts[0] += hellers
            amounts[1] += not index
    if last is None:
        return
    if first is not None:
        yield AccountSum(None, 0, 0, skipped, first, last)
    for account, (hellers, requests) in sums.items():
        yield AccountSum(account, hellers, requests, 0, None, last)


def messages_of(
    store: Store, ranges: Iterable[Partition]
) -> Iterator[tuple[MessageId, bytes | None, bytes | None, int]]:
    """Read the messages of ranges of the log: id, key, value, and event time or else publish time, in milliseconds.

    Raises:
        TopicNotFound, MessageNotFound
    """
    for part in ranges:
        assert isinstance(part, TopicRange), "neither a compacted view nor files are read without Spark"
        for entry, start, stop in part.slices(store):
            keys, values, times, published = entry.keys, entry.values, entry.event_times, entry.publish_time
            for index in range(start, stop):
                event = None if times is None else times[index]
                yield (
                    entry.message_id(index),
                    None if keys is None else keys[index],
                    values[index],
                    published if event is None else event,
                )
