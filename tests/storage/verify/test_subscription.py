"""Subscription: `storage/verify/subscription.py`."""

from __future__ import annotations

from collections.abc import Callable

from storage import Store
from storage.disk.codec import key3, pack
from storage.disk.schema import (
    ACKS,
    CONSUMERS,
    DELIVERIES,
)
from storage.disk.view import WriteBatch
from storage.subscription import cursor as cursors
from storage.subscription.cursor import Cursor
from tests.storage.damage import Break, damage
from tests.storage.verify.verify_steps import SUBSCRIPTION, add, remove_first


def with_cursor(change: Callable[[Cursor], None]) -> Break:
    def run(batch: WriteBatch) -> None:
        cursor = cursors.load(batch, SUBSCRIPTION)
        change(cursor)

    return run


class TestSubscriptions:
    """Cursors, deliveries, classes."""

    def test_a_count_of_released_entries_that_is_off(self, written: Store) -> None:
        """Dispatch would not look at them (invariant 23)."""
        assert 23 in {invariant for invariant, _ in damage(written, with_cursor(add("released")))}

    def test_a_count_of_consumers_that_is_off(self, written: Store) -> None:
        """Each would take too large or too small a share of the messages (invariant 23)."""
        found = damage(written, with_cursor(lambda cursor: setattr(cursor, "consumers", 77)))
        assert 23 in {invariant for invariant, _ in found}

    def test_more_messages_in_the_audit_trail_than_were_lost_or_expired(self, written: Store) -> None:
        """The next record of the trail would have a negative number (invariant 23)."""
        for counter in ("lost_noted", "expired_noted"):
            found = damage(written, with_cursor(lambda cursor, name=counter: setattr(cursor, name, 10_000)))
            assert 23 in {invariant for invariant, _ in found}

    def test_a_cursor_beyond_the_log(self, written: Store) -> None:
        """It would miss what is sent next (invariant 1)."""
        found = damage(written, with_cursor(lambda cursor: setattr(cursor, "mark_delete", (7, 0))))
        assert 1 in {invariant for invariant, _ in found}

    def test_an_acknowledged_range_that_was_not_taken_in(self, written: Store) -> None:
        """What follows markDeletePosition without a gap belongs to it (invariant 1)."""
        found = damage(
            written, lambda batch: batch.put(ACKS, key3(SUBSCRIPTION, 1, 0), (0).to_bytes(8, "big"))
        )
        assert {invariant for invariant, _ in found} & {1, 7, 8}

    def test_a_message_in_flight_at_nobody(self, written: Store) -> None:
        """It would never come again (invariant 19)."""
        assert 19 in {invariant for invariant, _ in damage(written, remove_first(CONSUMERS))}

    def test_a_message_held_as_pending_that_no_transaction_has(self, written: Store) -> None:
        """It would never come again either (invariant 7)."""
        record = pack([1, [[b"", -1, 1, 0, False]]])
        found = damage(written, lambda batch: batch.put(DELIVERIES, key3(SUBSCRIPTION, 2, 2), record))
        assert {invariant for invariant, _ in found} & {7, 8}
