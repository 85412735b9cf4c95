"""`--tail N` on the command line: where the newest N entries of a topic begin, or the newest N visible messages."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import IsolationLevel, Store
    from storage.values.position import Extreme, MessageId, Position

_FURTHER = 8
"""How much further back to look each time, where too few of the newest entries are visible."""


def newest_entries(store: Store, topic: str, count: int) -> Position | Extreme:
    """Where the last `count` entries begin: positions are dense within a ledger."""
    from storage.values.position import EARLIEST, Position

    for ledger in reversed(store.reports.topic_stats_internal(topic).ledgers):
        if ledger.entries >= count:
            return Position(ledger.ledger_id, ledger.entries - count)
        count -= ledger.entries
    return EARLIEST


def newest_messages(
    store: Store, topic: str, level: IsolationLevel, count: int
) -> Position | MessageId | Extreme:
    """Where the last `count` messages that are visible at the isolation level begin; all of them where fewer are.

    Markers, aborted messages and what an open transaction blocks are not counted, so the look goes back in steps.
    """
    from storage.values.position import EARLIEST, LATEST, MessageId

    if not count:
        return LATEST
    back = count
    while True:
        begin = newest_entries(store, topic, back)
        with store.reader(topic, start=begin, isolation_level=level) as reader:
            entries = [(entry.ledger_id, entry.entry_id, entry.count) for entry in reader.entries()]
        if begin is EARLIEST or sum(messages for _, _, messages in entries) >= count:
            break
        back *= _FURTHER
    for ledger_id, entry_id, messages in reversed(entries):
        if messages >= count:
            return MessageId(ledger_id, entry_id, messages - count)
        count -= messages
    return EARLIEST
