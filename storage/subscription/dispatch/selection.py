"""What a walk of dispatch found: what to hand out, and what to note of the rest. Nothing of it is recorded yet."""

from __future__ import annotations

from storage.limits import PASSED_OVER_KEPT
from storage.subscription.delivery import Delivery
from storage.topic.entry import Entry

At = tuple[int, int]

WHOLE = 0
"""Among what was passed: every message of the entry, or a marker."""


class HandOut:
    """Messages of one entry for a consumer: which, and how often each was handed out before."""

    __slots__ = ("delivery", "entry", "messages", "times")

    def __init__(self, entry: Entry, delivery: Delivery, messages: int, times: dict[int, int]) -> None:
        self.entry = entry
        self.delivery = delivery
        self.messages = messages
        self.times = times


class Selection:
    """What a walk found.

    Attributes:
        read: how far it came.
        hand_outs: what to hand out; at most one of each entry.
        passed: what to pass over for good: ledger, entry, messages of the entry, which (WHOLE: all).
        held: what nobody is handed now, because its key is held or the room is full.
        exhausted: what goes to the dead-letter topic.
        awaits: transactions of which it passed entries over.
        behind: committed messages that wait behind one of them: transaction, entry, messages of the entry, which.
        let_go: such messages of before that it has looked at: transaction, entry, which.
        taken: transactions that have ended: how far it has looked at what was passed over for them.
        ended: those of them that are done with.
        markers: transactions whose markers it has passed, awaited or not.
        is_cut: whether it stopped at a marker, to go on from there when this is recorded.
    """

    __slots__ = (
        "awaits",
        "behind",
        "ended",
        "exhausted",
        "hand_outs",
        "held",
        "is_cut",
        "let_go",
        "markers",
        "passed",
        "read",
        "taken",
    )  # fmt: skip

    def __init__(self, read: At) -> None:
        self.read = read
        self.hand_outs: list[HandOut] = []
        self.passed: list[tuple[int, int, int, int]] = []
        self.held: list[tuple[Delivery, int]] = []
        self.exhausted: list[tuple[Entry, Delivery, int]] = []
        self.awaits: dict[int, None] = {}
        self.behind: list[tuple[int, At, int, int]] = []
        self.let_go: list[tuple[int, At, int]] = []
        self.taken: dict[int, At] = {}
        self.ended: list[int] = []
        self.markers: list[int] = []
        self.is_cut = False

    @property
    def changes(self) -> int:
        """About how many records it changes that are no hand-outs."""
        return len(self.passed) + len(self.held) + len(self.behind) + len(self.let_go) + len(self.awaits)

    @property
    def is_worth_recording(self) -> bool:
        """Whether something comes of it. What was only passed over the next walk passes over as well."""
        return bool(
            self.hand_outs or self.exhausted or self.passed or self.behind or self.ended or self.is_cut
            or len(self.awaits) >= PASSED_OVER_KEPT
        )  # fmt: skip
