"""Export of entries as rows of a Parquet file.

The columns are the columns of a message (`schemas`), rows are in the order of positions, and `txnState` is the state at
export time. Markers are left out; messages of aborted transactions are included, so that both isolation levels read the
same file. Memory is bounded by one row group, however large the file.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from storage import IsolationLevel, Store, TransactionState
from storage.values.names import short_topic_name
from txnctl.spark import schemas
from txnctl.spark.ledger_files.manifest import FileContent, Span
from txnctl.spark.source.entry_slice import EntrySlice
from txnctl.spark.source.message_columns import record_batches

if TYPE_CHECKING:
    from storage.topic.entry import Entry
    from txnctl.spark.ledger_files.directory import HashingFile

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""A row group ends at this size, or at `ROW_GROUP_ROWS`."""

_REPEATING = ["topic", "key", "txnId", "txnState"]
_WITH_STATISTICS = ["ledgerId", "entryId", "publishTime", "txnId", "txnState"]


class TopicSpan(NamedTuple):
    """The entries of a topic to export.

    Attributes:
        span: entries after its first position, up to and including its second.
        open_txns: transactions exported as open, whatever their outcome since the plan.
    """

    topic: str
    span: Span
    open_txns: Container[int] = ()


def export_range(
    store: Store,
    topic_span: TopicSpan,
    sink: HashingFile,
    progress: Callable[[int], None] | None = None,
) -> FileContent:
    """Write the messages of a range into a file.

    Args:
        progress: called with the number of messages of each row group.

    Raises:
        TopicNotFound, CorruptStore, OSError
    """
    schema = schemas.arrow_columns(schemas.MESSAGE_TYPES)
    rows = aborted = row_groups = 0
    # The writer does not close the sink: the caller reads the checksum first.
    with pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"), schema, compression="zstd", use_dictionary=_REPEATING,
        write_statistics=_WITH_STATISTICS, sorting_columns=[pq.SortingColumn(3), pq.SortingColumn(4)],
    ) as writer:  # fmt: skip
        for entries in _row_groups(store, topic_span.topic, topic_span.span):
            for entry in entries:
                if entry.txn in topic_span.open_txns:
                    entry.txn_state = TransactionState.OPEN
                elif entry.txn_state is TransactionState.ABORTED:
                    aborted += entry.count
            slices = [EntrySlice(entry, 0, entry.count) for entry in entries]
            table = pa.Table.from_batches(
                record_batches(slices, short_topic_name(topic_span.topic), schema), schema
            )
            writer.write_table(table, row_group_size=max(len(table), 1))
            row_groups += 1
            rows += len(table)
            if progress is not None:
                progress(len(table))
    return FileContent(rows, aborted, row_groups, sink.size, sink.sha256)


def _row_groups(store: Store, topic: str, span: Span) -> Iterator[list[Entry]]:
    after, through = span
    (extent,) = store.reports.topic_extents([topic])
    start = extent.begin_behind(after)
    group: list[Entry] = []
    rows = size = 0
    with store.reader(topic, start=start, isolation_level=IsolationLevel.READ_UNCOMMITTED) as reader:
        for entry in reader.entries():
            if entry.position > through:
                break
            group.append(entry)
            rows, size = rows + entry.count, size + entry.size
            if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
                yield group
                group, rows, size = [], 0, 0
    if group:
        yield group
