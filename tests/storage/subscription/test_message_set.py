"""Sets of the messages of one entry, against Python's own sets."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage.subscription import message_set


@st.composite
def sets(draw: st.DrawFn) -> tuple[int, set[int]]:
    """A number of messages, and some of them: at least one."""
    count = draw(st.integers(1, 300))
    return count, draw(st.sets(st.integers(0, count - 1), min_size=1))


def bits(members: set[int]) -> int:
    return sum(1 << member for member in members)


class TestBytes:
    """What is stored."""

    @given(sets())
    def test_a_set_is_read_as_it_was_written(self, case: tuple[int, set[int]]) -> None:
        """Bytes and set are two forms of one thing."""
        count, members = case
        assert message_set.decode(message_set.encode(bits(members), count), count) == bits(members)

    @given(st.integers(1, 10_000))
    def test_all_messages_take_no_bytes(self, count: int) -> None:
        """Empty bytes stand for the whole entry, whatever its size."""
        every = message_set.everything(count)
        assert message_set.encode(every, count) == message_set.ALL == b""
        assert message_set.decode(b"", count) == every


class TestArithmetic:
    """Each function does to bits what it says of messages."""

    @given(st.integers(0, 300))
    def test_everything_is_each_message_once(self, count: int) -> None:
        """An entry of n messages has the indexes 0 to n - 1."""
        assert message_set.indexes(message_set.everything(count)) == list(range(count))

    @given(sets())
    def test_indexes_are_the_members_in_order(self, case: tuple[int, set[int]]) -> None:
        """The batch indexes come in the order of the messages."""
        assert message_set.indexes(bits(case[1])) == sorted(case[1])

    @given(sets(), st.integers(0, 320))
    def test_lowest_keeps_the_first(self, case: tuple[int, set[int]], limit: int) -> None:
        """With room for n messages the first n are taken."""
        assert message_set.indexes(message_set.lowest(bits(case[1]), limit)) == sorted(case[1])[:limit]

    @given(st.integers(0, 300))
    def test_through_includes_its_end(self, index: int) -> None:
        """A cumulative acknowledgement of index n covers n + 1 messages."""
        assert message_set.indexes(message_set.through(index)) == list(range(index + 1))
