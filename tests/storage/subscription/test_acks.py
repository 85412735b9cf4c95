"""Acknowledgements ahead of markDeletePosition: `storage/subscription/acks.py`, `acked_ranges.py`."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.disk.codec import unpack
from storage.disk.view import WriteBatch
from storage.subscription import acked_ranges, acks, message_set
from storage.subscription.acks import Acks
from storage.subscription.cursor import Cursor
from tests.storage.conftest import Scratch
from tests.storage.written_log import WrittenLog

SUBSCRIPTION = 3

logs = st.lists(st.tuples(st.sampled_from("nnnnnaA"), st.integers(1, 3)), min_size=10, max_size=14)
how = st.sampled_from(["whole", "whole", "whole", "whole", "some", "some", "through"])
moves = st.lists(st.tuples(how, st.integers(0, 13), st.integers(1, 7)), min_size=15, max_size=30)


class Acknowledged:
    """A set of (entry index, message index); a marker has the one message 0."""

    def __init__(self, log: WrittenLog, cursor: Cursor) -> None:
        self.log = log
        self.cursor = cursor
        self.acks = Acks(log.batch, log.topic_id, SUBSCRIPTION, cursor)
        self.members: set[tuple[int, int]] = set()

    def every(self, index: int) -> set[tuple[int, int]]:
        return {(index, place) for place in range(max(1, self.log.entries[index].count))}

    def some(self, index: int, bits: int) -> None:
        """Acknowledge some messages of an entry."""
        entry = self.log.entries[index]
        messages = bits & message_set.everything(max(entry.count, 1))
        if not messages:
            return
        mine = {(index, place) for place in message_set.indexes(messages)}
        if not entry.count:
            self.acks.pass_marker(entry.at)
        else:
            new = self.acks.acknowledge(entry.at, entry.count, messages)
            assert {(index, place) for place in message_set.indexes(new)} == mine - self.members
        self.members |= mine
        self.acks.advance()

    def through(self, index: int) -> None:
        """Acknowledge everything up to an entry."""
        self.acks.acknowledge_through(self.log.entries[index].at)
        for each in range(index + 1):
            self.members |= self.every(each)
        self.acks.advance()

    def check(self) -> None:
        """The cursor says what the set says, and keeps it in the fewest records."""
        log, batch, mark = self.log, self.log.batch, -1
        while mark + 1 < len(log.entries) and self.every(mark + 1) <= self.members:
            mark += 1
        if mark >= 0:
            assert self.cursor.mark_delete == log.entries[mark].at
        for index, entry in enumerate(log.entries):
            found = acks.acknowledged(batch, SUBSCRIPTION, self.cursor, entry.at, max(entry.count, 1))
            assert {(index, place) for place in message_set.indexes(found)} == self.members & self.every(
                index
            )
        wanted: list[tuple[tuple[int, int], int, bool]] = []
        for index in range(mark + 1, len(log.entries)):
            ledger_id, entry_id = log.entries[index].at
            if self.every(index) <= self.members:
                if wanted and wanted[-1][2] and wanted[-1][:2] == (wanted[-1][0], entry_id - 1) and \
                        wanted[-1][0][0] == ledger_id:  # fmt: skip
                    wanted[-1] = (wanted[-1][0], entry_id, True)
                else:
                    wanted.append(((ledger_id, entry_id), entry_id, True))
            elif self.every(index) & self.members:
                wanted.append(((ledger_id, entry_id), entry_id, False))
        ranges = acked_ranges.ranges(batch, SUBSCRIPTION)
        assert [(tuple(first), last, not messages) for first, last, messages in ranges] == wanted
        ahead = [member for member in self.members if member[0] > mark and log.entries[member[0]].count]
        assert acked_ranges.acknowledged_count(batch, log.topic_id, SUBSCRIPTION) == len(ahead)


class TestCursor:
    """markDeletePosition and what is acknowledged ahead of it."""

    @given(wanted=logs, limit=st.sampled_from([2, 4, 100]), steps=moves)
    def test_ranges_equal_a_set(
        self, scratch: Scratch, wanted: list[tuple[str, int]], limit: int, steps: list[tuple[str, int, int]]
    ) -> None:
        """However messages are acknowledged, one by one, in part or all at once, cursor and set agree."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            if not log.entries:
                return
            model = Acknowledged(log, Cursor((1, -1)))
            for what, number, bits in steps:
                index = number % len(log.entries)
                if what == "through":
                    model.through(index)
                else:
                    model.some(index, -1 if what == "whole" else bits)
                model.check()

        scratch.run(check)

    def test_neighbouring_ranges_are_one_record(self, scratch: Scratch) -> None:
        """In whatever order they are acknowledged."""

        def check(batch: WriteBatch) -> None:
            whole = Acks(batch, 0, SUBSCRIPTION, Cursor((1, -1)))
            for first, last in ((4, 5), (8, 9), (12, 13), (6, 7), (2, 3), (10, 11)):
                whole.acknowledge_entries(1, first, last)
            assert acked_ranges.stored_ranges(batch, SUBSCRIPTION) == [((1, 2), 13, b"")]

        scratch.run(check)

    @given(wanted=logs, limit=st.integers(1, 5), steps=moves)
    def test_mark_delete_never_moves_back(
        self, scratch: Scratch, wanted: list[tuple[str, int]], limit: int, steps: list[tuple[str, int, int]]
    ) -> None:
        """No acknowledgement lowers markDeletePosition (invariant 1)."""

        def check(batch: WriteBatch) -> None:
            log = WrittenLog(scratch.store, batch, limit, wanted)
            if not log.entries:
                return
            model, before = Acknowledged(log, Cursor((1, -1))), (1, -1)
            for what, number, bits in steps:
                index = number % len(log.entries)
                model.through(index) if what == "through" else model.some(index, bits)
                assert model.cursor.mark_delete >= before
                before = model.cursor.mark_delete

        scratch.run(check)

    @given(
        st.tuples(st.integers(0, 9), st.integers(-1, 9)),
        st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(-1, 9)),
    )
    def test_a_cursor_is_read_as_it_was_written(
        self, mark: tuple[int, int], pending: tuple[int, int, int, int] | None
    ) -> None:
        """Nothing of the record is lost on its way to disk and back."""
        cursor = Cursor(mark)
        cursor.read, cursor.generation, cursor.released = (mark[0] + 1, 4), 5, 6
        cursor.pending_cumulative, cursor.delivered, cursor.redelivered = pending, 7, 8
        again = Cursor.decode(memoryview(cursor.encode()))
        for name in Cursor.__slots__:
            assert getattr(again, name) == getattr(cursor, name)

    @given(st.integers(0, 2), st.integers(0, 3), st.none() | st.integers(0, 1 << 40))
    def test_elements_at_the_end_are_there_only_where_they_say_something(
        self, delayed: int, lost: int, vacated_ms: int | None
    ) -> None:
        """The count of delayed messages, and behind it what limits have acknowledged; either without the other."""
        cursor = Cursor((1, -1))
        cursor.delayed, cursor.lost, cursor.lost_noted = delayed, lost, lost // 2
        cursor.expired, cursor.expired_noted, cursor.expired_noted_ms = lost, lost // 3, lost * 1000
        cursor.vacated_ms = vacated_ms
        elements = unpack(memoryview(cursor.encode()), 13)
        forced = [lost, lost // 2, lost, lost // 3, lost * 1000, vacated_ms]
        is_forced = bool(lost) or vacated_ms is not None
        assert elements[13:] == ([delayed, forced] if is_forced else [delayed] if delayed else [])
        again = Cursor.decode(memoryview(cursor.encode()))
        for name in Cursor.__slots__:
            assert getattr(again, name) == getattr(cursor, name)
