"""Extents of topics at one instant: the bounds of reading in parallel, or piece by piece.

A READ_COMMITTED range at or below maxReadPosition never changes (invariant 4). A READ_UNCOMMITTED range is fixed by the
list of transactions that were open at that instant: a later reader treats the listed transactions as open, and every
further transaction as decided.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.limits import TOGETHER_ENTRIES_MAX
from storage.subscription.isolation import IsolationLevel, bound
from storage.topic import catalogue as topics, log, state, trim
from storage.topic.catalogue import Topic
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.entry import ABORT_MARKER, MESSAGES
from storage.topic.log import LedgerInfo
from storage.topic.state import TopicState
from storage.txn import aborted, uncommitted_entries
from storage.values.arguments import check_many
from storage.values.ledger_ids import is_between_lives
from storage.values.named_tuple import NamedTuple
from storage.values.names import chosen
from storage.values.position import Position, position_of


class Extent:
    """One topic.

    Attributes:
        topic: the full name; a topic that was deleted and created again has a new `topic_id`.
        before: the position before the first entry, `L:-1`.
        horizon: the end of the compacted view; None without one.
        before_compacted: the position before the first message of view and log.
        max_read, last_confirmed: maxReadPosition, lastConfirmedEntry.
        is_trimmed: whether entries were removed from the front.
        last_trimmed: the last ledger that was trimmed: after its end, nothing is missing. None if none was.
        messages_trimmed: in all.
        ledgers: in order, the open one last.
        open_txns: numbers of the open transactions with messages here.
    """

    __slots__ = (
        "before",
        "before_compacted",
        "horizon",
        "is_trimmed",
        "last_confirmed",
        "last_trimmed",
        "ledgers",
        "max_read",
        "messages_trimmed",
        "open_txns",
        "topic",
        "topic_id",
    )

    def __init__(self, view: ReadView, topic: Topic, topic_state: TopicState) -> None:
        self.topic = topic.full_name
        self.topic_id = topic.topic_id
        self.before = Position(topic_state.first_ledger, -1)
        horizon = compaction_state.horizon(view, topic.topic_id)
        self.horizon = None if horizon is None else Position(*horizon)
        self.before_compacted = Position(*compacted_view.before_first(view, topic.topic_id))
        self.max_read = topic_state.max_read_position
        self.last_confirmed = topic_state.last_confirmed_position
        self.is_trimmed = topic_state.bytes_trimmed > 0
        self.last_trimmed = trim.last_trimmed(view, topic.topic_id, topic_state)
        self.messages_trimmed = topic_state.messages_trimmed
        self.ledgers: Sequence[LedgerInfo] = log.ledgers(view, topic.topic_id, topic_state)
        self.open_txns = tuple(txn for txn, _ in uncommitted_entries.open_transactions(view, topic.topic_id))

    def has_lost(self, after: Position) -> bool:
        """Whether an entry after a position was trimmed."""
        last = self.last_trimmed
        return self.is_trimmed and after < self.before and (last is None or after < last.end)

    def first_after_other_life(self, position: Position) -> int | None:
        """The ledger with which the topic goes on behind a position that it never had; None for any other position.

        As `other_lives.check_start`, for a plan without the store.
        """
        if not 0 < position.ledger_id < self.ledgers[-1].ledger_id:
            return None
        ends = [] if self.last_trimmed is None else [self.last_trimmed.end]
        ends += [Position(ledger.ledger_id, ledger.entries - 1) for ledger in self.ledgers]
        number = bisect_right(ends, position.ledger_id, key=lambda end: end[0])
        following = ends[number][0]
        if not number:
            return None if self.is_trimmed or position <= self.before else following
        return following if is_between_lives(position, ends[number - 1], following) else None

    def begin_behind(self, after: Position) -> Position:
        """Where a read begins of what follows the last position that was read."""
        position = Position(after.ledger_id, after.entry_id + 1)
        following = self.first_after_other_life(position)
        return position if following is None else Position(following, 0)

    def lost_messages(self, after: Position) -> int:
        """The number of messages after a position that were trimmed, at most: of whole ledgers, or of all."""
        if not self.has_lost(after):
            return 0
        last = self.last_trimmed
        is_in_last = last is not None and after.ledger_id == last.end.ledger_id
        return last.messages if last is not None and is_in_last else self.messages_trimmed

    def bound(self, level: IsolationLevel) -> Position:
        """The last position that may be delivered to a reader of this level."""
        return Position(*bound(level, self.max_read, self.last_confirmed))


class Reached(NamedTuple):
    """A position, and the messages and bytes between the start of the walk and that position."""

    position: Position
    messages: int
    bytes: int


def of(connection: Connection, names: Sequence[str] | None) -> list[Extent]:
    """The extents of these topics, or of all, from one view.

    Raises:
        TopicNotFound, InvalidName
    """
    check_many("topics", names)
    with connection.view() as view:
        selected = topics.every(view) if names is None else [topics.get(view, name) for name in names]
        return [Extent(view, topic, state.load(view, topic.topic_id)) for topic in selected]


def reach(
    connection: Connection,
    name: str,
    after: Position,
    through: Position,
    messages: int | None,
    size: int | None,
) -> Reached:
    """Return the furthest position after `after` within a number of messages and bytes, in whole entries.

    Messages of aborted transactions count, because a reader reads and drops them. At least one entry is taken, so that
    an entry of any size lets the reader go on.

    Raises:
        TopicNotFound, InvalidName, InvalidPosition
    """
    after, through = position_of(after), position_of(through)
    with connection.view() as view:
        topic = topics.get(view, name)
        topic_state = state.load(view, topic.topic_id)
        through = min(through, topic_state.last_confirmed)
        if after >= through:
            return Reached(Position(*after), 0, 0)
        counted = log.counts_through(view, topic.topic_id, topic_state, after)
        limits = [
            (1 << 62) if limit is None else done + limit
            for done, limit in zip(counted, (messages, size), strict=True)
        ]

        def fits(position: Position) -> bool:
            reached = log.counts_through(view, topic.topic_id, topic_state, position)
            return reached[0] <= limits[0] and reached[1] <= limits[1]

        position = _furthest(log.ledgers(view, topic.topic_id, topic_state), after, through, fits)
        reached = log.counts_through(view, topic.topic_id, topic_state, position)
        return Reached(position, reached[0] - counted[0], reached[1] - counted[1])


def whole_transactions(
    connection: Connection, name: str, after: Position, end: Position, through: Position
) -> Position:
    """Move the end of a piece of the log to a position that cuts no transaction: the messages of each stay together.

    The piece grows up to `through` where that is enough, or else shrinks; with no such position in it, it is empty, as
    the transaction goes on behind an open one. Where the piece would have to grow by more than TOGETHER_ENTRIES_MAX
    entries, and cannot shrink, the transaction is cut.

    Args:
        after: the end of the piece before.
        end: the end that limits of size allow.
        through: the last position that may be read.

    Raises:
        TopicNotFound, InvalidName
    """
    if end <= after:
        return after
    spans, undecided = dict[int, _Span](), set[int]()
    reached, beyond = after, 0
    while reached < through and (reached < end or undecided) and beyond <= TOGETHER_ENTRIES_MAX:
        with connection.view() as view:
            entries = log.page(view, topics.get(view, name).topic_id, reached, through)
        if not entries:
            break
        for entry in entries:
            if entry.kind == MESSAGES and entry.txn:
                span = spans.setdefault(entry.txn, _Span(reached, entry.position))
                span.last = entry.position
                undecided.add(entry.txn)
            elif entry.txn:
                undecided.discard(entry.txn)
                if entry.kind == ABORT_MARKER:
                    spans.pop(entry.txn, None)
            reached = entry.position
            beyond += reached > end
            if beyond > TOGETHER_ENTRIES_MAX:
                break
    for txn in undecided:
        spans[txn].last = None
    begin, stop = _stretch_around(end, spans.values())
    if stop is not None:
        return stop
    return end if begin == after and beyond > TOGETHER_ENTRIES_MAX else begin


class _Span:
    """The messages of a transaction: the position before the first one, the first, and the last (None: not known)."""

    __slots__ = ("before", "first", "last")

    def __init__(self, before: Position, first: Position) -> None:
        self.before = before
        self.first = first
        self.last: Position | None = first


def _stretch_around(at: Position, spans: Iterable[_Span]) -> tuple[Position, Position | None]:
    """The overlapping transactions around a position: the position before them, and their end (None: not known).

    Both are `at` where it cuts no transaction.
    """
    begin, stop = at, Position(-1, -1)
    for span in sorted(spans, key=lambda span: span.first):
        if span.first > stop:
            if stop > at or span.first > at:
                break
            begin, stop = span.before, span.first
        if span.last is None:
            return begin, None
        stop = max(stop, span.last)
    return (begin, stop) if stop > at else (at, at)


def messages_between(
    connection: Connection,
    name: str,
    after: Position,
    through: Position,
    isolation_level: IsolationLevel | str,
) -> int:
    """Count the messages in (after, through] that are delivered to a reader of a level, without reading entries.

    Raises:
        TopicNotFound, InvalidName, InvalidPosition, InvalidValue
    """
    level = chosen(IsolationLevel, isolation_level, "isolation level")
    after, through = position_of(after), position_of(through)
    with connection.view() as view:
        topic = topics.get(view, name)
        topic_state = state.load(view, topic.topic_id)
        through = min(through, bound(level, topic_state.max_read, topic_state.last_confirmed))
        if after >= through:
            return 0
        first, last = (log.messages_through(view, topic.topic_id, topic_state, at) for at in (after, through))
        if level is IsolationLevel.READ_UNCOMMITTED:
            return last - first
        return last - first - aborted.messages_between(view, topic.topic_id, topic_state, after, through)


def _furthest(
    ledgers: Sequence[LedgerInfo],
    after: Position,
    through: Position,
    fits: Callable[[Position], bool],
) -> Position:
    """The last entry in (after, through] that fits; the first entry if none fits."""
    reached = after
    for ledger in ledgers:
        last = min(Position(ledger.ledger_id, ledger.entries - 1), through)
        if last <= reached:
            continue
        if fits(last):
            reached = last
            continue
        low = reached[1] + 1 if reached[0] == ledger.ledger_id else 0
        first, high = low, last[1]
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if fits(Position(ledger.ledger_id, middle)) else (low, middle)
        # `low` is the first entry that does not fit.
        if reached == after and low == first:
            return Position(ledger.ledger_id, low)
        return Position(ledger.ledger_id, low - 1) if low > first else Position(*reached)
    return Position(*reached)
