"""A partition of a topic: messages between two positions, read from the store.

A task that runs again gives the same rows. READ_COMMITTED: at or below an earlier maxReadPosition nothing changes.
READ_UNCOMMITTED: a transaction that was open when the read was planned is called open, whatever became of it since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.errors import TopicNotFound
from storage.subscription.isolation import IsolationLevel
from storage.values.names import short_topic_name
from storage.values.position import MessageId, Position
from storage.values.txn_state import TransactionState
from txnctl.spark.runtime.explained import explained
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.message_columns import Piece, record_batches
from txnctl.spark.source.partition import Partition

if TYPE_CHECKING:
    import pyarrow as pa

    from storage import Store


@dataclass(frozen=True)
class TopicRange(Partition):
    """See the module.

    Attributes:
        place: the store.
        topic, topic_id: full name; another id means that it was deleted and created again.
        after, through: positions; the first is not read and lies in the ledger of the first one that is, the second is
            the last one read.
        first_index: in the first entry, the batch index to begin at.
        stop_index: in the entry at `through`, the batch index to stop before; None for all of it.
        open_txns: transactions that count as open.
    """

    place: LocalStore
    topic: str
    topic_id: int
    after: Position
    through: Position
    level: IsolationLevel
    first_index: int = 0
    stop_index: int | None = None
    open_txns: frozenset[int] = frozenset()

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The messages as Arrow batches of this schema.

        Raises:
            StoreNotFound: the store is not on this host.
            StoreInvalid, TopicNotFound: it, or the topic, is another one than when the read was planned.
        """
        with explained(), self.place.opened() as store:
            self._check(store)
            yield from record_batches(self._pieces(store), short_topic_name(self.topic), schema)
            self._check(store)

    def _check(self, store: Store) -> None:
        (extent,) = store.reports.topic_extents([self.topic])
        if extent.topic_id != self.topic_id:
            raise recreated(self.topic)
        if extent.before.ledger_id > self.after.ledger_id:
            raise trimmed(self.topic, self.after)

    def _pieces(self, store: Store) -> Iterator[Piece]:
        start = MessageId(self.after.ledger_id, self.after.entry_id + 1, self.first_index)
        through, is_dirty = tuple(self.through), self.level is IsolationLevel.READ_UNCOMMITTED
        for entry in store.reader(self.topic, start=start, isolation_level=self.level).entries():
            at = (entry.ledger_id, entry.entry_id)
            if at > through:
                return
            if is_dirty and entry.txn in self.open_txns:
                entry.txn_state = TransactionState.OPEN
            stop = entry.count if at < through or self.stop_index is None else self.stop_index
            if entry.first_index < stop:
                yield Piece(entry, entry.first_index, min(stop, entry.count))


def recreated(topic: str) -> TopicNotFound:
    """The error for a topic of the same name that is not the one that was meant."""
    return TopicNotFound(
        f"topic {short_topic_name(topic)} was deleted and created again meanwhile",
        hint="Read it anew, from the beginning; a stream needs a new checkpoint and a new subscription.",
        topic=topic,
    )


def trimmed(topic: str, after: Position) -> TopicNotFound:
    """The error for messages that are not kept any more."""
    return TopicNotFound(
        f"what topic {short_topic_name(topic)} held after {after} is not kept any more",
        hint="A subscription keeps what a stream has still to read.",
        topic=topic,
    )
