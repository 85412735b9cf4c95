"""Check the timed entries and the blocks of a topic against the log: invariant 23."""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.view import ReadView
from storage.topic.catalogue import Topic
from storage.topic.state import TopicState
from storage.txn import timed_entries
from storage.txn.timed_entries import TimedEntry
from storage.values.position import Position
from storage.verify.log import Log

Problem = Callable[[int, str], None]
"""Called with invariant and message."""


def check_timed(view: ReadView, topic: Topic, state: TopicState, log: Log, problem: Problem) -> None:
    """Check that exactly the entries with delivery times have records, and that blocks are the sums of records.

    Records of trimmed ledgers go with the remains of the entries.
    """
    first = Position(state.first_ledger, -1)
    noted = list(timed_entries.entries(view, topic.topic_id, first))
    expected = {
        entry.at: (entry.txn, timed_entries.due_of(entry.times))
        for entry in log.entries
        if entry.times is not None
    }
    for entry in noted:
        if expected.pop(entry.at, None) != (entry.txn, entry.due):
            problem(23, f"{entry.at} is noted with delivery times that its messages do not have")
    for at in expected:
        problem(23, f"{at} has delivery times, and is not noted with them")
    _check_blocks(view, topic, first, noted, problem)


def _check_blocks(
    view: ReadView, topic: Topic, first: Position, noted: list[TimedEntry], problem: Problem
) -> None:
    begin = 0
    for block in timed_entries.blocks(view, topic.topic_id, first):
        run = []
        while begin < len(noted) and noted[begin].at <= block.last:
            run.append(noted[begin])
            begin += 1
        # Of a block with trimmed entries, which no count asks for, the sums are not known any more.
        if block.first > first and (not run or timed_entries.sum_of(view, run) != block):
            problem(23, f"the block of delivery times up to {block.last} is not the sum of its entries")
