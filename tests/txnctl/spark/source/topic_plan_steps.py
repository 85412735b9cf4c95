"""Steps that the tests of topic plan share."""

from __future__ import annotations

from hypothesis import strategies as st

from storage.reports.extents import Extent
from storage.topic.log import LedgerInfo
from storage.values.position import Position
from txnctl.spark import options
from txnctl.spark.source.local_store import LocalStore

PLACE = LocalStore("/s", "id-1")


def extent(name: str, entries: list[int], size: int = 1000, first: int = 1, blocked: int = 0) -> Extent:
    """A topic with ledgers of so many entries, of which the last few are behind an open transaction."""
    made = Extent.__new__(Extent)
    made.topic, made.topic_id, made.is_trimmed = f"persistent://public/default/{name}", 7, False
    made.before, made.last_trimmed, made.messages_trimmed = Position(first, -1), None, 0
    made.ledgers = [
        LedgerInfo(first + number, count, (0, None), count, count * size)
        for number, count in enumerate(entries)
    ]
    made.last_confirmed = Position(first + len(entries) - 1, entries[-1] - 1)
    positions = [made.before, *positions_of(made)]
    made.max_read = positions[-1 - min(blocked, len(positions) - 1)]
    made.open_txns = (3, 9) if blocked else ()
    return made


def positions_of(topic: Extent) -> list[Position]:
    return [Position(each.ledger_id, number) for each in topic.ledgers for number in range(each.entries)]


def at(topic: str, time_ms: int) -> Position:
    """Every entry e of ledger l was published at l * 1000 + e."""
    return Position(time_ms // 1000, time_ms % 1000)


def read(**given_options: str) -> options.TopicReadOptions:
    return options.topic_read({"path": "/s", "topic": "a", **given_options})


ledgers = st.lists(st.integers(1, 30), min_size=1, max_size=6)
