"""Sequence ids in ranges on disk, against a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from storage.disk.schema import SEQUENCES
from storage.disk.view import WriteBatch
from storage.errors import SequenceConflict
from storage.topic.sequence_ids import LastUse, SequenceIds, UsedRange
from tests.storage.conftest import Scratch

TOPIC, PRODUCER = 7, "p"
USED = LastUse(1, 1)

actions = st.one_of(
    st.tuples(st.just("assign"), st.integers(0, 2), st.integers(1, 4)),
    st.tuples(st.just("claim"), st.integers(0, 2), st.lists(st.integers(0, 12), min_size=1, max_size=5)),
    st.tuples(st.just("commit"), st.integers(1, 2), st.none()),
    st.tuples(st.just("abort"), st.integers(1, 2), st.none()),
)


class Used:
    """What is in use: a dictionary from id to transaction, 0 once it is plain."""

    def __init__(self, batch: WriteBatch) -> None:
        self.batch = batch
        self.owners: dict[int, int] = {}
        self.noted: dict[int, list[tuple[int, int]]] = {1: [], 2: []}

    def assign(self, txn: int, count: int) -> None:
        first = SequenceIds(self.batch, TOPIC, PRODUCER).assign(count, txn, USED)
        assert first == max(self.owners, default=-1) + 1
        self._note(txn, range(first, first + count))

    def claim(self, txn: int, ids: list[int]) -> None:
        if any(self.owners.get(each, txn) not in (0, txn) for each in ids):
            with pytest.raises(SequenceConflict):
                SequenceIds(self.batch, TOPIC, PRODUCER).claim(ids, txn, USED)
            # The store drops the whole batch then; so does this test, as far as it had come.
            for each in ids:
                if self.owners.get(each, txn) not in (0, txn):
                    return
                self._note(txn, [] if each in self.owners else [each])
            return
        fresh = [
            place for place, each in enumerate(ids) if each not in self.owners and each not in ids[:place]
        ]
        assert SequenceIds(self.batch, TOPIC, PRODUCER).claim(ids, txn, USED) == fresh
        self._note(txn, [ids[place] for place in fresh])

    def _note(self, txn: int, ids: range | list[int]) -> None:
        for each in ids:
            self.owners[each] = txn
            if txn:
                self.noted[txn].append((each, each))

    def settle(self, txn: int, committed: bool) -> None:
        for first, last in self.noted[txn]:
            SequenceIds(self.batch, TOPIC, PRODUCER).settle(first, last, txn, committed)
        self.noted[txn] = []
        self.owners = {
            each: 0 if owner == txn else owner
            for each, owner in self.owners.items()
            if owner != txn or committed
        }

    def check(self) -> None:
        """The ranges on disk say what the dictionary says, and are as few as can be."""
        wanted: list[tuple[int, int, int]] = []
        for each in sorted(self.owners):
            if wanted and wanted[-1][1:] == (each - 1, self.owners[each]):
                wanted[-1] = (wanted[-1][0], each, self.owners[each])
            else:
                wanted.append((each, each, self.owners[each]))
        found = [
            (int.from_bytes(key[-8:], "big"), *UsedRange.decode(payload)[:2])
            for key, payload in self.batch.scan(SEQUENCES)
        ]
        assert found == wanted
        last = SequenceIds(self.batch, TOPIC, PRODUCER).last
        assert last == max(self.owners, default=-1)


class TestSequenceIds:
    """Deduplication (semantics section 2)."""

    @given(st.lists(actions, min_size=8, max_size=25))
    def test_ranges_equal_a_dictionary(self, scratch: Scratch, wanted: list[tuple[str, int, object]]) -> None:
        """Whatever is assigned, claimed, committed and aborted, an id is used once, and freed by an abort alone."""

        def check(batch: WriteBatch) -> None:
            used = Used(batch)
            for what, txn, argument in wanted:
                if what == "assign":
                    used.assign(txn, argument)  # type: ignore[arg-type]
                elif what == "claim":
                    used.claim(txn, argument)  # type: ignore[arg-type]
                else:
                    used.settle(txn, what == "commit")
                used.check()

        scratch.run(check)

    def test_producers_and_topics_have_ids_of_their_own(self, scratch: Scratch) -> None:
        """The same id of another producer name, or on another topic, is another id."""

        def check(batch: WriteBatch) -> None:
            for topic_id, producer in ((1, "p"), (1, "p.q"), (1, "o"), (2, "p")):
                assert SequenceIds(batch, topic_id, producer).last == -1
                assert SequenceIds(batch, topic_id, producer).claim([5], 0, USED) == [0]
                assert SequenceIds(batch, topic_id, producer).last == 5

        scratch.run(check)
