"""The queue of the writer gate: threads of all processes that wait, in the order of their arrival.

Each waiting thread has a slot of the wake page with a ticket and a word to sleep on. The lowest ticket is first in the
queue. A process owns a slot by a lock on a byte of the lock file, which the kernel drops with the process. Leaving the
gate wakes the first place; later places do not try the gate meanwhile.

A first place whose process does not come is no obstacle:

- The slot of a dead process is free, and the ticket is removed at once.
- A stopped or slow process is passed over. A waiter enters out of turn after a sleep to the end of a timeout without a
  pass, if the gate is free, and removes the ticket of the first place. The price is one timeout, once. The process
  passed over shows the old ticket again at the next look, and is first again.

A thread that leaves the gate without a commit keeps its ticket for its next passes (`WriterGate.enter`): the reads and
the commit of a transaction are one turn, and not as many as there are passes.

Tickets and flags are hints (`wake_page.py`): two equal tickets are ordered by slot, and a lost change costs a timeout.
"""

from __future__ import annotations

import threading
from typing import Final

from storage.process.byte_locks import ByteLocks
from storage.process.clock import Clock
from storage.process.wake_page import (
    HIGH,
    LAST_TICKET,
    PASSES,
    QUEUED,
    SLOT_TICKET,
    SLOT_WORD,
    SLOTS,
    WakePage,
)

FIRST_SLOT_BYTE: Final = 1 << 16
"""Byte of the lock file whose lock says that slot 0 has a living owner."""

PATIENCE_S: Final = 0.02
"""Longest sleep of the first two: the price of a killed holder of the gate, and of a stopped process in the queue."""

_RANKS_MAX: Final = 8

_TICKET_MAX: Final = 1 << 62
_NOBODY: Final = -1


class QueuePlace:
    """The place of a waiting thread: slot, ticket, and what the last look has shown.

    Attributes:
        seen: the word to sleep on.
        passes: the word that changes when a waiting process passes.
        rank: the number of places before this one.
        is_called: whether the last sleep ended because the gate was left to this place.
    """

    __slots__ = ("is_called", "passes", "rank", "seen", "slot", "ticket")

    def __init__(self, slot: int, ticket: int, seen: int) -> None:
        self.slot = slot
        self.ticket = ticket
        self.seen = seen
        self.passes = self.rank = 0
        self.is_called = False


class GateQueue:
    """The queue of one store as one process sees it. The page is mapped in every call."""

    __slots__ = ("_claiming", "_clock", "_locks", "_owned", "_page", "_spare")

    def __init__(self, page: WakePage, locks: ByteLocks, clock: Clock) -> None:
        self._page = page
        self._locks = locks
        self._clock = clock
        self._owned: set[int] = set()
        self._spare: list[int] = []
        self._claiming = threading.Lock()

    def join(self, kept_ticket: int = 0) -> QueuePlace | None:
        """Take the last place, or the place of a ticket that was kept; None if every slot is in use."""
        slot = self._take_slot()
        if slot is None:
            return None
        words, numbers = self._page.words, self._page.tickets
        assert numbers is not None, "the page is mapped"
        ticket = max(numbers[LAST_TICKET], *self._tickets(), 0) + 1
        if ticket > _TICKET_MAX:
            # A damaged page. Places that lose their tickets here show them again at the next look.
            for number in range(SLOTS):
                self._drop(number)
            ticket, kept_ticket = 1, 0
        if kept_ticket:
            ticket = kept_ticket
        else:
            numbers[LAST_TICKET] = ticket
        place = QueuePlace(slot, ticket, words[SLOT_WORD + slot])
        self._show(place)
        self._first_living()
        return place

    def _take_slot(self) -> int | None:
        try:
            return self._spare.pop()
        except IndexError:
            pass
        with self._claiming:
            for slot in range(SLOTS):
                if slot not in self._owned and self._locks.take_exclusive(FIRST_SLOT_BYTE + slot):
                    self._owned.add(slot)
                    return slot
        return None

    def _show(self, place: QueuePlace) -> None:
        """Write the ticket to the page, from which a pass may have removed the ticket."""
        words, numbers = self._page.words, self._page.tickets
        assert numbers is not None, "the page is mapped"
        numbers[SLOT_TICKET + place.slot] = place.ticket
        if words[HIGH] <= place.slot:
            words[HIGH] = place.slot + 1  # type: ignore[index]
        words[QUEUED] = 1  # type: ignore[index]

    def _tickets(self) -> list[int]:
        numbers = self._page.tickets
        assert numbers is not None, "the page is mapped"
        return numbers[SLOT_TICKET : SLOT_TICKET + min(self._page.words[HIGH], SLOTS)].tolist()

    def _first(self) -> int:
        """The slot with the lowest ticket; `_NOBODY` for an empty queue."""
        waiting = [(ticket, slot) for slot, ticket in enumerate(self._tickets()) if ticket]
        return min(waiting)[1] if waiting else _NOBODY

    def _first_living(self) -> int:
        """The first slot with a living owner; tickets of dead processes before are removed."""
        while True:
            first = self._first()
            if first == _NOBODY or first in self._owned or self._locks.is_taken(FIRST_SLOT_BYTE + first):
                return first
            self._drop(first)

    def _drop(self, slot: int) -> None:
        numbers = self._page.tickets
        assert numbers is not None, "the page is mapped"
        numbers[SLOT_TICKET + slot] = 0

    def drop(self, place: QueuePlace) -> None:
        """Remove the ticket of a place from the page."""
        self._drop(place.slot)

    def is_first(self, place: QueuePlace) -> bool:
        """Whether a place is the first in the queue. A place that was passed over is taken again."""
        words, numbers = self._page.words, self._page.tickets
        assert numbers is not None, "the page is mapped"
        place.seen, place.passes = words[SLOT_WORD + place.slot], words[PASSES]
        if (
            numbers[SLOT_TICKET + place.slot] != place.ticket
            or not words[QUEUED]
            or words[HIGH] <= place.slot
        ):
            self._show(place)
        own = (place.ticket, place.slot)
        place.rank = sum(ticket > 0 and (ticket, slot) < own for slot, ticket in enumerate(self._tickets()))
        return not place.rank

    def sleep(self, place: QueuePlace, seconds: float) -> bool:
        """Sleep until this place is woken, or for its patience; False after a sleep in which nobody passed the gate.

        The second of the queue notices a first that does not come, the third two that do not come, and so on: so the
        patience grows with the rank. A place that was woken since the last look of `is_first` does not sleep.
        """
        page = self._page
        address = page.word_address(SLOT_WORD + place.slot)
        patience_s = PATIENCE_S * min(max(place.rank, 1), _RANKS_MAX)
        is_woken = self._clock.sleep_on_word(address, place.seen, min(seconds, patience_s))
        place.is_called = page.words[SLOT_WORD + place.slot] != place.seen
        return is_woken or page.words[PASSES] != place.passes

    def pass_over_first(self) -> None:
        """Remove the ticket of the first place, whose process has not come; called inside the gate."""
        first = self._first()
        if first != _NOBODY:
            self._drop(first)

    def leave(self, place: QueuePlace, *, is_inside: bool) -> None:
        """Give the place back, inside the gate or without having passed.

        An unused place may have been woken, so the next place is woken in its stead.
        """
        self.drop(place)
        self._spare.append(place.slot)
        words = self._page.words
        if is_inside:
            words[PASSES] = (words[PASSES] + 1) & 0xFFFFFFFF  # type: ignore[index]
            # Reset before the look: a ticket that comes later sets the flag behind it.
            words[QUEUED] = 0  # type: ignore[index]
            if any(self._tickets()):
                words[QUEUED] = 1  # type: ignore[index]
        else:
            self.wake_first()

    def wake_first(self) -> None:
        """Wake the thread of the first place, after the gate was left."""
        page = self._page
        while (first := self._first()) != _NOBODY:
            if page.wake(SLOT_WORD + first, 1) or self._first_living() == first:
                return
