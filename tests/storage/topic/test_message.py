"""Message: `storage/topic/message.py`."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage import Store
from storage.process.clock import ManualClock
from tests.storage.conftest import Scratch
from tests.storage.producer_steps import values


class TestMessage:
    """What is sent is what is read."""

    @given(
        value=st.none() | st.binary(max_size=50),
        key=st.none() | st.binary(max_size=20),
        properties=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), st.text(st.characters(codec="utf-8"), max_size=8), max_size=3),
        event_time=st.none() | st.integers(0, (1 << 63) - 1),
    )  # fmt: skip
    def test_every_part_comes_back(
        self,
        scratch: Scratch,
        value: bytes | None,
        key: bytes | None,
        properties: dict[str, str],
        event_time: int | None,
    ) -> None:
        """Value, key, properties and event time; nothing, empty and something are three different things."""
        store = scratch.store
        producer = store.create_producer("messages", create_topic=True)
        sent = producer.send(value, key=key, properties=properties, event_time=event_time)
        (message,) = store.reader("messages", start=sent)
        assert (message.value, message.key, message.properties) == (value, key, properties)
        assert (message.event_time, message.message_id) == (event_time, sent)

    def test_the_store_adds_when_and_by_whom(self, store: Store, clock: ManualClock) -> None:
        """Publish time, producer name, sequence id; no epoch and no transaction here."""
        producer = store.create_producer("t", producer_name="mine")
        producer.send(b"x")
        (message,) = store.reader("t")
        assert message.publish_time == clock.wall_ms()
        assert (message.producer_name, message.sequence_id, message.topic) == ("mine", 0, "t")
        assert (message.epoch, message.txn_id, message.txn_state) == (-1, None, None)

    def test_a_key_may_be_text(self, store: Store) -> None:
        """Text is stored as UTF-8, bytes as they are; an empty key is a key."""
        producer = store.create_producer("t")
        for key in ("käse", b"\xff", "", None):
            producer.send(b"x", key=key)
        assert [message.key for message in store.reader("t")] == ["käse".encode(), b"\xff", b"", None]

    def test_a_tombstone_is_no_empty_value(self, store: Store) -> None:
        """None and b"" are read as they were sent."""
        store.create_producer("t").send_batch([None, b"", b"x"])
        assert values(store) == [None, b"", b"x"]
