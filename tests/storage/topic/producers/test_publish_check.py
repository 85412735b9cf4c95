"""What taking a topic over does to transactions: a fenced one never makes a message visible (invariant 10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, IsolationLevel, Producer, Store, TxnID
from storage.disk.view import WriteBatch
from storage.errors import ProducerFenced, TransactionNotOpen, TxnctlError
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import ownership
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED, WAITING
from tests.storage.topic.producers.rivals import Rivals, assert_fenced, commits, topic_epoch

TakeOver = Callable[[Rivals, Producer, TxnID | None], Producer | None]


def by_fencing(rivals: Rivals, owner: Producer, txn: TxnID | None) -> Producer:
    return rivals.produce(FENCING, txn=txn)


def after_a_close(rivals: Rivals, owner: Producer, txn: TxnID | None) -> Producer:
    owner.close()
    return rivals.produce(EXCLUSIVE, txn=txn)


def after_waiting(rivals: Rivals, owner: Producer, txn: TxnID | None) -> Producer:
    waiter = rivals.wait(txn=txn)
    rivals.look()
    owner.close()
    rivals.look()
    if waiter.error is not None:
        raise waiter.error
    promoted: Producer = waiter.result
    return promoted


def at_once_though_it_would_wait(rivals: Rivals, owner: Producer, txn: TxnID | None) -> Producer:
    owner.close()
    return rivals.produce(WAITING, txn=txn)


def by_a_lease(rivals: Rivals, owner: Producer, txn: TxnID | None) -> Producer:
    process = rivals.open()
    token = row_json(process.open_session("t", access_mode=FENCING, txn=txn))["session"]
    return process.session_producer("t", token)


def by_the_operator(rivals: Rivals, owner: Producer, txn: TxnID | None) -> None:
    rivals.open().admin.producers.fence_producers("t")


TAKE_OVERS = [by_fencing, after_a_close, after_waiting, at_once_though_it_would_wait, by_a_lease]

by_every_take_over = pytest.mark.parametrize(
    "take_over", [*TAKE_OVERS, by_the_operator], ids=lambda f: f.__name__
)
by_every_new_owner = pytest.mark.parametrize("take_over", TAKE_OVERS, ids=lambda f: f.__name__)


@pytest.fixture(params=[EXCLUSIVE, SHARED])
def owner(request: pytest.FixtureRequest, rivals: Rivals) -> Producer:
    """Whoever has the topic at first."""
    return rivals.produce(request.param, producer_name="first")


def ended(store: Store, txn: TxnID) -> tuple[str, str | None]:
    shown = row_json(store.reports.show_transaction(txn))
    return shown["state"], shown["reason"]


ABORTED = ("ABORTED", "fenced")
OPEN = ("OPEN", None)


class TestTakeOver:
    """Every open transaction with messages of a lower epoch is aborted, in the same store transaction."""

    @by_every_take_over
    def test_the_transactions_of_the_fenced_are_aborted(
        self, store: Store, rivals: Rivals, owner: Producer, take_over: TakeOver
    ) -> None:
        """Whoever takes the topic over, and however; nothing of them ever shows, and they cannot be committed."""
        txns = [store.begin_transaction(timeout=3600) for _ in range(3)]
        for txn in txns:
            owner.send(b"doomed", txn=txn)
        successor = take_over(rivals, owner, None)
        assert [ended(store, txn) for txn in txns] == [ABORTED] * 3
        for txn in txns:
            with pytest.raises(TransactionNotOpen, match="fenced"):
                store.commit_transaction(txn)
        if successor is not None:
            successor.send(b"of the successor")
        assert [m.value for m in store.reader("t")] == ([b"of the successor"] if successor else [])

    def test_in_the_same_store_transaction(self, store: Store, rivals: Rivals, owner: Producer) -> None:
        """One commit grants the epoch and decides them all: in no state of the store are they apart (6, 10)."""
        txns = [store.begin_transaction(timeout=3600) for _ in range(10)]
        for txn in txns:
            owner.send(b"doomed", txn=txn)
        before = commits(store)
        rivals.produce(FENCING)
        seen = [ended(store, txn) for txn in txns]
        assert (commits(store), seen) == (before + 1, [ABORTED] * 10)

    def test_all_their_parts_are_decided(self, store: Store, rivals: Rivals, clock: ManualClock) -> None:
        """Messages on topics that nobody took over and acknowledgements too: it is one complete abort."""
        store.create_topic("u")
        store.create_producer("u").send(b"to be consumed")
        consumer = store.subscribe("u", "s", initial_position=EARLIEST)
        message = consumer.receive(timeout=0)
        owner, other = rivals.produce(EXCLUSIVE), rivals.produce(SHARED, "u")
        txn = store.begin_transaction(timeout=3600)
        owner.send(b"1", txn=txn)
        other.send(b"2", txn=txn)
        consumer.acknowledge(message, txn=txn)
        rivals.produce(FENCING)
        assert ended(store, txn) == ABORTED
        assert [row["kind"] for row in row_json(store.reports.topic_log("t"))] == ["messages", "abort"]
        assert [row["kind"] for row in row_json(store.reports.topic_log("u"))] == [
            "messages",
            "messages",
            "abort",
        ]
        stats = row_json(store.reports.subscription_stats("u", "s"))
        assert (stats["pending"], stats["msgBacklog"]) == (0, 1)
        assert row_json(store.reports.topic_stats("u"))["ongoingTxnCount"] == 0
        other.send(b"3")

    @by_every_new_owner
    def test_the_transaction_of_the_new_owner_is_spared(
        self, store: Store, rivals: Rivals, owner: Producer, take_over: TakeOver
    ) -> None:
        """The one named with `txn`, also with messages of its own of a lower epoch; it commits, and shows whole."""
        mine, others = store.begin_transaction(timeout=3600), store.begin_transaction(timeout=3600)
        owner.send(b"mine, before", txn=mine)
        owner.send(b"another's", txn=others)
        successor = take_over(rivals, owner, mine)
        assert successor is not None
        assert (ended(store, mine), ended(store, others)) == (OPEN, ABORTED)
        successor.send(b"mine, after", txn=mine)
        assert store.commit_transaction(mine) is True
        assert [message.value for message in store.reader("t")] == [b"mine, before", b"mine, after"]

    @by_every_take_over
    def test_a_spared_transaction_is_not_spared_twice(
        self, store: Store, rivals: Rivals, take_over: TakeOver
    ) -> None:
        """The next one that takes over does not name it."""
        mine = store.begin_transaction(timeout=3600)
        first = rivals.produce(EXCLUSIVE)
        first.send(b"1", txn=mine)
        second = rivals.produce(FENCING, txn=mine)
        second.send(b"2", txn=mine)
        take_over(rivals, second, None)
        assert ended(store, mine) == ABORTED
        assert list(store.reader("t")) == []

    @by_every_take_over
    def test_other_transactions_are_left_alone(
        self, store: Store, rivals: Rivals, owner: Producer, take_over: TakeOver
    ) -> None:
        """Those without messages on the topic: of other topics, with acknowledgements only, or with nothing."""
        store.create_topic("u")
        owner.send(b"x")
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        elsewhere, consuming, idle = (store.begin_transaction(timeout=3600) for _ in range(3))
        store.create_producer("u").send(b"elsewhere", txn=elsewhere)
        consumer.acknowledge(consumer.receive(timeout=0), txn=consuming)
        take_over(rivals, owner, None)
        for txn in (elsewhere, consuming, idle):
            assert ended(store, txn) == OPEN
            assert store.commit_transaction(txn) is True
        assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0

    @by_every_take_over
    def test_attached_transactions_are_no_exception(
        self, store: Store, rivals: Rivals, owner: Producer, take_over: TakeOver
    ) -> None:
        """The process that began it lives, and is told when it commits."""
        txn = store.transaction(timeout=3600)
        owner.send(b"doomed", txn=txn)
        txn.flush()
        take_over(rivals, owner, None)
        with pytest.raises(TransactionNotOpen, match="fenced"):
            txn.commit()
        assert ended(store, txn.id) == ABORTED
        assert b"doomed" not in [message.value for message in store.reader("t")]

    def test_what_a_transaction_keeps_of_a_fenced_producer_dooms_it(
        self, store: Store, owner: Producer
    ) -> None:
        """The take-over could not see it; the commit does, and nothing of the transaction is stored."""
        store.create_topic("u")
        other = store.create_producer("u")
        txn = store.transaction(timeout=3600)
        kept = other.send(b"elsewhere", txn=txn)
        owner.send(b"doomed", txn=txn)
        store.create_producer("t", access_mode="ExclusiveWithFencing")
        with pytest.raises(ProducerFenced):
            txn.commit()
        assert ended(store, txn.id) == ABORTED
        for topic in ("t", "u"):
            assert str(txn.id) not in [row["txnId"] for row in row_json(store.reports.topic_log(topic))]
        with pytest.raises(TransactionNotOpen):
            str(kept)
        with pytest.raises(ProducerFenced):
            owner.send(b"never", txn=store.transaction())

    @by_every_new_owner
    @pytest.mark.parametrize("which", ["over", "unknown", "overdue"])
    def test_a_transaction_that_cannot_be_spared_is_refused_first(
        self, store: Store, rivals: Rivals, take_over: TakeOver, which: str
    ) -> None:
        """Nobody is evicted for an owner that cannot produce in the transaction that it names."""
        owner, other = rivals.produce(EXCLUSIVE), store.begin_transaction(timeout=3600)
        owner.send(b"of another", txn=other)
        txn = store.begin_transaction(timeout=10)
        if which == "over":
            store.commit_transaction(txn)
        elif which == "overdue":
            rivals.clock.advance(11)
        named = TxnID(999) if which == "unknown" else txn
        epoch, refused = topic_epoch(store), []
        try:
            take_over(rivals, owner, named)
        except TxnctlError:
            refused.append(True)
        assert refused
        assert topic_epoch(store) == epoch
        assert ended(store, other) == OPEN
        if take_over is by_fencing:
            owner.send(b"undisturbed")

    def test_what_was_decided_before_stays_decided(self, store: Store, rivals: Rivals) -> None:
        """A commit acknowledged before the takeover is not undone by it (invariant 16)."""
        owner = rivals.produce(EXCLUSIVE)
        committed, aborted = store.begin_transaction(), store.begin_transaction()
        owner.send(b"committed", txn=committed)
        owner.send(b"aborted", txn=aborted)
        store.commit_transaction(committed)
        store.admin.transactions.abort_transaction(aborted)
        rivals.produce(FENCING).send(b"next")
        assert ended(store, committed) == ("COMMITTED", None)
        assert ended(store, aborted) == ("ABORTED", "asked")
        assert store.commit_transaction(committed) is False
        assert [message.value for message in store.reader("t")] == [b"committed", b"next"]

    def test_readers_never_saw_a_message_that_is_gone(self, store: Store, rivals: Rivals) -> None:
        """maxReadPosition stood before the transaction until the takeover, and passes it now (invariants 1, 2)."""
        owner = rivals.produce(EXCLUSIVE)
        owner.send(b"1")
        txn = store.begin_transaction(timeout=3600)
        owner.send(b"2", txn=txn)
        owner.send(b"3")
        assert [message.value for message in store.reader("t")] == [b"1"]
        rivals.produce(FENCING)
        assert [message.value for message in store.reader("t")] == [b"1", b"3"]
        everything = store.reader("t", isolation_level=IsolationLevel.READ_UNCOMMITTED)
        assert [message.value for message in everything] == [b"1", b"2", b"3"]

    def test_an_evicted_waiter_is_fenced_though_its_transaction_is_gone_too(
        self, store: Store, rivals: Rivals
    ) -> None:
        """The takeover that evicts it aborts the transaction that it named: that it is fenced is what it learns."""
        mine = store.begin_transaction(timeout=3600)
        rivals.produce(EXCLUSIVE).send(b"x", txn=mine)
        waiter = rivals.wait(txn=mine)
        rivals.produce(FENCING)
        rivals.look()
        assert isinstance(waiter.error, ProducerFenced)
        assert ended(store, mine) == ABORTED


class TestLeaving:
    """Leaving a topic is no takeover."""

    @pytest.mark.parametrize("mode", [EXCLUSIVE, SHARED])
    def test_a_transaction_outlives_the_close_of_its_producer(
        self, store: Store, rivals: Rivals, mode: str
    ) -> None:
        """As long as nobody takes the topic over, it may be committed; a Shared producer does not take over."""
        owner = rivals.produce(mode)
        txn = store.begin_transaction(timeout=3600)
        owner.send(b"1", txn=txn)
        owner.close()
        rivals.produce(SHARED).send(b"2")
        assert store.commit_transaction(txn) is True
        assert [message.value for message in store.reader("t")] == [b"1", b"2"]

    def test_a_detached_transaction_outlives_the_death_of_its_producer(
        self, store: Store, rivals: Rivals, clock: ManualClock
    ) -> None:
        """Nobody took over: its deadline alone rules."""
        process = rivals.open()
        txn = store.begin_transaction(timeout=3600)
        process.create_producer("t", access_mode=EXCLUSIVE).send(b"1", txn=txn)
        process.close()
        clock.advance(10)
        assert store.commit_transaction(txn) is True

    def test_waiting_for_the_topic_aborts_nothing_yet(self, store: Store, rivals: Rivals) -> None:
        """Only the promotion does."""
        owner = rivals.produce(EXCLUSIVE)
        waiter = rivals.wait()
        first, second = store.begin_transaction(timeout=3600), store.begin_transaction(timeout=3600)
        for txn in (first, second):
            owner.send(b"x", txn=txn)
        rivals.pass_time(5)
        assert store.commit_transaction(first) is True
        owner.close()
        assert ended(store, second) == OPEN
        rivals.look()
        assert waiter.result.topic_epoch == 1
        assert ended(store, second) == ABORTED


class TestFencedSend:
    """A fenced send dooms the transaction that it was meant for."""

    @by_every_take_over
    def test_it_aborts_the_transaction(self, store: Store, rivals: Rivals, take_over: TakeOver) -> None:
        """Though that has nothing on the topic yet: what it did elsewhere does not show without this message."""
        store.create_topic("u")
        owner, other = rivals.produce(EXCLUSIVE), rivals.produce(SHARED, "u")
        txn = store.begin_transaction(timeout=3600)
        other.send(b"part", txn=txn)
        take_over(rivals, owner, None)
        assert ended(store, txn) == OPEN
        if take_over in (after_a_close, after_waiting, at_once_though_it_would_wait):
            return  # it was closed, and knows it
        with pytest.raises(ProducerFenced):
            owner.send(b"refused", txn=txn)
        assert ended(store, txn) == ABORTED
        with pytest.raises(TransactionNotOpen):
            store.commit_transaction(txn)
        assert list(store.reader("u")) == list(store.reader("t")) == []

    def test_it_is_durable_when_it_is_told(
        self, store: Store, rivals: Rivals, path: str, clock: ManualClock
    ) -> None:
        """Another process sees the abort at once."""
        owner = rivals.produce(SHARED)
        rivals.produce(FENCING)
        txn = store.begin_transaction(timeout=3600)
        with pytest.raises(ProducerFenced):
            owner.send_batch([b"1", b"2"], txn=txn)
        with Store.open(path, read_only=True, clock=clock) as other:
            assert ended(other, txn) == ABORTED

    def test_a_fenced_send_of_a_bulk_leaves_nothing_in_sight(self, store: Store, rivals: Rivals) -> None:
        """The topic is taken over between two commits of one bulk: what was stored of it never shows."""
        owner = rivals.produce(EXCLUSIVE)
        txn = store.begin_transaction(timeout=3600)
        write, done = owner._connection.write, []

        def interfere(*arguments: object, **options: object) -> object:
            if len(done) == 1:
                done.append("taken over")
                rivals.produce(FENCING)
            result = write(*arguments, **options)  # type: ignore[arg-type]
            done.append("written")
            return result

        owner._connection.write = interfere  # type: ignore[method-assign, assignment]
        with pytest.raises((ProducerFenced, TransactionNotOpen)):
            owner.send_batch([b"x" * 1024 * 1024] * 20, txn=txn)
        owner._connection.write = write  # type: ignore[method-assign]
        assert done == ["written", "taken over"]
        assert ended(store, txn) == ABORTED
        assert list(store.reader("t")) == []

    def test_a_plain_send_of_a_fenced_producer_dooms_nothing(self, store: Store, rivals: Rivals) -> None:
        """There is no transaction that it could be missing in."""
        owner = rivals.produce(EXCLUSIVE)
        rivals.produce(FENCING)
        txn = store.begin_transaction(timeout=3600)
        assert_fenced(owner)
        assert store.commit_transaction(txn) is True

    def test_a_busy_send_dooms_nothing(self, store: Store, rivals: Rivals) -> None:
        """A producer that connects per send and finds an owner was never fenced."""
        rivals.produce(EXCLUSIVE)
        visitor = store.create_producer("t", connected=False)
        txn = store.begin_transaction(timeout=3600)
        with pytest.raises(TxnctlError) as caught:
            visitor.send(b"x", txn=txn)
        assert caught.value.code == "producer-busy"
        assert store.commit_transaction(txn) is True


class TestCommit:
    """A commit checks the epochs again: the last line of defence."""

    def test_a_commit_with_messages_of_a_fenced_epoch_fails(self, store: Store, rivals: Rivals) -> None:
        """Were a takeover to leave such a transaction open, its commit would abort it."""
        owner = rivals.produce(EXCLUSIVE)
        txn = store.begin_transaction(timeout=3600)
        owner.send(b"old", txn=txn)
        owner.close()
        raise_epoch_behind_everybodys_back(store)
        with pytest.raises(ProducerFenced):
            store.commit_transaction(txn)
        assert ended(store, txn) == ABORTED
        assert list(store.reader("t")) == []


def raise_epoch_behind_everybodys_back(store: Store) -> None:
    """A takeover that forgot the transactions; the history is kept whole."""

    def change(batch: WriteBatch) -> None:
        topic = topics.get(batch, "t")
        opened = OpenTopic.load(batch, topic.topic_id)
        opened.state.epoch += 1
        ownership.grant(opened, None, "fence", store.connection.identity, 0)
        ownership.end(opened, "closed")

    store.connection.write(change)
