"""Message ids as arguments."""

from __future__ import annotations

import pytest

from storage import MessageId
from storage.errors import InvalidPosition, TxnctlError
from txnctl.commands.subscriptions.message_id import MESSAGE_ID


@pytest.mark.parametrize(
    ("text", "message_id"), [("12:4471", MessageId(12, 4471)), ("1:0:3", MessageId(1, 0, 3))]
)
def test_ids_are_read(text: str, message_id: MessageId) -> None:
    """Of a message alone in its entry, and inside a batch."""
    assert MESSAGE_ID.read(text) == message_id


@pytest.mark.parametrize("text", ["", "earliest", "1", "1:-1", "1:0:-1", "1:0:0:0", "01:0"])
def test_what_is_no_id_is_refused(text: str) -> None:
    """A position before the first message among them."""
    with pytest.raises(InvalidPosition):
        MESSAGE_ID.read(text)
    assert issubclass(InvalidPosition, TxnctlError)
