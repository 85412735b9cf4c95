"""Producing: messages, batches, sequence ids, bounds (semantics section 2)."""

from __future__ import annotations

from typing import Any

import pytest

from storage import DUPLICATE, IsolationLevel, Producer, Store
from storage.errors import (
    BadInput,
    InvalidValue,
    MessageTooLarge,
    ProducerFenced,
    SequenceConflict,
    StoreClosed,
    TopicNotFound,
)
from storage.limits import MESSAGE_BYTES_MAX
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.producer_steps import values

RU = IsolationLevel.READ_UNCOMMITTED


class TestSequenceIds:
    """Deduplicated per producer name and per message, where the caller gives them."""

    @pytest.fixture
    def producer(self, store: Store) -> Producer:
        """A producer with a name."""
        return store.create_producer("t", producer_name="p")

    def test_a_resent_id_is_not_stored_again(self, store: Store, producer: Producer) -> None:
        """By another handle of the same name neither; the answer says so."""
        producer.send(b"x", sequence_id=7)
        assert producer.send(b"again", sequence_id=7) == DUPLICATE
        producer.close()
        assert store.create_producer("t", producer_name="p").send(b"again", sequence_id=7) == DUPLICATE
        assert values(store) == [b"x"]
        assert str(DUPLICATE) == "-1:-1"

    def test_lower_ids_that_were_never_used_are_taken(self, store: Store, producer: Producer) -> None:
        """Not the highest counts, but each id."""
        for sequence_id in (9, 3, 5):
            assert producer.send(b"%d" % sequence_id, sequence_id=sequence_id) != DUPLICATE
        assert values(store) == [b"9", b"3", b"5"]

    def test_the_store_assigns_the_next(self, store: Store, producer: Producer) -> None:
        """Above the highest in use, also one that was given."""
        producer.send(b"a")
        producer.send(b"b", sequence_id=10)
        producer.send_batch([b"c", b"d"])
        assert [message.sequence_id for message in store.reader("t")] == [0, 10, 11, 12]
        assert producer.last_sequence_id == 12

    def test_an_id_of_an_open_transaction_is_a_conflict(self, store: Store, producer: Producer) -> None:
        """Naming the transaction; nothing of the batch is stored. In the same transaction it is a duplicate."""
        txn, other = store.begin_transaction(), store.begin_transaction()
        producer.send(b"x", sequence_id=1, txn=txn)
        for within in (None, other):
            with pytest.raises(SequenceConflict) as caught:
                producer.send_batch([b"0", b"1"], sequence_ids=[0, 1], txn=within)
            assert (caught.value.details["transaction"], caught.value.details["sequenceId"]) == (str(txn), 1)
        assert producer.send(b"x", sequence_id=1, txn=txn) == DUPLICATE
        assert [m.value for m in store.reader("t", isolation_level=RU)] == [b"x"]

    def test_ids_of_an_aborted_transaction_are_free_again(self, store: Store, producer: Producer) -> None:
        """Also below higher ones."""
        txn = store.begin_transaction()
        producer.send_batch([b"1", b"2", b"3"], sequence_ids=[1, 2, 3], txn=txn)
        producer.send(b"4", sequence_id=4)
        store.admin.transactions.abort_transaction(txn)
        for sequence_id in (2, 1, 3):
            assert producer.send(b"%d" % sequence_id, sequence_id=sequence_id) != DUPLICATE
        assert values(store) == [b"4", b"2", b"1", b"3"]

    def test_ids_of_a_committed_transaction_count(self, store: Store, producer: Producer) -> None:
        """As if they had been plain (invariant 20)."""
        with store.transaction() as txn:
            producer.send_batch([b"1", b"2"], sequence_ids=[1, 2], txn=txn)
        assert producer.send_batch([b"x"] * 3, sequence_ids=[1, 2, 3]).count == 1

    def test_names_and_topics_have_ids_of_their_own(self, store: Store, producer: Producer) -> None:
        """The same id under another name or on another topic is another message."""
        store.create_topic("u")
        producer.send(b"x", sequence_id=1)
        assert store.create_producer("t", producer_name="q").send(b"x", sequence_id=1) != DUPLICATE
        assert store.create_producer("u", producer_name="p").send(b"x", sequence_id=1) != DUPLICATE

    def test_they_survive_closing_the_store(
        self, store: Store, producer: Producer, path: str, clock: ManualClock
    ) -> None:
        """A client that lost the answer asks again, however later (invariant 15)."""
        producer.send(b"x", sequence_id=5)
        store.close()
        with Store.open(path, clock=clock) as again:
            assert again.create_producer("t", producer_name="p").send(b"x", sequence_id=5) == DUPLICATE

    def test_without_a_name_there_is_nothing_to_deduplicate(self, store: Store) -> None:
        """Sequence ids need a producer name of the caller's, for who re-sends has another made-up one."""
        with pytest.raises(InvalidValue):
            store.create_producer("t").send(b"x", sequence_id=1)

    @pytest.mark.parametrize("sequence_id", [-1, 1 << 63, 1.5, True, "1"])
    def test_what_is_no_sequence_id_is_refused(
        self, store: Store, producer: Producer, sequence_id: Any
    ) -> None:
        """Whole numbers from 0 on."""
        with pytest.raises(InvalidValue):
            producer.send(b"x", sequence_id=sequence_id)
        assert values(store) == []

    def test_the_highest_id_is_an_id(self, store: Store, producer: Producer) -> None:
        """What follows it is assigned no id that wraps round."""
        highest = (1 << 63) - 1
        producer.send(b"x", sequence_id=highest)
        assert producer.send(b"x", sequence_id=highest) == DUPLICATE
        producer.send(b"y")
        assert [message.sequence_id for message in store.reader("t")] == [highest, highest + 1]


class TestRefused:
    """Bad input stores nothing (invariant 24)."""

    @pytest.mark.parametrize(
        "arguments",
        [
            {"values": []},
            {"values": ["text"]},
            {"values": [bytearray(b"x")]},
            {"values": [1]},
            {"values": b"bytes"},
            {"values": [b"x"], "keys": []},
            {"values": [b"x"], "keys": [1]},
            {"values": [b"x"], "keys": ["\ud800"]},
            {"values": [b"x"], "properties": [{"a": 1}]},
            {"values": [b"x"], "properties": [{1: "a"}]},
            {"values": [b"x"], "properties": [{"a": "\ud800"}]},
            {"values": [b"x"], "properties": ["text"]},
            {"values": [b"x"], "properties": [{str(i): "" for i in range(1025)}]},
            {"values": [b"x"], "event_times": [-1]},
            {"values": [b"x"], "event_times": [1 << 63]},
            {"values": [b"x"], "event_times": [1.5]},
            {"values": [b"x"], "event_times": [True]},
            {"values": [b"x", b"y"], "event_times": [1]},
            {"values": [b"good", "bad"]},
        ],
    )
    def test_of_every_kind(self, store: Store, arguments: dict[str, Any]) -> None:
        """Wrong types, lengths, texts and numbers are InvalidValue, and the good part is not stored either."""
        producer = store.create_producer("t", producer_name="p")
        with pytest.raises(InvalidValue):
            producer.send_batch(arguments.pop("values"), **arguments)
        assert list(row_json(store.reports.topic_log("t"))) == []
        producer.send(b"x")
        assert [message.sequence_id for message in store.reader("t")] == [0]

    def test_a_message_has_a_bounded_size(self, store: Store) -> None:
        """5 MiB of value, key and properties together; the message is named by its place."""
        producer = store.create_producer("t")
        producer.send(b"x" * MESSAGE_BYTES_MAX)
        producer.send(b"x" * (MESSAGE_BYTES_MAX - 4), key="kk", properties={"a": "b"})
        for sent in (
            {"values": [b"", b"x" * (MESSAGE_BYTES_MAX + 1)]},
            {
                "values": [b"", b"x" * (MESSAGE_BYTES_MAX - 4)],
                "keys": [None, "kkk"],
                "properties": [None, {"a": "b"}],
            },
        ):
            with pytest.raises(MessageTooLarge) as caught:
                producer.send_batch(**sent)
            assert (caught.value.details["index"], caught.value.details["bytes"]) == (
                1,
                MESSAGE_BYTES_MAX + 1,
            )
        assert len(values(store)) == 2

    def test_there_must_be_the_topic(self, store: Store) -> None:
        """A producer creates none unless asked to."""
        with pytest.raises(TopicNotFound):
            store.create_producer("u")
        for _ in range(2):
            store.create_producer("u", create_topic=True).send(b"x")
        assert values(store, "u") == [b"x", b"x"]

    def test_a_topic_that_was_deleted_meanwhile(self, store: Store) -> None:
        """Its producers cannot publish on its successor of the same name."""
        producer = store.create_producer("t")
        producer.send(b"x")
        store.admin.topics.delete_topic("t", force=True)
        with pytest.raises(TopicNotFound):
            producer.send(b"y")
        store.create_topic("t")
        with pytest.raises(ProducerFenced):
            producer.send(b"y")
        assert values(store) == []

    def test_a_closed_producer_sends_nothing(self, store: Store) -> None:
        """After `close`, or the end of its block; flushing was never needed."""
        with store.create_producer("t") as producer:
            producer.send(b"x")
            producer.flush()
        with pytest.raises(StoreClosed):
            producer.send(b"y")
        assert values(store) == [b"x"]

    def test_bad_input_is_no_matter_of_the_transaction(self, store: Store) -> None:
        """Neither a bad message nor an unknown id in a list changes the transaction's part."""
        txn = store.begin_transaction()
        producer = store.create_producer("t")
        with pytest.raises(BadInput):
            producer.send_batch([b"x", 1], txn=txn)  # type: ignore[list-item]
        assert row_json(store.reports.show_transaction(txn))["version"] == 1
        store.commit_transaction(txn)
        assert list(row_json(store.reports.topic_log("t"))) == []
