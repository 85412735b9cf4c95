"""Positions and the states of a subscription's messages as numbers of stored messages: the scale of a drawing.

An entry is a batch of any size, so a drawing by entries shows 1 open message as large as 500 blocked ones. Running
counts in the log give the number of messages through a position without a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from storage.disk.view import ReadView
from storage.reports import backlog, unmet_delays
from storage.subscription import acked_ranges, cursor as cursors, delayed, delivery as deliveries
from storage.subscription.cursor import Cursor
from storage.subscription.isolation import bound
from storage.subscription.subscription import Subscription
from storage.topic import log
from storage.topic.open_topic import OpenTopic
from storage.topic.state import TopicState
from storage.txn import runs, uncommitted_entries
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

EXAMINED_MAX = 2000
"""Records of one kind that are examined for one subscription; what lies behind is drawn as its neighbourhood."""

RUNS_MAX = 100
"""Runs of one open transaction that are examined for one subscription."""


class Place(NamedTuple):
    """A position, and the number of stored messages through it, from the first ledger on."""

    position: Position
    messages: int


class Stretch(NamedTuple):
    """Neighbouring messages in one state: `acknowledged`, `pending`, `inFlight`, `delayed`, `ready` or `blocked`.

    `begin` and `end` are numbers of messages before the stretch, and through its end.
    """

    state: str
    begin: int
    end: int


class MessageScale:
    """The scale of one topic in a view."""

    def __init__(self, view: ReadView, topic_id: int, state: TopicState, kept: int) -> None:
        """Args:
        kept: messages of the ledgers that are still there.
        """
        self._view, self._topic_id, self._state = view, topic_id, state
        self._before = state.messages - kept
        self.total = kept

    def through(self, position: Position) -> int:
        """Return the messages through a position."""
        counted = log.messages_through(self._view, self._topic_id, self._state, position)
        return max(0, counted - self._before)

    def places(self, positions: Iterable[Position]) -> list[Place]:
        """Return the places of positions, and of the entries before them, in order."""
        marked = set()
        for position in positions:
            marked.add(Position(*position))
            if position.entry_id > 0:
                marked.add(Position(position.ledger_id, position.entry_id - 1))
        return [
            Place(position, self.through(position)) for position in sorted(marked) if position.entry_id >= 0
        ]

    def stretches(self, subscription: Subscription) -> list[Stretch]:
        """Return the states of all messages for a subscription, in the order of the log."""
        cursor = cursors.load(self._view, subscription.subscription_id)
        examined = sorted(set(self._examined(subscription)))
        painted, at = list[Stretch](), 0
        for begin, end, state in examined:
            if end <= at:
                continue
            painted += self._between(subscription, cursor, at, max(at, begin))
            painted.append(Stretch(state, max(at, begin), end))
            at = end
        painted += self._between(subscription, cursor, at, self.total)
        return list(_joined(painted))

    def _between(self, subscription: Subscription, cursor: Cursor, begin: int, end: int) -> Iterator[Stretch]:
        """The states of messages without a record of their own.

        With `--on-open skip` dispatch leaves between markDeletePosition and its read position only messages without a
        record that wait for their key.
        """
        covered = self.through(backlog.covered_whole(cursor))
        read = self.through(max(cursor.read, cursor.mark_delete))
        last = bound(
            subscription.level,
            self._state.max_read_position,
            self._state.last_confirmed_position,
            subscription.on_open,
        )
        limits = [("acknowledged", self.through(cursor.mark_delete)), ("pending", covered)]
        if subscription.skips:
            limits += [("ready", self.through(self._state.max_read)), ("blocked", read)]
        limits += [("ready", self.through(Position(*last))), ("blocked", self.total)]
        for state, limit in limits:
            if begin < min(limit, end):
                yield Stretch(state, begin, min(limit, end))
                begin = min(limit, end)

    def _examined(self, subscription: Subscription) -> Iterator[tuple[int, int, str]]:
        """The messages with a record of their own: begin, end, state."""
        view, topic_id, subscription_id = self._view, self._topic_id, subscription.subscription_id
        on_scale = Position(self._state.first_ledger, 0)
        for first, last, messages in acked_ranges.ranges(view, subscription_id)[:EXAMINED_MAX]:
            if first < on_scale:
                continue
            begin = log.stored(view, topic_id, first).messages_before - self._before
            if messages:
                yield from _bits(begin, int.from_bytes(messages, "big"), "acknowledged")
            else:
                yield begin, self.through(Position(first.ledger_id, last)), "acknowledged"
        for delivery in islice(deliveries.every(view, subscription_id, on_scale), EXAMINED_MAX):
            begin = log.stored(view, topic_id, delivery.at).messages_before - self._before
            yield from _bits(begin, delivery.in_flight(), "inFlight")
            yield from _bits(begin, delivery.of(deliveries.PENDING), "pending")
            yield from _bits(begin, delivery.of(deliveries.NOBODY), "ready")
        now_ms = view.clock.wall_ms()
        delayed_id = delayed.stored_under(subscription_id, cursors.load(view, subscription_id))
        for entry in islice(delayed.every(view, delayed_id), EXAMINED_MAX):
            begin, due = (
                log.stored(view, topic_id, entry.at).messages_before - self._before,
                entry.due_by(now_ms),
            )
            yield from _bits(begin, due, "ready")
            yield from _bits(begin, entry.messages() & ~due, "delayed")
        unmet = unmet_delays.behind(view, self._state, subscription, now_ms, EXAMINED_MAX)
        for logged, early in unmet:
            yield from _bits(logged.messages_before - self._before, early, "delayed")
        if not subscription.skips:
            return
        for txn, _ in uncommitted_entries.first_transactions(OpenTopic.load(view, topic_id), RUNS_MAX):
            for first, at in runs.ranges(view, topic_id, txn, RUNS_MAX):
                begin = log.stored(view, topic_id, first).messages_before - self._before
                yield begin, self.through(at), "blocked"


def _bits(begin: int, messages: int, state: str) -> Iterator[tuple[int, int, str]]:
    """The runs of set bits: begin, end, state."""
    while messages:
        first = (messages & -messages).bit_length() - 1
        ones = messages >> first
        length = (~ones & (ones + 1)).bit_length() - 1
        yield begin + first, begin + first + length, state
        messages &= ~(((1 << length) - 1) << first)


def _joined(stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """Join neighbouring stretches of the same state."""
    last: Stretch | None = None
    for stretch in stretches:
        if last is not None and last.state == stretch.state and last.end == stretch.begin:
            last = last._replace(end=stretch.end)
            continue
        if last is not None:
            yield last
        last = stretch
    if last is not None:
        yield last
