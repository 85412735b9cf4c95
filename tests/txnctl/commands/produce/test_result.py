"""The result of `produce`: `txnctl/commands/produce/result.py`."""

from __future__ import annotations

from storage import AccessMode, MessageId
from storage.json_form import to_json
from txnctl.commands.produce.result import FIELDS, PrintedIds, Produced


def produced(ids: PrintedIds | None) -> Produced:
    """Two messages stored."""
    first, last = MessageId(1, 0, 0), MessageId(1, 0, 1)
    name, mode = "persistent://public/default/orders", AccessMode.SHARED
    return Produced(name, "orders", 2, 0, 0, first, last, "p", mode, None, 1, None, ids)


def test_every_field_is_declared_in_the_order_of_the_json() -> None:
    """The list of ids comes last."""
    row = to_json(produced(PrintedIds([MessageId(1, 0, 0), MessageId(1, 0, 1)])))
    assert list(row) == [field.name for field in FIELDS]
    assert row["messageIds"] == ["1:0:0", "1:0:1"]
    assert (row["firstMessageId"], row["accessMode"], row["topicEpoch"]) == ("1:0:0", "Shared", None)


def test_ids_are_absent_unless_printed() -> None:
    """Absent, not null."""
    assert "messageIds" not in to_json(produced(None))
