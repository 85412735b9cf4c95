"""The aborted set and its segments, against a recount."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from storage.disk.codec import key2
from storage.disk.schema import ABORTED
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore
from storage.topic.open_topic import OpenTopic
from storage.txn import aborted, aborted_blocks
from storage.txn.aborted import AbortedSet
from tests.storage.conftest import Scratch
from tests.storage.written_log import Step, WrittenLog, steps

SEGMENT = 2
"""Transactions of a sealed segment here, so that short logs have several."""


@pytest.fixture(autouse=True, scope="module")
def _small_segments() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aborted, "ABORTED_SEGMENT_TRANSACTIONS_MAX", SEGMENT)
        patch.setattr(aborted, "SEGMENTS_REMEMBERED", 3)
        patch.setattr(aborted_blocks, "SEGMENTS", 2)
        yield


class TestAbortedSet:
    """What a reader filters by."""

    @given(wanted=steps, limit=st.integers(1, 6), data=st.data())
    def test_a_reader_knows_every_aborted_message_of_its_range(
        self, scratch: Scratch, wanted: list[Step], limit: int, data: st.DataObject
    ) -> None:
        """After loading ranges in any order, each message in them is in the set exactly if it is aborted."""

        def check(batch: WriteBatch) -> None:
            log, known = WrittenLog(scratch.store, batch, limit, wanted), AbortedSet()
            for _ in range(3):
                after, through = sorted(data.draw(st.sampled_from(log.places())) for _ in range(2))
                known.load(OpenTopic.load(batch, log.topic_id), after, through)
                for entry in log.entries:
                    if after < entry.at <= through and entry.count:
                        assert (entry.txn in known.ids) == (log.state(entry) == "ABORTED")

        scratch.run(check)

    @given(before=steps, after=steps, limit=st.integers(1, 6))
    def test_what_is_aborted_later_is_found_by_a_set_that_was_loaded_before(
        self, scratch: Scratch, before: list[Step], after: list[Step], limit: int
    ) -> None:
        """A reader keeps its set between its pages, while transactions go on ending."""

        def check(batch: WriteBatch) -> None:
            log, known = WrittenLog(scratch.store, batch, limit, before), AbortedSet()
            known.load(OpenTopic.load(batch, log.topic_id), (0, -1), log.head.last_confirmed)
            log.go_on(after)
            known.load(OpenTopic.load(batch, log.topic_id), (0, -1), log.head.last_confirmed)
            assert known.ids == {txn for txn, state in log.states.items() if state == "ABORTED"}

        scratch.run(check)


class TestCounts:
    """Counting without a scan."""

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_messages_between_equals_a_recount(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """Between any two positions the aborted messages are those of the log."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            gone = {txn for txn, state in log.states.items() if state == "ABORTED"}
            places = log.places()
            for after in places[::3]:
                for through in places[1::2]:
                    counted = aborted.messages_between(batch, log.topic_id, log.head, after, through)
                    assert counted == log.messages(after, through, gone)

        scratch.run(check)

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_the_head_counts_what_the_set_holds(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """Transactions and messages of the set equal a recount (invariant 23)."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            gone = {txn for txn, state in log.states.items() if state == "ABORTED"}
            assert {row[0] for row in aborted.rows(batch, log.topic_id)} == gone
            assert log.head.aborted_txns == len(gone)
            assert log.head.aborted_messages == log.messages((0, -1), log.head.last_confirmed, gone)

        scratch.run(check)


class TestSegments:
    """How the set is kept."""

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_a_segment_spans_its_transactions_messages(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """Its range runs from the lowest first to the highest last message position of its transactions."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            rows = aborted.rows(batch, log.topic_id)
            for number, segment in enumerate(aborted.segments(batch, log.topic_id)):
                mine = {row[0] for row in rows[number * SEGMENT : (number + 1) * SEGMENT]}
                places = [entry.at for entry in log.entries if entry.txn in mine and entry.count]
                assert str(segment.first_position) == "{}:{}".format(*min(places))
                assert str(segment.last_position) == "{}:{}".format(*max(places))
                assert segment.transactions == len(mine)
                assert segment.messages == sum(e.count for e in log.entries if e.txn in mine)

        scratch.run(check)

    @given(wanted=steps)
    def test_all_but_the_last_segment_are_full(self, scratch: Scratch, wanted: list[Step]) -> None:
        """Sealed segments have a bounded size, and only one is open."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, 5, wanted)
            sizes = [segment.transactions for segment in aborted.segments(batch, log.topic_id)]
            assert all(size == SEGMENT for size in sizes[:-1])
            assert sum(map(int, sizes)) == sum(state == "ABORTED" for state in log.states.values())

        scratch.run(check)


class TestDamage:
    """A record that is not there."""

    @given(wanted=steps)
    def test_a_segment_that_is_missing_is_damage(self, scratch: Scratch, wanted: list[Step]) -> None:
        """An aborted message never passes for a committed one because the record that says so cannot be found."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, 6, wanted)
            if not log.head.aborted_txns:
                return
            batch.delete(ABORTED, key2(log.topic_id, 0))
            with pytest.raises(CorruptStore):
                AbortedSet().load(OpenTopic.load(batch, log.topic_id), (0, -1), log.head.last_confirmed)

        scratch.run(check)
