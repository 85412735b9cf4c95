"""Ledgers: positions, rolling over, running counts (semantics section 2)."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage import Position, Store
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.topic import log as managed_ledger
from tests.row_json import row_json
from tests.storage.conftest import Scratch
from tests.storage.written_log import Step, WrittenLog, steps


class TestPositions:
    """Dense within a ledger, never reused (invariant 5)."""

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_an_entry_follows_the_one_before(self, scratch: Scratch, wanted: list[Step], limit: int) -> None:
        """In the same ledger until it is full, then at the beginning of the next."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            expected = (1, 0)
            for entry in log.entries:
                assert entry.at == expected
                is_full = entry.at[1] + 1 == limit
                expected = (entry.at[0] + 1, 0) if is_full else (entry.at[0], entry.at[1] + 1)

        scratch.run(check)

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_what_lies_before_and_after_a_position(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """Previous and next reach across ledgers; `L:-1` stands before the first entry."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            for number, entry in enumerate(log.entries):
                before = log.entries[number - 1].at if number else (1, -1)
                assert managed_ledger.previous_position(batch, log.topic_id, entry.at) == before
                following = managed_ledger.next_entry(batch, log.topic_id, before)
                assert following is not None
                assert following.position == entry.at

        scratch.run(check)

    @given(wanted=steps, limit=st.integers(1, 6), data=st.data())
    def test_a_scan_gives_the_entries_of_its_range(
        self, scratch: Scratch, wanted: list[Step], limit: int, data: st.DataObject
    ) -> None:
        """After one position, up to and including another, in order; from a lower ledger nothing more."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            places = [(0, -1), (0, 7), *log.places()]
            after, through = (data.draw(st.sampled_from(places)) for _ in range(2))
            found = [
                tuple(each.position) for each in managed_ledger.scan(batch, log.topic_id, after, through)
            ]
            assert found == [entry.at for entry in log.entries if after < entry.at <= through]

        scratch.run(check)


class TestCounts:
    """Backlogs are counted without a scan."""

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_messages_through_equals_a_recount(
        self, scratch: Scratch, wanted: list[Step], limit: int
    ) -> None:
        """At every position, between ledgers, and beyond the end (invariant 23)."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            for at in [(0, -1), *log.places(), (99, 0)]:
                counted = managed_ledger.messages_through(batch, log.topic_id, log.head, at)
                assert counted == log.messages((0, -1), at)

        scratch.run(check)

    @given(wanted=steps, limit=st.integers(1, 6))
    def test_ledgers_sum_up_their_entries(self, scratch: Scratch, wanted: list[Step], limit: int) -> None:
        """Each ledger's record says how many entries and messages it has, the open one's too."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            for ledger in managed_ledger.ledgers(batch, log.topic_id, log.head):
                mine = [entry for entry in log.entries if entry.at[0] == ledger.ledger_id]
                assert (ledger.entries, ledger.messages) == (len(mine), sum(entry.count for entry in mine))

        scratch.run(check)


class TestRolling:
    """By entries, bytes or age, whichever is reached first."""

    def test_by_entries(self, store: Store) -> None:
        """Markers count: a ledger of two is full after a message and its commit."""
        store.create_topic("r", ledger_entries_max=2)
        txn = store.begin_transaction()
        producer = store.create_producer("r")
        producer.send(b"x", txn=txn)
        store.commit_transaction(txn)
        assert str(producer.send(b"y")) == "2:0"

    def test_by_bytes(self, store: Store) -> None:
        """The entry that reaches the limit is the last one of its ledger."""
        store.create_topic("r", ledger_bytes_max=1000)
        producer = store.create_producer("r")
        assert [str(producer.send(b"x" * 600)) for _ in range(4)] == ["1:0", "1:1", "2:0", "2:1"]

    def test_by_age(self, store: Store, clock: ManualClock) -> None:
        """The first entry after that long opens the next ledger; an empty one never closes."""
        store.create_topic("r", ledger_age_max_ms=10_000)
        clock.advance(60)
        producer = store.create_producer("r")
        assert str(producer.send(b"0")) == "1:0"
        clock.advance(60)
        assert str(producer.send(b"1")) == "2:0"
        clock.advance(9.999)
        assert str(producer.send(b"2")) == "2:1"
        clock.advance(0.001)
        assert str(producer.send(b"3")) == "3:0"

    def test_a_closed_ledger_is_shown_with_its_times(self, store: Store, clock: ManualClock) -> None:
        """When it was opened and closed, and what it holds; the open one is not closed."""
        store.create_topic("r", ledger_entries_max=1)
        producer = store.create_producer("r")
        producer.send_batch([b"0", b"1"])
        clock.advance(5)
        producer.send(b"2")
        first, second = row_json(store.reports.topic_stats_internal("r"))["ledgers"]
        assert (first["ledgerId"], first["entries"], first["messages"]) == (1, 1, 2)
        assert first["closedMs"] - first["openedMs"] == 5000
        assert (second["ledgerId"], second["closedMs"]) == (2, None)

    def test_reading_goes_on_across_ledgers(self, store: Store) -> None:
        """From the end of one to the beginning of the next, from any position."""
        store.create_topic("r", ledger_entries_max=3)
        producer = store.create_producer("r")
        sent = [producer.send(b"%d" % number) for number in range(8)]
        for number, message_id in enumerate(sent):
            read = [message.message_id for message in store.reader("r", start=message_id)]
            assert read == sent[number:]
        assert [m.message_id for m in store.reader("r", start=Position(1, 3))] == sent[3:]
