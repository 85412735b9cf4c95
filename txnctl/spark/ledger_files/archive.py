"""The archive of a topic: offloaded ledgers that were trimmed from the store, and join the ledgers that are left.

A read with `offloadPath` plans over both: its topic begins with the first ledger of the archive. Ledgers of the archive
are read from their files alone; the store's own ledgers are offloaded or exported as ever. Offloaded ledgers that do
not join the store's first one, as others in between were trimmed without being offloaded, are no part of a read.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from storage import IsolationLevel, TransactionState
from storage.reports.extents import Extent, Reached
from storage.topic.log import LedgerInfo
from storage.topic.trim import LastTrimmed
from storage.values.ledger_ids import may_begin_life
from storage.values.position import Position
from txnctl.spark.ledger_files.directory import TopicDirectory
from txnctl.spark.ledger_files.former_files import PlacedFile, placed_files
from txnctl.spark.ledger_files.layout import LEDGERS
from txnctl.spark.ledger_files.manifest import TopicIdentity
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from storage import Store
    from txnctl.spark.source.topic_plan import At

_END_OF_LEDGER = (1 << 62) - 1
"""Stands for the last entry of a ledger whose length nobody knows any more."""


class Archive:
    """The offloaded ledgers of one topic before the first ledger of the store.

    Attributes:
        ledgers: in order, without a gap, the last one just before the first ledger of the store.
    """

    def __init__(
        self, files: Sequence[PlacedFile], first_kept: int, last_of_lives: Container[int] = ()
    ) -> None:
        """Args:
        last_of_lives: ledgers behind which the first one of a later incarnation of the store follows.
        """
        known = {ledger.ledger_id: (ledger, placed) for placed in files for ledger in placed.file.ledgers}
        self.ledgers: list[LedgerInfo] = []
        self._files: list[PlacedFile] = []
        following = first_kept
        for number in sorted(known, reverse=True):
            if number >= following:
                continue
            if number != following - 1 and not (may_begin_life(following) and number in last_of_lives):
                break
            ledger, placed = known[number]
            file = placed.file
            size = file.content.size * ledger.messages // max(file.rows, 1)
            info = LedgerInfo(number, ledger.entries, (0, ledger.closed_ms), ledger.messages, max(size, 1))
            self.ledgers.insert(0, info)
            if placed not in self._files:
                self._files.insert(0, placed)
            following = number

    @classmethod
    def read(cls, store: Store, extent: Extent, root: Root) -> Archive:
        """Read the manifest of a topic.

        Raises:
            OffloadInvalid, UnknownFormat
        """
        identity = TopicIdentity(store.identity, extent.topic_id, extent.topic)
        directory = TopicDirectory(root, identity)
        # Nothing is missing of a topic that was never trimmed, so its manifest need not be read.
        if not extent.is_trimmed:
            return cls((), extent.before.ledger_id)
        files = placed_files(store, extent, directory, directory.manifest()[1].files)
        last_of_lives = {ancestor.last for ancestor in store.reports.topic_descent(extent.topic)}
        return cls(files, extent.before.ledger_id, last_of_lives)

    def extend(self, extent: Extent) -> Extent:
        """The topic with the ledgers of the archive before the store's."""
        if not self.ledgers:
            return extent
        whole = copy(extent)
        first = self.ledgers[0].ledger_id
        whole.before = Position(first, -1)
        whole.ledgers = [*self.ledgers, *extent.ledgers]
        whole.messages_trimmed -= sum(ledger.messages for ledger in self.ledgers)
        whole.is_trimmed = whole.messages_trimmed > 0
        end, newest_ms = Position(first - 1, _END_OF_LEDGER), self.ledgers[0].closed_ms or 0
        last = LastTrimmed(end, whole.messages_trimmed, newest_ms) if whole.is_trimmed else None
        whole.last_trimmed = last
        return whole

    def first_at(self, time_ms: int) -> Position | None:
        """The first position of the archive published at or after a time; None if there is none.

        Raises:
            OffloadInvalid: a file is missing.
        """
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        for directory, file, _ in self._files:
            with directory.open_file(LEDGERS, file.name) as source:
                parquet = pq.ParquetFile(source)
                for group in range(parquet.metadata.num_row_groups):
                    rows = parquet.read_row_group(group, ["ledgerId", "entryId", "publishTime"])
                    published_us = pc.cast(rows["publishTime"], "int64")
                    is_later = pc.greater_equal(published_us, time_ms * 1000)
                    is_shared = pc.less_equal(rows["ledgerId"], file.last.ledger_id)
                    later = rows.filter(pc.and_(is_later, is_shared)).slice(0, 1).to_pylist()
                    if later:
                        return Position(later[0]["ledgerId"], later[0]["entryId"])
        return None

    def count_after(self, after: Position, level: IsolationLevel) -> int:
        """Count the messages of the archive behind a position that a reader of a level receives.

        Of a file that is read in part, the columns of positions and states are read.

        Raises:
            OffloadInvalid: a file is missing.
        """
        is_committed = level is IsolationLevel.READ_COMMITTED
        files = [placed for placed in self._files if placed.file.last > after]
        return sum(self._count_in(placed, after, is_committed) for placed in files)

    def _count_in(self, placed: PlacedFile, after: Position, is_committed: bool) -> int:
        directory, file, is_part = placed
        stop = min(self.ledgers[-1].ledger_id, file.last.ledger_id)
        is_whole = (
            stop == file.last.ledger_id and self.ledgers[0].ledger_id <= file.after.ledger_id and not is_part
        )
        if is_whole and file.after >= after:
            return file.rows - (file.aborted if is_committed else 0)
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        with directory.open_file(LEDGERS, file.name) as source:
            rows = pq.read_table(source, columns=["ledgerId", "entryId", "txnState"])
        ledgers, entries = rows["ledgerId"], rows["entryId"]
        later = pc.and_(pc.equal(ledgers, after.ledger_id), pc.greater(entries, after.entry_id))
        begin = max(after.ledger_id, self.ledgers[0].ledger_id - 1)
        is_counted = pc.or_(later, pc.and_(pc.greater(ledgers, begin), pc.less_equal(ledgers, stop)))
        if is_committed:
            is_aborted = pc.fill_null(pc.equal(rows["txnState"], TransactionState.ABORTED.value), False)
            is_counted = pc.and_(is_counted, pc.invert(is_aborted))
        return pc.sum(pc.cast(is_counted, "int64")).as_py() or 0

    def reach(
        self, after: Position, through: Position, messages: int | None, size: int | None
    ) -> Reached | None:
        """Return the furthest position of the archive after `after` within about a number of messages and bytes.

        At least one entry is taken. None where `after` is at the end of the archive.
        """
        reached, taken = after, [0, 0]
        for ledger in self.ledgers:
            first = after.entry_id + 1 if ledger.ledger_id == after.ledger_id else 0
            count = ledger.entries - first
            if ledger.ledger_id < after.ledger_id or count <= 0:
                continue
            room = count
            for limit, done, total in zip(
                (messages, size), taken, (ledger.messages, ledger.bytes), strict=True
            ):
                if limit is not None:
                    room = min(room, max(limit - done, 0) * ledger.entries // max(total, 1))
            room = min(max(room, 1), count) if reached == after else min(room, count)
            if not room:
                break
            reached = Position(ledger.ledger_id, first + room - 1)
            taken[0] += ledger.messages * room // ledger.entries
            taken[1] += ledger.bytes * room // ledger.entries
            if room < count:
                break
        if reached == after:
            return None
        return Reached(min(reached, through), *taken)


class Archives:
    """The archives of the topics of a read, by full name.

    Args:
        root: of the offloaded files; None where the read has none.
    """

    def __init__(self, root: Root | None) -> None:
        self._root = root
        self._archives: dict[str, tuple[tuple[int, int], Archive]] = {}

    def extend(self, store: Store, extents: list[Extent]) -> list[Extent]:
        """The topics with their archives; a manifest is read again once the store has trimmed more.

        Raises:
            OffloadInvalid, UnknownFormat
        """
        if self._root is None:
            return extents
        return [self._of(store, extent, self._root).extend(extent) for extent in extents]

    def _of(self, store: Store, extent: Extent, root: Root) -> Archive:
        key = (extent.topic_id, extent.before.ledger_id)
        known = self._archives.get(extent.topic)
        if known is None or known[0] != key:
            archive = Archive.read(store, extent, root)
            known = self._archives[extent.topic] = key, archive
        return known[1]

    def first_at(self, in_store: At) -> At:
        """Find a publish time in the archive first, and then in the store."""

        def first(topic: str, time_ms: int) -> Position:
            archived = self._archives[topic][1].first_at(time_ms) if topic in self._archives else None
            return in_store(topic, time_ms) if archived is None else archived

        return first

    def count_after(self, topic: str, after: Position, level: IsolationLevel) -> int:
        """As `Archive.count_after`; 0 where the topic has no archive."""
        return self._archives[topic][1].count_after(after, level) if topic in self._archives else 0

    def reach(
        self, topic: str, after: Position, through: Position, messages: int | None, size: int | None
    ) -> Reached | None:
        """As `Archive.reach`; None also where the topic has no archive."""
        if topic not in self._archives:
            return None
        return self._archives[topic][1].reach(after, through, messages, size)
