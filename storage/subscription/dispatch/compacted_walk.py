"""The part of a walk that reads the compacted view: messages of the view, and gaps in between.

Messages compacted away are acknowledged in passing, a whole gap at once: the cost is that of the view, not of the log.
Where the log was trimmed a gap has no entries, and nothing is noted.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.view import ReadView
from storage.subscription import delivery as deliveries
from storage.subscription.cursor import Cursor
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log, written_positions
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.compaction.compacted_entry import CompactedEntry
from storage.topic.entry import Entry
from storage.topic.open_topic import OpenTopic
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position

Run = tuple[int, int, int]
"""Neighbouring entries of a ledger: ledger, first entry, last entry."""


class CompactedStep(NamedTuple):
    """A gap, and the next entry of the view.

    Attributes:
        gap: runs of entries of which the view has nothing, and no delivery is recorded.
        judged: such entries with a delivery, each to be passed over by itself.
        entry: None behind the last message of the view.
        reached: the position reached with this step.
    """

    gap: list[Run]
    judged: list[Entry]
    entry: CompactedEntry | None
    reached: Position


def steps(
    topic: OpenTopic[ReadView], opened: OpenSubscription[ReadView], after: Position, through: Position
) -> Iterator[CompactedStep]:
    """Walk the view from a position on, up to its horizon, and at most up to the bound of the subscription."""
    state = compaction_state.load(topic.view, topic.topic_id)
    if state is None or state.horizon is None:
        return
    end = min(state.horizon, through)
    while after < end:
        page = compacted_view.page(topic.view, topic.topic_id, state, after, end)
        for entry in page:
            yield CompactedStep(*_gap(topic, opened, after, entry.position), entry, entry.position)
            after = entry.position
        if not page:
            beyond = Position(end[0], end[1] + 1)
            yield CompactedStep(*_gap(topic, opened, after, beyond), None, end)
            return


def _gap(
    topic: OpenTopic[ReadView], opened: OpenSubscription[ReadView], after: Position, before: Position
) -> tuple[list[Run], list[Entry]]:
    """The entries of the log strictly between two positions: in runs, and one by one where a delivery is recorded."""
    runs, judged = list[Run](), list[Entry]()
    for whole_run in _runs(topic, after, before):
        run = _uncovered(opened.cursor, whole_run)
        if run is None:
            continue
        ledger_id, first, last = run
        for entry_id in _with_delivery(opened, run):
            if first < entry_id:
                runs.append((ledger_id, first, entry_id - 1))
            judged.append(log.stored(topic.view, topic.topic_id, Position(ledger_id, entry_id)))
            first = entry_id + 1
        if first <= last:
            runs.append((ledger_id, first, last))
    return runs, judged


def _runs(topic: OpenTopic[ReadView], after: Position, before: Position) -> Iterator[Run]:
    view, topic_id = topic.view, topic.topic_id
    if before[0] < topic.state.first_ledger:
        return
    first = written_positions.following(view, topic_id, after)
    while first is not None and first < before:
        last = written_positions.preceding(view, topic_id, min(before, Position(first[0] + 1, 0)))
        assert last is not None, "an entry was written at the first position"
        yield first[0], first[1], last[1]
        first = written_positions.following(view, topic_id, last)


def _uncovered(cursor: Cursor, run: Run) -> Run | None:
    """A run without the entries that a pending cumulative acknowledgement covers whole, as these go with the commit."""
    ledger_id, first, last = run
    pending = cursor.pending_cumulative
    if pending is None or (ledger_id, first) >= pending[1:3]:
        return run
    if (ledger_id, last) < pending[1:3]:
        return None
    return ledger_id, pending[2], last


def _with_delivery(opened: OpenSubscription[ReadView], run: Run) -> list[int]:
    """The entries of a run with a delivery, or partly covered by a pending cumulative acknowledgement."""
    ledger_id, first, last = run
    entry_ids = set[int]()
    for delivery in deliveries.every(opened.view, opened.subscription_id, Position(ledger_id, first)):
        if delivery.at > (ledger_id, last):
            break
        entry_ids.add(delivery.at[1])
    pending = opened.cursor.pending_cumulative
    if pending is not None and pending[1] == ledger_id and first <= pending[2] <= last:
        entry_ids.add(pending[2])
    return sorted(entry_ids)
