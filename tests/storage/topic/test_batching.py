"""Entries that are packed in one process and stored by another (`Producer.send_packed`)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage import AccessMode, IsolationLevel, Store
from storage.errors import InvalidValue, LostConflict, MessageTooLarge, ProducerFenced, TransactionNotOpen
from storage.limits import ENTRY_BYTES_TARGET, ENTRY_MESSAGES_MAX, MESSAGE_BYTES_MAX, WRITE_BYTES_TARGET
from storage.topic.batching import columns_of, commits_of, entries_of
from storage.topic.entry import Columns, PackedColumns
from tests.row_json import row_json
from tests.storage.conftest import Scratch

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
MESSAGES = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=8),
        st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
        st.none() | st.integers(0, (1 << 63) - 1),
    ),
    min_size=1,
    max_size=30,
)


def packed(*values: bytes | None) -> list[PackedColumns]:
    return entries_of(columns_of(values, None, None, None))


def seen(store: Store, topic: str, level: IsolationLevel = IsolationLevel.READ_COMMITTED) -> list[Any]:
    return [
        (message.value, message.key, message.properties, message.event_time, message.producer_name, message.sequence_id)
        for message in store.reader(topic, isolation_level=level)
    ]  # fmt: skip


class TestEquality:
    """What is packed elsewhere is stored as if it had been sent here."""

    @given(messages=MESSAGES, sequence=st.integers(0, 1 << 40), name=st.sampled_from(["p", "x" * 100]))
    def test_bodies_are_equal(self, messages: list[Any], sequence: int, name: str) -> None:
        """The body of packed columns is, byte for byte, the body of the columns."""
        columns = columns_of(*(list(column) for column in zip(*messages, strict=True)))
        (entry,) = entries_of(columns)
        assert entry.body(name, sequence) == columns.body(name, sequence)

    @given(messages=MESSAGES)
    def test_messages_are_equal(self, scratch: Scratch, messages: list[Any]) -> None:
        """A reader cannot tell a topic that was sent to from one that packed entries went to."""
        store = scratch.store
        values, keys, properties, times = (list(column) for column in zip(*messages, strict=True))
        for topic in ("sent", "adopted"):
            if not store.has_topic(topic):
                store.create_topic(topic)
        store.create_producer("sent", producer_name="p", connected=False).send_batch(
            values, keys=keys, properties=properties, event_times=times
        )
        store.create_producer("adopted", producer_name="p", connected=False).send_packed(
            entries_of(columns_of(values, keys, properties, times))
        )
        assert seen(store, "adopted") == seen(store, "sent")

    def test_they_are_cut_alike(self, store: Store) -> None:
        """Large and many messages become the same entries either way, and the receipts say so."""
        values = [b"x" * 1000] * 600 + [b"y" * (ENTRY_BYTES_TARGET + 1)] + [b""] * (ENTRY_MESSAGES_MAX + 1)
        store.create_topic("sent")
        sent = store.create_producer("sent").send_batch(values)
        adopted = store.create_producer("t").send_packed(packed(*values))
        assert adopted.entries == sent.entries
        assert (adopted.count, adopted.duplicates) == (len(values), 0)

    def test_the_names_sequence_goes_on(self, store: Store) -> None:
        """A named producer gives packed messages the ids after those that its name has used."""
        store.create_producer("t", producer_name="p", connected=False).send_batch([b"0", b"1"])
        receipt = store.create_producer("t", producer_name="p").send_packed(packed(b"2", b"3"))
        assert [message.sequence_id for message in store.reader("t")] == [0, 1, 2, 3]
        assert receipt.last_sequence_id == 3


class TestInATransaction:
    """They are the transaction's, like every message that is sent in it."""

    def test_visible_at_its_commit(self, store: Store) -> None:
        """Before it they are uncommitted, after it they are there."""
        producer = store.create_producer("t")
        with store.transaction() as txn:
            producer.send_packed(packed(b"a", b"b"), txn=txn)
            assert seen(store, "t") == []
            assert len(seen(store, "t", IsolationLevel.READ_UNCOMMITTED)) == 2
        assert [message.value for message in store.reader("t")] == [b"a", b"b"]
        assert row_json(store.reports.show_transaction(txn))["messages"] == 2

    def test_nothing_of_an_aborted_one(self, store: Store) -> None:
        """What was packed for a transaction that aborts is never seen, and its sequence ids are free again."""
        producer = store.create_producer("t", producer_name="p")
        txn = store.begin_transaction()
        producer.send_packed(packed(b"a"), txn=txn)
        store.admin.transactions.abort_transaction(txn, force=True)
        with pytest.raises(TransactionNotOpen):
            producer.send_packed(packed(b"b"), txn=txn)
        producer.send_packed(packed(b"c"))
        assert [(message.value, message.sequence_id) for message in store.reader("t")] == [(b"c", 0)]

    def test_after_what_it_kept(self, store: Store) -> None:
        """They come after what the transaction sent before, and before what it sends after."""
        producer = store.create_producer("t")
        with store.transaction() as txn:
            producer.send(b"1", txn=txn)
            producer.send_packed(packed(b"2"), txn=txn)
            producer.send(b"3", txn=txn)
        assert [message.value for message in store.reader("t")] == [b"1", b"2", b"3"]


class TestBounds:
    """They pass all that other messages pass."""

    def test_store_transactions_are_bounded(self, store: Store) -> None:
        """More than 8 MiB is stored in several durable commits."""
        producer, environment = store.create_producer("t"), store.connection.environment
        entries = packed(*[b"x" * 100_000] * (2 * WRITE_BYTES_TARGET // 100_000))
        before = environment.last_commit()
        producer.send_packed(entries)
        assert environment.last_commit() - before == 2

    def test_every_commit_but_the_last_is_full(self) -> None:
        """A commit is measured from its own begin, so that a long batch costs no flush for each entry."""
        entries = WRITE_BYTES_TARGET // ENTRY_BYTES_TARGET
        commits = commits_of([ENTRY_BYTES_TARGET] * (3 * entries + 1))
        assert [(start, len(stops)) for start, stops in commits] == [
            (0, entries), (entries, entries), (2 * entries, entries), (3 * entries, 1),
        ]  # fmt: skip

    def test_who_is_fenced_stores_nothing(self, store: Store) -> None:
        """A fenced producer's packed entries are refused, and its transaction is doomed."""
        producer = store.create_producer("t")
        txn = store.begin_transaction()
        store.create_producer("t", access_mode=AccessMode.EXCLUSIVE_WITH_FENCING).close()
        with pytest.raises(ProducerFenced):
            producer.send_packed(packed(b"late"), txn=txn)
        with pytest.raises((LostConflict, TransactionNotOpen)):
            store.commit_transaction(txn)
        assert seen(store, "t", IsolationLevel.READ_UNCOMMITTED) == []

    @pytest.mark.parametrize(
        "entry",
        [
            PackedColumns(1, b""),
            PackedColumns(1, b"\xc1"),
            PackedColumns(1, packed(b"a")[0].data + b"\0"),
            PackedColumns(1, packed(b"a")[0].data[:-1]),
            PackedColumns(2, packed(b"a")[0].data),
            PackedColumns(0, Columns([]).packed().data),
            PackedColumns(1, Columns(["text"]).packed().data),  # type: ignore[list-item]
            PackedColumns(1, Columns([b"a"], [b"k", b"l"]).packed().data),
            PackedColumns(1, Columns([b"a"], None, None, [-1]).packed().data),
            PackedColumns(1, Columns([b"a"], None, [{"n": 1}]).packed().data),  # type: ignore[dict-item]
            PackedColumns(1, Columns(b"a").packed().data),  # type: ignore[arg-type]
            PackedColumns(2, Columns([b"x" * ENTRY_BYTES_TARGET] * 2).packed().data),
            PackedColumns(ENTRY_MESSAGES_MAX + 1, Columns([b""] * (ENTRY_MESSAGES_MAX + 1)).packed().data),
        ],
    )
    def test_what_is_no_entry_is_refused(self, store: Store, entry: PackedColumns) -> None:
        """Bytes that no entry holds, or too many of them, are refused with everything that came with them."""
        with pytest.raises(InvalidValue):
            store.create_producer("t").send_packed([*packed(b"good"), entry])
        assert seen(store, "t", IsolationLevel.READ_UNCOMMITTED) == []

    def test_a_message_that_is_too_large(self, store: Store) -> None:
        """5 MiB is the limit, whoever packs."""
        entry = Columns([b"x" * (MESSAGE_BYTES_MAX + 1)]).packed()
        with pytest.raises(MessageTooLarge):
            store.create_producer("t").send_packed([entry])
        store.create_producer("t").send_packed(packed(b"x" * MESSAGE_BYTES_MAX))
        assert len(seen(store, "t")) == 1

    def test_nothing_to_send(self, store: Store) -> None:
        """No entry at all is an error, as no message is."""
        with pytest.raises(InvalidValue):
            store.create_producer("t").send_packed([])
