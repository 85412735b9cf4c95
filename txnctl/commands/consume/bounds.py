"""Where `consume` begins and ends: positions, message ids and times as places in a topic."""

from __future__ import annotations

from storage.json_form import to_json
from storage.values.position import EARLIEST, LATEST, Extreme, MessageId, Position
from txnctl.cli.value_types import AtTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Store
    from storage.topic.entry import Entry

    Place = Position | MessageId | Extreme


def start_at(store: Store, topic: str, wanted: Place | AtTime) -> Place:
    """Where to begin; a time is the first entry stored then or later."""
    if not isinstance(wanted, AtTime):
        return wanted
    from storage import IsolationLevel

    ledgers = to_json(store.reports.topic_stats_internal(topic))["ledgers"]
    # A ledger closed before that time holds nothing of it.
    first = next(each for each in ledgers if each["closedMs"] is None or each["closedMs"] >= wanted.time_ms)
    start = Position(first["ledgerId"], 0)
    with store.reader(topic, start=start, isolation_level=IsolationLevel.READ_UNCOMMITTED) as reader:
        for entry in reader.entries():
            if entry.publish_time >= wanted.time_ms:
                return entry.position
    return LATEST


class End:
    """The last message to read: an entry, a message in one, or a time."""

    __slots__ = ("_last", "_until_ms")

    def __init__(self, wanted: Place | AtTime | None) -> None:
        self._until_ms: int | None = None
        self._last: tuple[int, int, int] | None = None
        if isinstance(wanted, AtTime):
            self._until_ms = wanted.time_ms
        elif isinstance(wanted, MessageId):
            self._last = (wanted.ledger_id, wanted.entry_id, wanted.batch_index)
        elif isinstance(wanted, Position):
            self._last = (wanted.ledger_id, wanted.entry_id, -1)
        elif wanted is EARLIEST:
            self._last = (0, -1, -1)

    def stop_in(self, entry: Entry) -> int:
        """How many messages of this entry are not beyond the end: all, some of the first, or 0."""
        if self._until_ms is not None:
            return entry.count if entry.publish_time <= self._until_ms else 0
        if self._last is None or entry.position < self._last[:2]:
            return entry.count
        if entry.position > self._last[:2]:
            return 0
        return entry.count if self._last[2] < 0 else min(entry.count, self._last[2] + 1)

    def is_reached(self, entry: Entry) -> bool:
        """Whether nothing after this entry is wanted."""
        return self._last is not None and entry.position >= self._last[:2]
