"""The messages that a read selects: by key, by position and by publish time. Pure.

Positions and times hold for whole entries, and are compared before a body is unpacked; keys are compared message by
message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from storage.values.position import Position
from storage.values.timestamps import TIME_MS_MAX
from txnctl.spark.source.key_selection import ALL_KEYS, KeySelection

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.reports.extents import Extent
    from storage.topic.entry import Entry
    from txnctl.spark.source.topic_plan import At, Span

_US_PER_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Interval:
    """Whole numbers from `low` to `high`, both included; None for no bound."""

    low: int | None = None
    high: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether every number is in it."""
        return self.low is None and self.high is None

    def has(self, number: int) -> bool:
        """Report whether a number is in the interval."""
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    def meets(self, low: int, high: int) -> bool:
        """Report whether a number from `low` to `high` is in the interval."""
        lowest = low if self.low is None else max(low, self.low)
        return lowest <= (high if self.high is None else min(high, self.high))

    def within(self, low: int | None, high: int | None) -> Interval:
        """Return the part of the interval between two further bounds."""
        lows = [bound for bound in (self.low, low) if bound is not None]
        highs = [bound for bound in (self.high, high) if bound is not None]
        return Interval(max(lows, default=None), min(highs, default=None))


ALL_NUMBERS: Final = Interval()


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """Selected messages: all conditions hold together.

    Attributes:
        keys: the keys of selected messages.
        ledgers, entries: their ledger ids and entry ids.
        published_us: their publish times, in microseconds since 1970.
    """

    keys: KeySelection = ALL_KEYS
    ledgers: Interval = ALL_NUMBERS
    entries: Interval = ALL_NUMBERS
    published_us: Interval = ALL_NUMBERS

    @property
    def is_all(self) -> bool:
        """Whether every message is selected."""
        return self.keys.is_all and self.is_all_entries

    @property
    def is_all_entries(self) -> bool:
        """Whether messages are selected by key alone."""
        return self.ledgers.is_all and self.entries.is_all and self.published_us.is_all

    def between(self, column: str, low: int | None, high: int | None) -> MessageSelection:
        """Select the messages with a value of a column between two bounds that were selected so far."""
        if column == "ledgerId":
            return replace(self, ledgers=self.ledgers.within(low, high))
        if column == "entryId":
            return replace(self, entries=self.entries.within(low, high))
        assert column == "publishTime", column
        return replace(self, published_us=self.published_us.within(low, high))

    def of_entry(self, entry: Entry, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the selected messages from index `start` to before `stop` of an entry, as stretches of indexes."""
        if not self.is_all_entries and not self._has_entry(entry):
            return
        if self.keys.is_all:
            yield start, stop
            return
        keys = entry.keys
        indexes = [] if keys is None else self.keys.indexes(keys, start, stop)
        while indexes:
            first = indexes[0]
            length = next((n for n, index in enumerate(indexes) if index != first + n), len(indexes))
            yield first, first + length
            indexes = indexes[length:]

    def _has_entry(self, entry: Entry) -> bool:
        return (
            self.ledgers.has(entry.ledger_id)
            and self.entries.has(entry.entry_id)
            and self.published_us.has(entry.publish_time * _US_PER_MS)
        )

    def narrow(self, extent: Extent, span: Span, first_at: At) -> Span:
        """Return the part of a span of a topic that may hold selected messages; an empty one where there are none.

        Only the lower bound of publish times narrows: the wall clock may have been set back, so that an entry far
        behind may have been published before the upper bound.
        """
        after, through = span
        if self.keys.is_empty:
            return after, after
        low, high = self.ledgers.low, self.ledgers.high
        is_single = low is not None and low == high
        if low is not None:
            entry = (self.entries.low or 0) if is_single else 0
            after = max(after, Position(low, max(entry, 0) - 1))
        if high is not None:
            ledgers = [kept for kept in extent.ledgers if kept.ledger_id <= high]
            if not ledgers:
                return span[0], span[0]
            ledger = ledgers[-1]
            entry = ledger.entries - 1
            if is_single and ledger.ledger_id == high and self.entries.high is not None:
                entry = min(entry, self.entries.high)
            through = min(through, Position(ledger.ledger_id, entry))
        if self.published_us.low is not None and self.published_us.low > 0 and after < through:
            first = first_at(extent.topic, min(-(-self.published_us.low // _US_PER_MS), TIME_MS_MAX))
            after = max(after, Position(first.ledger_id, first.entry_id - 1))
        return (after, through) if after < through else (span[0], span[0])

    def columns(self) -> list[str]:
        """Return the columns that `row_mask` needs."""
        keys = [] if self.keys.is_all else ["key"]
        return keys + [name for name, interval in self._intervals().items() if not interval.is_all]

    def _intervals(self) -> dict[str, Interval]:
        return {"ledgerId": self.ledgers, "entryId": self.entries, "publishTime": self.published_us}

    def meets_statistics(self, statistics: dict[str, Any]) -> bool:
        """Report whether a row group of a Parquet file may hold selected messages.

        Args:
            statistics: of the row group, by column.
        """
        for name, interval in self._intervals().items():
            known = statistics.get(name)
            if interval.is_all or known is None or not known.has_min_max:
                continue
            low, high = (
                (value if isinstance(value, int) else microseconds(value)) for value in (known.min, known.max)
            )
            if not interval.meets(low, high):
                return False
        return True

    def row_mask(self, batch: pa.RecordBatch) -> Any:
        """Return a boolean array: the selected rows of a batch with the columns of `columns`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        mask = pa.repeat(pa.scalar(True), batch.num_rows)
        for name, interval in self._intervals().items():
            if interval.is_all:
                continue
            numbers = pc.cast(batch[name], pa.int64())
            for bound, compare in ((interval.low, pc.greater_equal), (interval.high, pc.less_equal)):
                if bound is not None:
                    mask = pc.and_(mask, compare(numbers, pa.scalar(_in_int64(bound), pa.int64())))
        if not self.keys.is_all:
            mask = pc.and_(mask, _key_mask(self.keys, batch["key"]))
        return mask


EVERYTHING: Final = MessageSelection()


def of_keys(keys: KeySelection) -> MessageSelection:
    """Return the selection of messages by key alone."""
    return EVERYTHING if keys.is_all else replace(EVERYTHING, keys=keys)


def microseconds(time: Any) -> int:
    """Return a time with a zone in microseconds since 1970."""
    from datetime import UTC, datetime, timedelta

    return int((time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


def _in_int64(number: int) -> int:
    return min(max(number, -(1 << 63)), (1 << 63) - 1)


def _key_mask(keys: KeySelection, column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if keys.keys is not None:
        return pc.is_in(column, value_set=pa.array(sorted(keys.keys), pa.binary()))
    mask = pc.greater_equal(column, pa.scalar(keys.start, pa.binary()))
    if keys.end is not None:
        mask = pc.and_(mask, pc.less(column, pa.scalar(keys.end, pa.binary())))
    return pc.fill_null(mask, False)
