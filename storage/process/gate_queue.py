"""The queue of the writer gate: threads of all processes that wait, in the order of their arrival.

Each waiting thread has a slot of the wake page with a ticket and a word to sleep on. The lowest ticket is first in the
queue. A process owns a slot by a kernel lock on a byte of the lock file, so that a dead process is told from a living
one. The process that leaves the gate wakes the first; no later one tries the gate meanwhile, so none is overtaken.

A first that does not come is no obstacle:

- A dead one is found by its slot, which is free, and loses its ticket at once.
- A stopped or slow one is passed over by the process that has slept to the end of a timeout, saw no pass meanwhile and
  finds the gate free: it enters, and takes the ticket of the first away. So that costs one timeout, once. The process
  passed over puts its old ticket back when it looks again, and is first again.

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


class Place:
    """The place of one waiting thread: its slot, its ticket, and what it has seen at its last look.

    Attributes:
        seen: the word to sleep on.
        passes: the word that changes when a waiting process passes.
        rank: the number of places before this one.
    """

    __slots__ = ("passes", "rank", "seen", "slot", "ticket")

    def __init__(self, slot: int, ticket: int, seen: int) -> None:
        self.slot = slot
        self.ticket = ticket
        self.seen = seen
        self.passes = self.rank = 0


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

    def join(self) -> Place | None:
        """Take the last place; None if every slot is in use."""
        slot = self._take_slot()
        if slot is None:
            return None
        words, numbers = self._page.words, self._page.tickets
        assert numbers is not None, "the page is mapped"
        ticket = max(numbers[LAST_TICKET], *self._tickets(), 0) + 1
        if ticket > _TICKET_MAX:
            # A damaged page. A place that loses its ticket puts it back at its next look.
            for each in range(SLOTS):
                self._drop(each)
            ticket = 1
        numbers[LAST_TICKET] = ticket
        place = Place(slot, ticket, words[SLOT_WORD + slot])
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

    def _show(self, place: Place) -> None:
        """Write the ticket to the page, where others may have taken it away."""
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
        """The slot with the lowest ticket; `_NOBODY` if nobody waits."""
        waiting = [(ticket, slot) for slot, ticket in enumerate(self._tickets()) if ticket]
        return min(waiting)[1] if waiting else _NOBODY

    def _first_living(self) -> int:
        """The first, after the tickets of dead ones before it were taken away."""
        while True:
            first = self._first()
            if first == _NOBODY or first in self._owned or self._locks.is_taken(FIRST_SLOT_BYTE + first):
                return first
            self._drop(first)

    def _drop(self, slot: int) -> None:
        numbers = self._page.tickets
        assert numbers is not None, "the page is mapped"
        numbers[SLOT_TICKET + slot] = 0

    def drop(self, place: Place) -> None:
        """Take the ticket of a place away, which is the first no more."""
        self._drop(place.slot)

    def is_first(self, place: Place) -> bool:
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
        mine = (place.ticket, place.slot)
        place.rank = sum(ticket > 0 and (ticket, slot) < mine for slot, ticket in enumerate(self._tickets()))
        return not place.rank

    def sleep(self, place: Place, seconds: float) -> bool:
        """Sleep until this place is woken, or for its patience; False after a sleep in which nobody passed the gate.

        The second of the queue notices a first that does not come, the third two that do not come, and so on: so the
        patience grows with the rank. A place that was woken since the last look of `is_first` does not sleep.
        """
        page = self._page
        address = page.word_address(SLOT_WORD + place.slot)
        patience_s = PATIENCE_S * min(max(place.rank, 1), _RANKS_MAX)
        is_woken = self._clock.sleep_on_word(address, place.seen, min(seconds, patience_s))
        return is_woken or page.words[PASSES] != place.passes

    def pass_over_first(self) -> None:
        """Take the ticket of the first away, which has not come; called inside the gate."""
        first = self._first()
        if first != _NOBODY:
            self._drop(first)

    def leave(self, place: Place, *, is_inside: bool) -> None:
        """Give the place back, inside the gate or without having passed.

        A place that is given back unused may have been woken: it wakes the next one.
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
        """Wake the first in the queue, after the gate was left."""
        page = self._page
        while (first := self._first()) != _NOBODY:
            if page.wake(SLOT_WORD + first, 1) or self._first_living() == first:
                return
