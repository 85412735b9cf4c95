"""The result of one walk of dispatch: messages to deliver, and notes on the rest. Nothing of it is recorded yet."""

from __future__ import annotations

from storage.limits import PASSED_OVER_KEPT
from storage.subscription.delivery import Delivery
from storage.topic.entry import Entry
from storage.topic.message_batch import Piece
from storage.values.position import Position

WHOLE = 0
"""Among passed entries: every message of the entry, or a marker."""


class Selection:
    """See the module.

    Attributes:
        read: the position that the walk has reached.
        dispatched: the messages to deliver; at most one value for each entry.
        own: the deliveries to be changed that are records of their own, and in no span.
        passed: entries to pass over for good: ledger, entry, number of messages, the messages (WHOLE: all).
        gaps: runs of entries to pass over for good, because the compacted view has nothing of them: ledger, first
            entry, last entry.
        held: messages to hold back now, because their key is blocked or the room is full.
        delayed: messages to pass before their delivery time, by due time, with their delivery.
        delay_records: the number of due times in `delayed`, over all entries.
        due: messages passed before, whose time has come and which were examined.
        is_late: whether a message was examined whose delivery time may have come since later ones were delivered.
        exhausted: messages for the dead-letter topic, or to be dropped there.
        skipped: open transactions whose entries the walk skipped.
        behind: committed messages blocked behind a skipped transaction: transaction, entry, number of messages, the
            messages.
        unblocked: messages that were blocked before and are examined now: transaction, entry, the messages.
        examined: ended transactions, each with the position up to which skipped entries are examined.
        ended: ended transactions of which everything is examined.
        markers: transactions whose markers the walk has passed, skipped or not.
        is_cut: whether the walk stopped at a marker, or among messages that it holds back, to go on there after the
            selection is recorded.
    """

    __slots__ = (
        "behind",
        "delay_records",
        "delayed",
        "dispatched",
        "due",
        "ended",
        "examined",
        "exhausted",
        "gaps",
        "held",
        "is_cut",
        "is_late",
        "markers",
        "own",
        "passed",
        "read",
        "skipped",
        "unblocked",
    )  # fmt: skip

    def __init__(self, read: Position) -> None:
        self.read = read
        self.dispatched: list[Piece] = []
        self.own: dict[Position, Delivery] = {}
        self.passed: list[tuple[int, int, int, int]] = []
        self.gaps: list[tuple[int, int, int]] = []
        self.held: list[tuple[Delivery, int]] = []
        self.delayed: list[tuple[Delivery, dict[int, int]]] = []
        self.delay_records = 0
        self.due: list[tuple[Position, int]] = []
        self.exhausted: list[tuple[Entry, Delivery, int]] = []
        self.skipped: dict[int, None] = {}
        self.behind: list[tuple[int, Position, int, int]] = []
        self.unblocked: list[tuple[int, Position, int]] = []
        self.examined: dict[int, Position] = {}
        self.ended: list[int] = []
        self.markers: list[int] = []
        self.is_cut = self.is_late = False

    def delay(self, delivery: Delivery, early: dict[int, int]) -> int:
        """Pass messages of an entry before their delivery time; return them as one set."""
        self.delayed.append((delivery, early))
        self.delay_records += len(early)
        return sum(early.values())

    @property
    def changes(self) -> int:
        """About the number of records that the selection changes besides deliveries."""
        changes = (
            len(self.passed)
            + len(self.gaps)
            + len(self.held)
            + len(self.behind)
            + len(self.unblocked)
            + len(self.skipped)
        )
        return changes + len(self.due) + len(self.delayed)

    @property
    def is_worth_recording(self) -> bool:
        """Whether to record the selection. Entries that were only skipped are skipped again by the next walk."""
        return bool(
            self.dispatched or self.exhausted or self.passed or self.gaps or self.behind or self.ended or self.is_cut
            or self.delayed or self.due or len(self.skipped) >= PASSED_OVER_KEPT
        )  # fmt: skip
