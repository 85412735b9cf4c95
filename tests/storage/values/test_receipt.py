"""Receipts: what each batch of a group learns of what was stored; a buffered one is written when it is looked at."""

from __future__ import annotations

import pytest

from storage import DUPLICATE, BatchReceipt, MessageId, Position
from storage.errors import TransactionNotOpen
from storage.values.receipt import StoredEntry, WriteGroup

ENTRIES = [
    StoredEntry(0, [0, 1, 3], Position(1, 7), [10, 11, 13]),
    StoredEntry(4, [], None, []),
    StoredEntry(6, [0], Position(1, 8), [16]),
]
"""Seven messages in three entries: 2, 4 and 5 were stored before."""


def receipt(start: int, offered: int) -> BatchReceipt:
    """Of some messages of the group."""
    return BatchReceipt(WriteGroup(ENTRIES), start, offered)


@pytest.mark.parametrize(
    ("start", "offered", "ids", "sequence_id"),
    [
        (0, 7, ["1:7:0", "1:7:1", "1:7:2", "1:8"], 16),
        (0, 2, ["1:7:0", "1:7:1"], 11),
        (1, 3, ["1:7:1", "1:7:2"], 13),
        (3, 4, ["1:7:2", "1:8"], 16),
        (6, 1, ["1:8"], 16),
        (4, 2, [], -1),
        (2, 1, [], -1),
    ],
)
def test_each_batch_knows_its_own(start: int, offered: int, ids: list[str], sequence_id: int) -> None:
    """An index where the entry holds several, whosever they are."""
    found = receipt(start, offered)
    assert [str(each) for each in found] == ids
    assert (found.count, len(found), found.duplicates) == (len(ids), len(ids), offered - len(ids))
    assert found.last_sequence_id == sequence_id
    assert found.last_message_id == (MessageId.parse(ids[-1]) if ids else DUPLICATE)


def test_entries_say_how_many_of_the_batch_they_hold() -> None:
    """Not how many in all."""
    assert receipt(1, 6).entries == [(Position(1, 7), 2), (Position(1, 8), 1)]
    assert receipt(4, 2).entries == []


class Buffered(WriteGroup):
    """A group that is written when it is looked at, or cannot be any more."""

    __slots__ = ("is_over", "writes")

    def __init__(self, is_over: bool) -> None:
        super().__init__(None)
        self.is_over, self.writes = is_over, 0

    def look(self) -> list[StoredEntry]:
        if self.is_over:
            raise TransactionNotOpen("over")
        if self.entries is None:
            self.entries, self.writes = ENTRIES, self.writes + 1
        return super().look()


def test_a_buffered_batch_is_written_when_it_is_looked_at() -> None:
    """Once; asking whether it is buffered does not look."""
    group = Buffered(is_over=False)
    found = BatchReceipt(group, 0, 2)
    assert found.is_buffered
    assert group.writes == 0
    assert (found.count, found.last_sequence_id, group.writes) == (2, 11, 1)
    assert not found.is_buffered


def test_what_cannot_be_written_is_raised_at_every_look() -> None:
    """As the transaction has ended."""
    found = BatchReceipt(Buffered(is_over=True), 0, 2)
    for _ in range(2):
        with pytest.raises(TransactionNotOpen):
            list(found)
    assert found.is_buffered
