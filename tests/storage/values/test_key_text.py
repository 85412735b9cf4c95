"""Keys in messages: `storage/values/key_text.py`."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import LostConflict, WriteTooOld
from storage.values.key_text import key_text
from txnctl.output.escape import printable_bytes


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"alice", "alice"),
        ("k\u00fchl".encode(), "k\u00fchl"),
        (b"\xff1", "\\xff1"),
        (b"a\nb", "a\\nb"),
        (b"\x1b[1m", "\\x1b[1m"),
    ],
)
def test_a_key_is_shown_as_commands_show_it(key: bytes, text: str) -> None:
    """Text as text, and nothing that drives a terminal."""
    assert key_text(key) == text == printable_bytes(key)


def test_a_lost_conflict_names_the_key_as_text(store: Store) -> None:
    """In message and details."""
    key = "k\u00fchl".encode()
    store.create_table("a")
    older, newer = store.begin_transaction(), store.begin_transaction()
    store.table("a").put(key, b"1", txn=newer)
    with pytest.raises((LostConflict, WriteTooOld)) as lost:
        store.table("a").put(key, b"2", txn=older)
    assert "key k\u00fchl of table a" in lost.value.message
    assert lost.value.details["key"] == "k\u00fchl"
    with pytest.raises(LostConflict, match="key k\u00fchl of table a"):
        store.commit_transaction(older)
