"""Steps that the tests of output share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from txnctl.output.field import Field

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))] + list(
    "\u202a\u202e\u2066\u2069\u2028\u2029"
)


FIELDS = (
    Field("topic", "id", "The topic."),
    Field("msgCount", "integer", "Messages.", heading="MESSAGES"),
    Field("size", "size", "Bytes."),
    Field("ageMs", "duration", "Age.", heading="AGE"),
    Field("labels", "map", "Labels."),
    Field("exactMs", "timeMs", "The same as an integer.", heading=""),
)


ROWS: list[dict[str, Any]] = [
    {
        "topic": "orders\x1b",
        "msgCount": 5688,
        "size": 8_808_038,
        "ageMs": 2_818_000,
        "labels": {"a": "b"},
        "exactMs": 1,
    },
    {"topic": "b", "msgCount": None, "size": 0, "ageMs": 0, "labels": {}, "exactMs": 2},
]


class StoredEntry:
    """The columns of an entry, as the engine hands them out."""

    def __init__(self, values: list[bytes | None], **given: Any) -> None:
        self.ledger_id, self.entry_id = 12, 4471
        self.count = len(values)
        self.values = values
        self.keys = given.get("keys")
        self.properties = given.get("properties")
        self.event_times = given.get("event_times")
        self.delivery_times = given.get("delivery_times")
        self.sequence_ids = range(100, 100 + len(values))
        self.publish_time = 1_700_000_000_123
        self.producer_name = given.get("producer_name", "txnctl-7")
        self.epoch = given.get("epoch", -1)
        self.txn_id = given.get("txn_id")
        self.txn_state = given.get("txn_state")

    def message_id(self, index: int) -> Any:
        """The id of one of its messages."""
        from storage.values.position import MessageId

        return MessageId(12, 4471, index if self.count > 1 else -1)

    def message(self, index: int) -> Any:
        """One of its messages."""
        from storage.topic.message import Message, MessageOrigin

        return Message(self, index, MessageOrigin("orders"), 3)  # type: ignore[arg-type]


BYTES = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from([b"", b"\x7f", b"\\", b'"', b"\n", b"\\u007f", b"\xff", b"null", "\u2028".encode()]),
)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def entries(draw: st.DrawFn) -> StoredEntry:
    """Entries of any size and content; columns there or not."""
    values = draw(st.lists(st.none() | BYTES, min_size=1, max_size=6))
    count = len(values)
    return StoredEntry(
        values,
        keys=draw(st.none() | st.lists(st.none() | BYTES, min_size=count, max_size=count)),
        properties=draw(
            st.none()
            | st.lists(st.none() | st.dictionaries(TEXT, TEXT, max_size=3), min_size=count, max_size=count)
        ),
        event_times=draw(
            st.none() | st.lists(st.none() | st.integers(0, 2**53), min_size=count, max_size=count)
        ),
        delivery_times=draw(
            st.none() | st.lists(st.none() | st.integers(0, 2**53), min_size=count, max_size=count)
        ),
    )
