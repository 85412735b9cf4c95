"""Topic: `storage/verify/topic.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store
from storage.disk.codec import U64X2, key1
from storage.disk.schema import (
    ABORTED,
    OPEN_FIRST,
    SEQUENCES,
    TXN_RUNS,
)
from storage.disk.view import WriteBatch
from storage.topic import state
from storage.topic.sequence_ids import LastUse, UsedRange
from storage.topic.state import TopicState
from tests.storage.damage import Break, damage
from tests.storage.verify.verify_steps import TOPIC, add, remove_first


def with_head(change: Callable[[TopicState], None]) -> Break:
    def run(batch: WriteBatch) -> None:
        head = state.load(batch, TOPIC)
        change(head)

    return run


class TestTopics:
    """Logs, ledgers, transactions on them."""

    @pytest.mark.parametrize(
        "counter",
        ["messages", "bytes", "markers", "open_txns", "uncommitted", "aborted_txns", "aborted_messages"],
    )
    def test_a_counter_that_is_off_by_one(self, written: Store, counter: str) -> None:
        """Every stored counter equals a recount (invariant 23)."""
        assert 23 in {invariant for invariant, _ in damage(written, with_head(add(counter)))}

    @pytest.mark.parametrize("max_read", [(1, 0), (1, 3), (2, 2)])
    def test_max_read_that_is_not_its_formula(self, written: Store, max_read: tuple[int, int]) -> None:
        """Too low and too high (invariant 1)."""
        found = damage(written, with_head(lambda head: setattr(head, "max_read", max_read)))
        assert 1 in {invariant for invariant, _ in found}

    def test_an_aborted_transaction_that_the_set_lost(self, written: Store) -> None:
        """A reader would show its messages (invariant 2)."""
        found = damage(written, remove_first(ABORTED))
        assert {invariant for invariant, _ in found} & {2, 23}

    def test_an_open_transaction_that_the_index_lost(self, written: Store) -> None:
        """A reader would pass it (invariants 1 and 23)."""
        found = damage(written, remove_first(OPEN_FIRST))
        assert {invariant for invariant, _ in found} & {1, 6, 23}

    def test_runs_that_are_not_where_the_entries_are(self, written: Store) -> None:
        """What is blocked would be counted wrong (invariant 23)."""
        assert 23 in {invariant for invariant, _ in damage(written, remove_first(TXN_RUNS))}

    def test_sequence_ids_that_are_not_those_of_the_log(self, written: Store) -> None:
        """Deduplication would forget them, or know too many (invariants 20 and 23)."""
        prefix = key1(TOPIC) + b"p\0"
        found = damage(written, lambda batch: batch.put(SEQUENCES, prefix + key1(90), U64X2.pack(95, 0)))
        assert {invariant for invariant, _ in found} & {20, 23}
        found = damage(written, remove_first(SEQUENCES, prefix))
        assert {invariant for invariant, _ in found} & {20, 23}

    def test_sequence_ids_that_are_all_forgotten_too_early(self, written: Store) -> None:
        """A message that is kept would be stored again (invariant 20)."""
        prefix = key1(TOPIC) + b"p\0"
        found = damage(written, lambda batch: batch.delete_prefix(SEQUENCES, prefix))
        assert 20 in {invariant for invariant, _ in found}

    def test_a_use_of_sequence_ids_that_is_still_to_come(self, written: Store) -> None:
        """Their ids would be kept after their messages (invariant 20)."""

        def damaged(batch: WriteBatch) -> None:
            key, payload = next(batch.scan(SEQUENCES, key1(TOPIC) + b"p\0"))
            used = UsedRange.decode(payload)
            batch.put(SEQUENCES, key, used._replace(used=LastUse(1 << 40, 0)).encode())

        assert 20 in {invariant for invariant, _ in damage(written, damaged)}
