"""Messages: `txnctl/output/messages.py`."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from storage.json_form import to_json
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from tests.txnctl.output.output_steps import CONTROLS, StoredEntry, entries
from txnctl.output.field import undeclared
from txnctl.output.messages import (
    DELIVERED_FIELDS,
    MESSAGE_FIELDS,
    entry_lines,
    message_lines,
    message_row,
)


def texts(values: list[bytes | None]) -> list[bytes]:
    """A whole entry on one line each."""
    return entry_lines(StoredEntry(values)).splitlines(keepends=True)  # type: ignore[arg-type]


class TestMessages:
    """`consume -o ndjson | produce --input ndjson` is the identity."""

    def test_the_fields_of_a_message(self) -> None:
        """All of them, in order, as `-o help` lists them."""
        entry = StoredEntry(
            [b"+100", None],
            keys=[b"B2", b""],
            properties=[{"a": "b"}, None],
            event_times=[1, None],
            delivery_times=[None, 2],
            epoch=7,
            txn_id=TxnID(42),
            txn_state=TransactionState.OPEN,
        )
        first, second = [json.loads(line) for line in entry_lines(entry).splitlines()]  # type: ignore[arg-type]
        shared = {
            "publishTimeAt": "2023-11-14T22:13:20.123Z",
            "publishTimeMs": 1_700_000_000_123,
            "producerName": "txnctl-7",
            "epoch": 7,
            "txnId": "0:42",
            "txnState": "OPEN",
        }
        assert first == {
            "messageId": "12:4471:0", "value": "+100", "key": "B2", "properties": {"a": "b"}, "eventTimeMs": 1,
            "deliveryTimeMs": None, "sequenceId": 100, **shared,
        }  # fmt: skip
        assert second == {
            "messageId": "12:4471:1", "value": None, "key": "", "properties": {}, "eventTimeMs": None,
            "deliveryTimeMs": 2, "sequenceId": 101, **shared,
        }  # fmt: skip
        assert list(first) == [field.name for field in MESSAGE_FIELDS if "Base64" not in field.name]

    def test_a_message_alone_in_its_entry_has_no_batch_index(self) -> None:
        """And nothing that is unknown is 0."""
        (line,) = texts([b"x"])
        row = json.loads(line)
        assert row["messageId"] == "12:4471"
        assert (row["epoch"], row["txnId"], row["txnState"], row["key"]) == (None, None, None, None)

    def test_bytes_that_are_no_text_go_as_base64(self) -> None:
        """`value` is absent then; null is not "" and neither is absent."""
        rows = [json.loads(line) for line in texts([b"\xff\x00", b"", None])]
        assert (rows[0]["valueBase64"], "value" in rows[0]) == ("/wA=", False)
        assert (rows[1]["value"], "valueBase64" in rows[1]) == ("", False)
        assert (rows[2]["value"], "valueBase64" in rows[2]) == (None, False)

    @given(entries(), st.booleans())
    def test_every_way_of_printing_says_the_same(self, entry: StoredEntry, terminal: bool) -> None:
        """A batch at a time, a message at a time, as a row; harmless on a terminal."""
        batch = entry_lines(entry, terminal=terminal).split(b"\n")[:-1]  # type: ignore[arg-type]
        for index, line in enumerate(batch):
            row = json.loads(line)
            assert row == to_json(message_row(entry.message(index)))
            single = message_lines([entry.message(index)], terminal=terminal)
            assert json.loads(single) == row | {"redeliveryCount": 3}
            assert not undeclared(json.loads(single), DELIVERED_FIELDS)
            if terminal:
                assert not set((line + single).decode()) & (set(CONTROLS) - {"\n"})

    @given(st.lists(entries(), max_size=3))
    def test_messages_of_several_entries_at_once(self, several: list[StoredEntry]) -> None:
        """As a consumer is handed them: each line is that of the message alone."""
        messages = [entry.message(index) for entry in several for index in range(entry.count)]
        assert message_lines(messages) == b"".join([message_lines([message]) for message in messages])

    @given(entries(), st.integers(0, 5))
    def test_an_entry_can_be_begun_inside(self, entry: StoredEntry, start: int) -> None:
        """The lines from `start` on are those of the whole."""
        whole = entry_lines(entry).split(b"\n")  # type: ignore[arg-type]
        start = min(start, entry.count - 1)
        assert entry_lines(entry, start=start).split(b"\n") == whole[start:]  # type: ignore[arg-type]
