"""Positions and message ids: their text, their order, their bytes."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, strategies as st

from storage import EARLIEST, LATEST, MessageId, Position
from storage.disk.codec import key3
from storage.errors import InvalidPosition
from storage.values.position import parse_start

ledgers = st.integers(0, 10**17)
entries = st.integers(0, 10**17)
positions = st.builds(Position, ledgers, st.integers(-1, 10**17))
message_ids = st.builds(MessageId, ledgers, entries, st.integers(-1, 10**8))


class TestText:
    """What is written can be read, and nothing else can."""

    @given(positions)
    def test_a_position_is_read_as_it_is_written(self, position: Position) -> None:
        """`L:E` names the position that wrote it, `L:-1` before the first entry too."""
        assert Position.parse(str(position)) == position

    @given(message_ids)
    def test_a_message_id_is_read_as_it_is_written(self, message_id: MessageId) -> None:
        """`L:E` and `L:E:B` name the message that wrote them."""
        assert MessageId.parse(str(message_id)) == message_id

    def test_the_form_is_that_of_the_contract(self) -> None:
        """A message of an entry of its own has two parts, one of a batch three."""
        assert str(Position(12, 4471)) == "12:4471"
        assert str(MessageId(12, 4471)) == "12:4471"
        assert str(MessageId(12, 4471, 3)) == "12:4471:3"

    @pytest.mark.parametrize(
        "text",
        ["", ":", "1", "1:", ":1", "1:2:3:4", "a:b", "1:-2", "-1:0", "01:2", "1:02", " 1:2", "1:2 ", "1:2\n", "+1:2",
         "1_0:2", "١:٢", "1:2:-1", "9" * 19 + ":0", "1:2:" + "9" * 10, "1:2\0", "earliest "],
    )  # fmt: skip
    def test_anything_else_is_refused(self, text: str) -> None:
        """Signs, blanks, leading zeros, other digits, too many parts and too large numbers are no position."""
        for parse in (Position.parse, MessageId.parse, parse_start):
            with pytest.raises(InvalidPosition) as caught:
                parse(text)
            assert caught.value.exit_code == 2

    def test_a_batch_index_is_no_part_of_a_position(self) -> None:
        """`L:E:B` names a message, not an entry."""
        with pytest.raises(InvalidPosition):
            Position.parse("1:2:3")

    def test_no_message_stands_before_the_first_entry(self) -> None:
        """`L:-1` is a position, and no message id."""
        with pytest.raises(InvalidPosition):
            MessageId.parse("1:-1")

    @given(st.text(max_size=12))
    def test_no_text_breaks_the_parser(self, text: str) -> None:
        """Whatever is given either names what writes it again, or is refused."""
        try:
            assert str(MessageId.parse(text)) == text
        except InvalidPosition:
            with pytest.raises(InvalidPosition):
                Position.parse(text) if "-" not in text else MessageId.parse(text)


class TestStart:
    """Where a reader may begin."""

    def test_the_ends_have_names(self) -> None:
        """`earliest` and `latest` are the two sentinels."""
        assert parse_start("earliest") is EARLIEST
        assert parse_start("latest") is LATEST
        assert (str(EARLIEST), str(LATEST)) == ("earliest", "latest")

    def test_two_parts_are_a_position_and_three_a_message(self) -> None:
        """What names an entry is a position, what names a message of a batch a message id."""
        assert parse_start("1:2") == Position(1, 2)
        assert type(parse_start("1:2")) is Position
        assert parse_start("1:2:0") == MessageId(1, 2, 0)


class TestOrder:
    """Positions order by ledger, then entry."""

    @given(positions, positions)
    def test_ledger_first_then_entry(self, a: Position, b: Position) -> None:
        """A position is below another exactly if its ledger is, or its entry in the same one."""
        assert (a < b) == (
            a.ledger_id < b.ledger_id or (a.ledger_id == b.ledger_id and a.entry_id < b.entry_id)
        )

    @given(ledgers, entries, ledgers, entries)
    def test_the_bytes_sort_as_the_positions(self, l1: int, e1: int, l2: int, e2: int) -> None:
        """The keys on disk have the order of the positions."""
        assert (key3(7, l1, e1) < key3(7, l2, e2)) == (Position(l1, e1) < Position(l2, e2))

    @given(message_ids)
    def test_a_message_id_knows_its_position(self, message_id: MessageId) -> None:
        """The position of a message is that of its entry."""
        assert message_id.position == Position(message_id.ledger_id, message_id.entry_id)


class TestValue:
    """They are values."""

    @given(positions, message_ids)
    def test_they_survive_pickling(self, position: Position, message_id: MessageId) -> None:
        """They go to other processes unchanged, type and all."""
        for value in (position, message_id):
            copy = pickle.loads(pickle.dumps(value))
            assert copy == value
            assert type(copy) is type(value)

    def test_they_say_what_they_are(self) -> None:
        """Their representation makes them again."""
        assert repr(Position(1, 2)) == "Position(1, 2)"
        assert repr(MessageId(1, 2, 3)) == "MessageId(1, 2, 3)"
