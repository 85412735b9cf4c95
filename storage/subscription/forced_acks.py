"""Acknowledge messages for the sake of a limit: a ledger that goes although they are not acknowledged, or their age.

Committed messages that the subscription had not acknowledged are counted. Messages with a pending acknowledgement are
left alone: a hard limit aborts their transactions first, and the time to live waits for the end. Invariants 15 and 19.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from storage.disk.codec import key1
from storage.disk.schema import ACKS
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import delivery as deliveries, lost_runs, message_set, pending_ack, run_acks
from storage.subscription.dispatch import skipped_txns
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import log
from storage.topic.entry import MESSAGES, Entry
from storage.txn import record as records, uncommitted_entries
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_state import TransactionState


class Forced(NamedTuple):
    """The effects of a step.

    Attributes:
        position: reached.
        messages: committed messages newly acknowledged.
        entries: examined.
        txns: the transactions of these messages.
        is_gathering: runs behind the position are being gathered, and another step goes on.
    """

    position: Position
    messages: int
    entries: int
    txns: set[int]
    is_gathering: bool = False


class _Passed(NamedTuple):
    """An entry to be acknowledged, of `size` messages."""

    at: Position
    size: int
    txn: int
    is_marker: bool
    is_committed: bool


def acknowledge(
    opened: OpenSubscription[WriteBatch],
    after: Position,
    through: Position,
    entries_max: int,
    rest_max: int | None = None,
) -> Forced:
    """Acknowledge the entries after one position and up to a second, except pending messages.

    Every transaction with messages there is decided.

    Args:
        entries_max: entries to examine at most.
        rest_max: entries behind them, of the same transactions, that `acknowledge_rest` is to acknowledge at most,
            unless one transaction has more.
    """
    cursor = opened.cursor
    after = max(after, cursor.mark_delete)
    passed = _entries(opened, islice(log.scan(opened.view, opened.topic_id, after, through), entries_max))
    if not passed:
        # An empty ledger, or entries trimmed away: the rest of the way holds nothing.
        if after == cursor.mark_delete:
            opened.acks.acknowledge_through(through)
        return Forced(max(after, through), 0, 0, set())
    is_gathering = False
    if rest_max is not None:
        passed, is_gathering = _cut(opened, passed, rest_max)
    if not passed:
        return Forced(after, 0, 0, set(), is_gathering)
    last = passed[-1].at
    if after == cursor.mark_delete and not _is_pending(opened, last):
        counts = _acknowledge_all(opened, passed)
    else:
        counts = [_acknowledge_one(opened, entry) for entry in passed]
        opened.acks.advance()
    _examine_again(opened)
    txns = {entry.txn for entry, count in zip(passed, counts, strict=True) if entry.txn and count}
    return Forced(last, sum(counts), len(passed), txns, is_gathering)


def acknowledge_rest(opened: OpenSubscription[WriteBatch], txns: set[int], after: Position) -> int:
    """Acknowledge the messages of committed transactions behind a position; return the number.

    A subscription that loses a message of a transaction gets no later one: a transaction is not torn.
    """
    messages = 0
    for txn in sorted(txns):
        gathered = lost_runs.rest(opened.view, opened.topic_id, txn, after)
        messages += run_acks.acknowledge(opened, gathered)
    if messages:
        opened.acks.advance()
        _examine_again(opened)
    return messages


def _cut(
    opened: OpenSubscription[WriteBatch], passed: list[_Passed], rest_max: int
) -> tuple[list[_Passed], bool]:
    """The first of these entries, whose transactions have at most so many entries behind them, or those of one.

    The second value says whether the entries end before a transaction with runs that are still to be gathered.
    """
    room, known, last = rest_max, set[int](), passed[-1].at
    for number, entry in enumerate(passed):
        if entry.txn in known or not (entry.txn and entry.is_committed):
            continue
        part = uncommitted_entries.part_of(opened.view, entry.txn, opened.topic_id)
        if part is not None and part.last > last:
            room -= part.entries
        if room < 0 and known:
            return passed[:number], False
        if not lost_runs.has_rest(opened.view, opened.topic_id, entry.txn, last):
            return passed[:number], True
        known.add(entry.txn)
    return passed, False


def _examine_again(opened: OpenSubscription[WriteBatch]) -> None:
    """Let dispatch meet skipped transactions again from markDeletePosition on, as after a change of on-open."""
    if opened.cursor.skipped_txns:
        skipped_txns.clear(opened)
        opened.delayed.clear()
        opened.cursor.read = opened.cursor.mark_delete


def _entries(opened: OpenSubscription[ReadView], entries: Iterable[Entry]) -> list[_Passed]:
    states: dict[int, bool] = {0: True}
    passed = []
    for entry in entries:
        if entry.txn not in states:
            states[entry.txn] = records.state_of(opened.view, entry.txn) is TransactionState.COMMITTED
        is_marker = entry.kind != MESSAGES
        is_committed = not is_marker and states[entry.txn]
        passed.append(_Passed(entry.position, entry.count, entry.txn, is_marker, is_committed))
    return passed


def _is_pending(opened: OpenSubscription[ReadView], last: Position) -> bool:
    """Whether anything is pending up to an entry."""
    return pending_ack.is_any_through(opened, last)


def _acknowledge_all(opened: OpenSubscription[WriteBatch], passed: list[_Passed]) -> list[int]:
    """Acknowledge everything up to the last of these entries, the first ones after markDeletePosition.

    Returns:
        For each entry, the committed messages that were not acknowledged.
    """
    counts = [entry.size if entry.is_committed else 0 for entry in passed]
    if opened.view.first(ACKS, key1(opened.subscription_id)) is not None:
        counts = [
            count - opened.acks.of(entry.at, entry.size).bit_count() if count else 0
            for entry, count in zip(passed, counts, strict=True)
        ]
    opened.deliveries.settle_through(passed[-1].at)
    opened.acks.acknowledge_through(passed[-1].at)
    opened.acks.advance()
    return counts


def _acknowledge_one(opened: OpenSubscription[WriteBatch], entry: _Passed) -> int:
    """Acknowledge the messages of an entry that are not pending, or a marker; return the committed ones."""
    if entry.is_marker:
        opened.acks.pass_marker(entry.at)
        return 0
    at, count = entry.at, entry.size
    covered = pending_ack.covered(opened.cursor, at, count)
    delivery = opened.deliveries.find(at)
    pending = covered | (delivery.of(deliveries.PENDING) if delivery is not None else 0)
    free = message_set.everything(count) & ~opened.acks.of(at, count) & ~pending
    if not free:
        return 0
    opened.acks.acknowledge(at, count, free)
    opened.deliveries.settle(at, free)
    return free.bit_count() if entry.is_committed else 0
