"""Topic creation: a topic, and the connection of its producer, come with the first message or not at all."""

from __future__ import annotations

import pytest

from storage import AccessMode, Store, TxnID
from storage.errors import (
    InvalidName,
    LostConflict,
    MessageTooLarge,
    ProducerBusy,
    SessionNotFound,
    TransactionNotOpen,
    TransactionTimedOut,
)
from storage.limits import MESSAGE_BYTES_MAX
from storage.process.clock import ManualClock

EVERY_MODE = pytest.mark.parametrize("mode", AccessMode)


def commits(store: Store) -> int:
    return store.reports.store_info().commits


class TestLate:
    """With a topic that is missing."""

    @EVERY_MODE
    def test_the_first_message_creates_it_in_one_commit(self, store: Store, mode: AccessMode) -> None:
        """Topic, connection and message are one store transaction; then the producer is connected."""
        before = commits(store)
        producer = store.create_producer("new", access_mode=mode, producer_name="p", create_late=True)
        assert (producer.topic, producer.producer_name, producer.access_mode) == ("new", "p", mode)
        assert (producer.session, producer.topic_epoch) == (None, None)
        assert (store.topics(), commits(store)) == (["t"], before)
        producer.send(b"first")
        assert commits(store) == before + 1
        (row,) = store.reports.list_producers("new")
        assert row.producer_name == "p"
        assert producer.session is not None
        assert producer.topic_epoch == (0 if mode.is_exclusive else None)
        producer.send(b"second")
        producer.close()
        assert [message.value for message in store.reader("new")] == [b"first", b"second"]
        assert store.reports.list_producers("new") == []

    @EVERY_MODE
    def test_without_a_message_nothing_is_left(self, store: Store, mode: AccessMode) -> None:
        """Neither a refused message nor a producer that is closed creates anything."""
        before = commits(store)
        producer = store.create_producer("new", access_mode=mode, create_late=True)
        with pytest.raises(MessageTooLarge):
            producer.send(b"x" * (MESSAGE_BYTES_MAX + 1))
        producer.close()
        assert (store.has_topic("new"), commits(store)) == (False, before)

    @EVERY_MODE
    def test_a_refused_transaction_leaves_its_end_alone(
        self, store: Store, clock: ManualClock, mode: AccessMode
    ) -> None:
        """A durable refusal undoes the creation: the topic's name, number, epoch and session."""
        ended, late = store.begin_transaction(), store.begin_transaction(timeout=5)
        store.commit_transaction(ended)
        clock.advance(6)
        producer = store.create_producer("new", access_mode=mode, producer_name="p", create_late=True)
        for txn, error in ((ended, TransactionNotOpen), (late, TransactionTimedOut)):
            with pytest.raises(error):
                producer.send(b"x", txn=txn)
            assert not store.has_topic("new")
        assert store.reports.show_transaction(late).row.reason == "timed-out"
        producer.send(b"x")
        assert store.has_topic("new")

    def test_a_topic_that_was_deleted_before_stays_so(self, store: Store, clock: ManualClock) -> None:
        """Its ledgers and epochs go on counting, whether the first attempt was refused or not."""
        store.create_producer("new", access_mode="Exclusive", create_late=True).send(b"x")
        store.admin.topics.delete_topic("new", force=True)
        late = store.begin_transaction(timeout=5)
        clock.advance(6)
        producer = store.create_producer("new", access_mode="Exclusive", create_late=True)
        with pytest.raises(TransactionTimedOut):
            producer.send(b"x", txn=late)
        assert not store.has_topic("new")
        assert (producer.send(b"x").ledger_id, producer.topic_epoch) == (2, 1)

    @pytest.mark.parametrize("connected", [True, False])
    def test_a_buffered_message_creates_it_with_the_commit(self, store: Store, connected: bool) -> None:
        """And an abort leaves nothing."""
        producer = store.create_producer("new", create_late=True, connected=connected)
        txn = store.transaction()
        producer.send(b"x", txn=txn)
        assert not store.has_topic("new")
        txn.abort()
        assert not store.has_topic("new")
        with store.transaction() as txn:
            producer.send(b"x", txn=txn)
        assert [message.value for message in store.reader("new")] == [b"x"]

    def test_a_lost_conflict_creates_nothing(self, store: Store) -> None:
        """The doom over a key undoes a topic that the same commit would create."""
        store.create_table("a")
        store.table("a").put(b"k", b"1", txn=store.begin_transaction(priority="highest"))
        producer = store.create_producer("new", create_late=True)
        txn = store.transaction()
        producer.send(b"x", txn=txn)
        store.table("a").put(b"k", b"2", txn=txn)
        with pytest.raises(LostConflict):
            txn.commit()
        assert not store.has_topic("new")

    def test_two_producers_create_it_once(self, store: Store) -> None:
        """In one commit, or one after the other."""
        one, two, three = (store.create_producer("new", create_late=True) for _ in range(3))
        with store.transaction() as txn:
            one.send(b"1", txn=txn)
            two.send(b"2", txn=txn)
        three.send(b"3")
        assert [message.value for message in store.reader("new")] == [b"1", b"2", b"3"]
        assert len(store.reports.list_producers("new")) == 3

    def test_a_topic_that_came_meanwhile_is_kept_by_its_owner(self, store: Store) -> None:
        """Nobody waits within a commit; a take-over takes over."""
        late = {mode: store.create_producer("new", access_mode=mode, create_late=True) for mode in AccessMode}
        owner = store.create_producer("new", access_mode="Exclusive", create_late=True)
        owner.send(b"owner")
        for mode in (AccessMode.SHARED, AccessMode.EXCLUSIVE, AccessMode.WAIT_FOR_EXCLUSIVE):
            with pytest.raises(ProducerBusy):
                late[mode].send(b"x")
        late[AccessMode.EXCLUSIVE_WITH_FENCING].send(b"new owner")
        assert [message.value for message in store.reader("new")] == [b"owner", b"new owner"]


class TestAtOnce:
    """What is done before the first message."""

    @EVERY_MODE
    def test_a_leader_leads_from_its_connection_on(self, store: Store, mode: AccessMode) -> None:
        """With `create_topic` topic and connection are one store transaction."""
        before = commits(store)
        producer = store.create_producer("new", access_mode=mode, create_topic=True)
        assert (commits(store), producer.session is not None) == (before + 1, True)

    def test_names_and_sessions_are_checked(self, store: Store) -> None:
        """A name that none may have, and a session of a topic that is not there."""
        with pytest.raises(InvalidName):
            store.create_producer("a b", create_late=True)
        session = store.open_session("t").session
        with pytest.raises(SessionNotFound):
            store.create_producer("new", access_mode="Exclusive", resume=session, create_late=True)
        assert not store.has_topic("new")

    def test_a_session_of_the_shell_creates_its_topic(self, store: Store, clock: ManualClock) -> None:
        """It is the only thing that the call writes; a transaction that is refused leaves no topic there either."""
        late: TxnID = store.begin_transaction(timeout=5)
        clock.advance(6)
        with pytest.raises(TransactionTimedOut):
            store.open_session("new", txn=late, create_topic=True)
        assert not store.has_topic("new")
        store.open_session("new", create_topic=True)
        assert store.has_topic("new")
