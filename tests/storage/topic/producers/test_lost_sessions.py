"""Sessions that were lost: fenced for good, or coming back; and what becomes of what they had begun (section 6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Producer, Store, TxnID
from storage.errors import (
    InvalidName,
    ProducerBusy,
    ProducerFenced,
    SessionNotFound,
    StoreClosed,
    TransactionNotOpen,
    TxnctlError,
    WriterBusy,
)
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, MODES, SHARED, WAITING
from tests.storage.topic.producers.rivals import (
    Rivals,
    TurnClock,
    assert_fenced,
    commits,
    epochs,
    lease,
    records,
)


def borrow(rivals: Rivals, token: str) -> Producer:
    """A command that publishes through a session."""
    return rivals.open().session_producer("t", token)


def values(store: Store) -> list[bytes | None]:
    return [message.value for message in store.reader("t")]


class TestFencedForGood:
    """A ProducerFenced is never taken back."""

    def test_a_waiter_that_came_and_went(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """The lease had ended and somebody waited, who was interrupted: refused once, refused for ever."""
        token = lease(rivals, 10)
        waiter = rivals.wait()
        clock.advance(20)
        producer = borrow(rivals, token)
        with pytest.raises(ProducerFenced):
            producer.send(b"never stored")
        waiter.interrupt()
        assert_fenced(producer)
        with pytest.raises(ProducerFenced):
            borrow(rivals, token).send(b"never stored")
        with pytest.raises(ProducerFenced):
            rivals.produce(EXCLUSIVE, resume=token)
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1

    def test_a_leader_that_came_back_after_its_command_was_refused(
        self, store: Store, rivals: Rivals
    ) -> None:
        """What it left behind was refused and stays so; that costs it nothing: it resumes, by another token."""
        process = rivals.open()
        leader = process.create_producer("t", access_mode=EXCLUSIVE)
        borrower = borrow(rivals, leader.session)
        process.close()
        assert_fenced(borrower)
        again = rivals.produce(EXCLUSIVE, resume=leader.session)
        assert (again.topic_epoch, again.session != leader.session) == (0, True)
        assert_fenced(borrower)

    def test_a_handle_stays_fenced_though_its_session_comes_back(self, store: Store, rivals: Rivals) -> None:
        """The leader connects again, by a new token: what it had started before is out, and no message of it comes late."""
        process = rivals.open()
        leader = process.create_producer("t", access_mode=EXCLUSIVE)
        leader.send(b"1")
        borrower = borrow(rivals, leader.session)
        process.close()
        again = rivals.produce(EXCLUSIVE, resume=leader.session)
        assert again.session != leader.session
        assert again.topic_epoch == 0
        assert_fenced(borrower)
        for call in (
            lambda: borrow(rivals, leader.session).send(b"x"),
            lambda: row_json(store.admin.producers.close_session(leader.session)),
        ):
            with pytest.raises((ProducerFenced, SessionNotFound)):
                call()
        again.send(b"2")
        borrow(rivals, again.session).send(b"3")
        assert values(store) == [b"1", b"2", b"3"]
        assert epochs(store) == [0, 0, 0]

    def test_the_old_token_resumes_nothing(self, store: Store, rivals: Rivals) -> None:
        """Also when the second connection is lost as well."""
        process = rivals.open()
        first = process.create_producer("t", access_mode=EXCLUSIVE)
        process.close()
        process = rivals.open()
        second = process.create_producer("t", access_mode=EXCLUSIVE, resume=first.session)
        process.close()
        with pytest.raises(ProducerFenced):
            rivals.produce(EXCLUSIVE, resume=first.session)
        assert rivals.produce(EXCLUSIVE, resume=second.session).topic_epoch == 0

    def test_silent_shared_producers_only_delay(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """While they are connected the owner whose lease ended is refused as busy; it goes on when they have left."""
        token = lease(rivals, 10)
        producer = borrow(rivals, token)
        producer.send(b"1")
        clock.advance(20)
        shared = rivals.produce(SHARED, producer_name="silent")
        for _ in range(2):
            with pytest.raises(ProducerBusy, match="silent"):
                producer.send(b"not now")
        shared.close()
        producer.send(b"2")
        assert (values(store), epochs(store)) == ([b"1", b"2"], [0, 0])
        assert producer.session == token, "a lease that just goes on keeps its token"

    def test_a_busy_publish_dooms_no_transaction(
        self, store: Store, rivals: Rivals, clock: TurnClock
    ) -> None:
        """It may still go on."""
        token, txn = lease(rivals, 10), store.begin_transaction(timeout=3600)
        borrow(rivals, token).send(b"1", txn=txn)
        clock.advance(20)
        with rivals.produce(SHARED), pytest.raises(ProducerBusy):
            borrow(rivals, token).send(b"2", txn=txn)
        borrow(rivals, token).send(b"2", txn=txn)
        assert store.commit_transaction(txn) is True
        assert values(store) == [b"1", b"2"]

    def test_what_is_refused_for_good_is_durable(
        self, store: Store, rivals: Rivals, clock: TurnClock, path: str
    ) -> None:
        """It holds after a restart: it is in the store, not in a process."""
        token = lease(rivals, 10)
        waiter = rivals.wait()
        clock.advance(20)
        with pytest.raises(ProducerFenced):
            borrow(rivals, token).send(b"never stored")
        waiter.interrupt()
        rivals.close()
        store.close()
        with Store.open(path, clock=clock) as again:
            with pytest.raises(ProducerFenced):
                again.session_producer("t", token).send(b"never stored")
            assert values(again) == []

    def test_whoever_is_refused_because_others_wait_takes_its_transactions_with_it(
        self, store: Store, rivals: Rivals, clock: TurnClock
    ) -> None:
        """It is fenced from that refusal on, so nothing that it had begun may be committed after it."""
        token, txn = lease(rivals, 10), store.begin_transaction(timeout=3600)
        borrow(rivals, token).send(b"never seen", txn=txn)
        rivals.wait()
        clock.advance(20)
        with pytest.raises(ProducerFenced):
            borrow(rivals, token).send(b"never stored")
        shown = row_json(store.reports.show_transaction(txn))
        assert (shown["state"], shown["reason"]) == ("ABORTED", "fenced")
        with pytest.raises(TransactionNotOpen):
            store.commit_transaction(txn)
        assert values(store) == []


class TestSharedLeases:
    """A Shared session whose lease has ended owned nothing that could be lost."""

    def test_it_comes_back_whoever_shared_the_topic(
        self, store: Store, rivals: Rivals, clock: TurnClock
    ) -> None:
        """Others may have connected and published meanwhile."""
        token = lease(rivals, 10, access_mode=SHARED, producer_name="script")
        borrow(rivals, token).send(b"1")
        clock.advance(20)
        with rivals.produce(SHARED) as other:
            other.send(b"between")
            borrow(rivals, token).send(b"2")
        messages = list(store.reader("t"))
        assert [(m.value, m.epoch) for m in messages] == [(b"1", -1), (b"between", -1), (b"2", -1)]
        assert [m.sequence_id for m in messages if m.producer_name == "script"] == [0, 1]

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    def test_it_is_over_when_an_exclusive_producer_came(
        self, store: Store, rivals: Rivals, clock: TurnClock, mode: str
    ) -> None:
        """Also when that one has left: the epoch is another."""
        token = lease(rivals, 10, access_mode=SHARED)
        clock.advance(20)
        rivals.produce(mode).close()
        with pytest.raises(ProducerFenced):
            borrow(rivals, token).send(b"never stored")
        assert values(store) == []

    def test_it_is_busy_while_somebody_waits(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """As any Shared producer is; it has lost nothing, and goes on when the queue is empty again."""
        token = lease(rivals, 10, access_mode=SHARED)
        rivals.produce(SHARED)
        waiter = rivals.wait(producer_name="patient")
        clock.advance(20)
        with pytest.raises(ProducerBusy, match="patient"):
            borrow(rivals, token).send(b"not now")
        waiter.interrupt()
        borrow(rivals, token).send(b"now")
        assert values(store) == [b"now"]

    def test_its_name_may_be_taken(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """While another bears it, it is busy; afterwards it goes on."""
        token = lease(rivals, 10, access_mode=SHARED, producer_name="p")
        clock.advance(20)
        with rivals.produce(SHARED, producer_name="p") as other:
            with pytest.raises(ProducerBusy):
                borrow(rivals, token).send(b"not now")
            other.send(b"1")
            assert store.maintenance.verify_store(full=True) == [], (
                "one that may come back bears no name meanwhile"
            )
        borrow(rivals, token).send(b"2")
        assert [(m.value, m.sequence_id) for m in store.reader("t")] == [(b"1", 0), (b"2", 1)]


Lost = Callable[[Rivals, ManualClock, TxnID], str]


def died(rivals: Rivals, clock: ManualClock, txn: TxnID) -> str:
    process = rivals.open()
    owner = process.create_producer("t", access_mode=EXCLUSIVE)
    owner.send(b"of the lost", txn=txn)
    process.close()
    assert owner.session is not None
    return owner.session


def expired(rivals: Rivals, clock: ManualClock, txn: TxnID) -> str:
    token = lease(rivals, 10)
    borrow(rivals, token).send(b"of the lost", txn=txn)
    clock.advance(20)
    return token


by_every_loss = pytest.mark.parametrize("lost", [died, expired], ids=lambda f: f.__name__)


class TestWhatItHadBegun:
    """An owner that is gone without a close: its open transactions end when others publish, not when they look."""

    @by_every_loss
    @pytest.mark.parametrize("connected", [True, False])
    def test_the_first_message_of_another_ends_them(
        self, store: Store, rivals: Rivals, clock: TurnClock, lost: Lost, connected: bool
    ) -> None:
        """In its store transaction: the lost owner cannot go on, so nothing of it may show in what is past then."""
        txns = [store.begin_transaction(timeout=3600) for _ in range(2)]
        lost(rivals, clock, txns[0])
        with store.create_producer("t", connected=connected) as other:
            assert row_json(store.reports.show_transaction(txns[0]))["state"] == "OPEN"
            before = commits(store)
            other.send(b"of another", txn=txns[1])
            assert commits(store) == before + 1
        shown = row_json(store.reports.show_transaction(txns[0]))
        assert (shown["state"], shown["reason"]) == ("ABORTED", "fenced")
        with pytest.raises(TransactionNotOpen):
            store.commit_transaction(txns[0])
        assert store.commit_transaction(txns[1]) is True
        assert (values(store), epochs(store)) == ([b"of another"], [0, 0])

    @by_every_loss
    def test_the_publishers_own_goes_on(
        self, store: Store, rivals: Rivals, clock: TurnClock, lost: Lost
    ) -> None:
        """Who publishes in that very transaction takes it over: it is one piece of work by several commands."""
        txn = store.begin_transaction(timeout=3600)
        lost(rivals, clock, txn)
        with store.create_producer("t") as other:
            other.send(b"of another", txn=txn)
        assert store.commit_transaction(txn) is True
        assert values(store) == [b"of the lost", b"of another"]

    @by_every_loss
    def test_they_may_be_committed_before(
        self, store: Store, rivals: Rivals, clock: TurnClock, lost: Lost
    ) -> None:
        """As long as nobody published or took over, though others are connected."""
        txn = store.begin_transaction(timeout=3600)
        lost(rivals, clock, txn)
        with store.create_producer("t") as other:
            assert store.commit_transaction(txn) is True
            other.send(b"after")
        assert values(store) == [b"of the lost", b"after"]

    @by_every_loss
    def test_they_go_on_with_it(self, store: Store, rivals: Rivals, clock: TurnClock, lost: Lost) -> None:
        """If it comes back in time."""
        txn = store.begin_transaction(timeout=3600)
        again = rivals.produce(EXCLUSIVE, resume=lost(rivals, clock, txn))
        again.send(b"and more", txn=txn)
        assert store.commit_transaction(txn) is True
        assert values(store) == [b"of the lost", b"and more"]


class TestTokens:
    """Which session a token is of."""

    def test_of_another_store(
        self, store: Store, rivals: Rivals, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """With a topic of the same name and id, and a session of the same number: it is not there."""
        other_path = str(tmp_path_factory.mktemp("other") / "store")
        Store.create(other_path)
        with Store.open(other_path) as other:
            other.create_topic("t")
            token = other.create_producer("t", access_mode=EXCLUSIVE).session
            mine = rivals.produce(EXCLUSIVE)
            assert mine.session is not None
            assert token is not None
            assert mine.session.split("-")[1:3] == token.split("-")[1:3]
            before = records(store)
            for call in (
                lambda: store.session_producer("t", token),
                lambda: row_json(store.reports.show_session(token)),
                lambda: row_json(store.admin.producers.close_session(token)),
                lambda: store.create_producer("t", access_mode=EXCLUSIVE, resume=token),
            ):
                with pytest.raises(SessionNotFound):
                    call()
            assert records(store) == before

    def test_of_another_topic(self, store: Store, rivals: Rivals) -> None:
        """It is found nowhere but on its own."""
        store.create_topic("u")
        token = rivals.produce(EXCLUSIVE, "u").session
        for call in (
            lambda: store.session_producer("t", token),
            lambda: store.create_producer("t", access_mode=EXCLUSIVE, resume=token),
        ):
            with pytest.raises(SessionNotFound):
                call()

    @pytest.mark.parametrize("mode", MODES)
    def test_of_a_topic_that_was_created_again(self, store: Store, rivals: Rivals, mode: str) -> None:
        """Fenced, whatever it is used for."""
        token = lease(rivals, 10, access_mode=mode)
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        for call in (
            lambda: store.session_producer("t", token),
            lambda: store.create_producer("t", access_mode=EXCLUSIVE, resume=token),
        ):
            with pytest.raises(ProducerFenced):
                call()

    @pytest.mark.parametrize("mode", MODES)
    def test_the_names_of_letters_are_the_stores_own(self, store: Store, mode: str) -> None:
        """Dead letters are written under them, whoever owns the topic: nobody can pass for the store."""
        with pytest.raises(InvalidName):
            store.create_producer("t", access_mode=mode, producer_name="dead-letter-x")


class TestLeaving:
    """Nothing keeps a topic that nobody has a handle for."""

    def test_a_close_that_failed_is_repeated(self, store: Store, path: str, clock: TurnClock) -> None:
        """The writer gate was not free: nothing can be sent any more, and the second close leaves the topic."""
        owner = store.create_producer("t", access_mode=EXCLUSIVE)
        write, calls = store.connection.write, []

        def busy(*arguments: object, **options: object) -> object:
            calls.append(arguments)
            raise WriterBusy("the writer gate was not free")

        store.connection.write = busy  # type: ignore[method-assign, assignment]
        with pytest.raises(WriterBusy):
            owner.close()
        store.connection.write = write  # type: ignore[method-assign]
        assert len(calls) == 1
        assert [row["isOwner"] for row in row_json(store.reports.list_producers("t"))] == [True]
        with pytest.raises(StoreClosed):
            owner.send(b"never stored")
        owner.close()
        assert row_json(store.reports.list_producers("t")) == []

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("call", ["create_producer", "open_session"])
    def test_an_interrupt_right_after_the_grant_leaves_nobody(
        self, store: Store, rivals: Rivals, mode: str, call: str
    ) -> None:
        """Ctrl-C comes between the durable commit and the return: the topic is not owned by nobody's producer."""
        process = rivals.open()
        write, done = process.connection.write, []

        def interrupted(*arguments: object, **options: object) -> object:
            result = write(*arguments, **options)  # type: ignore[arg-type]
            if not done:
                done.append(result)
                raise KeyboardInterrupt
            return result

        process.connection.write = interrupted  # type: ignore[method-assign, assignment]
        with pytest.raises(KeyboardInterrupt):
            getattr(process, call)("t", access_mode=mode)
        assert done
        assert row_json(store.reports.list_producers("t")) == []
        rivals.produce(EXCLUSIVE).send(b"mine")

    def test_an_interrupt_in_the_moment_of_a_promotion_leaves_nobody(
        self, store: Store, rivals: Rivals
    ) -> None:
        """It had become the owner, and is it no more; the next one in the queue is."""
        owner = rivals.produce(EXCLUSIVE)
        process = rivals.open()
        waiter, behind = rivals.wait(store=process), rivals.wait()
        write = process.connection.write

        def interrupted(*arguments: object, **options: object) -> object:
            write(*arguments, **options)  # type: ignore[arg-type]
            process.connection.write = write  # type: ignore[method-assign]
            raise KeyboardInterrupt

        process.connection.write = interrupted  # type: ignore[method-assign, assignment]
        owner.close()
        waiter.look()
        assert isinstance(waiter.error, KeyboardInterrupt)
        rivals.look()
        assert behind.result.topic_epoch == 2

    def test_a_place_is_given_back_when_the_gate_is_free_again(self, store: Store, rivals: Rivals) -> None:
        """The writer gate was not free when the waiter gave up: with its next write its place is withdrawn."""
        owner = rivals.produce(EXCLUSIVE)
        process = rivals.open()
        waiter = rivals.wait(store=process)
        gate = process.connection.environment.locks.gate

        def busy(*arguments: object) -> None:
            raise WriterBusy("the writer gate is not free")

        enter, type(gate).enter = type(gate).enter, busy  # type: ignore[method-assign, assignment]
        try:
            waiter.interrupt()
        finally:
            type(gate).enter = enter  # type: ignore[method-assign]
        assert isinstance(waiter.error, KeyboardInterrupt)
        process.create_topic("u")
        assert [row["isWaiting"] for row in row_json(store.reports.list_producers("t"))] == [False]
        owner.close()
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1

    @pytest.mark.parametrize("mode", [EXCLUSIVE, FENCING, SHARED])
    def test_a_full_disk_grants_nothing(self, store: Store, rivals: Rivals, mode: str) -> None:
        """The commit fails: nobody was evicted, and the epoch is what it was."""
        there = rivals.produce(SHARED) if mode == SHARED else None
        before = records(store)
        process = rivals.open()
        write = process.connection.write

        def fails(change: Callable[..., object], **options: object) -> object:
            def and_fail(batch: object) -> object:
                change(batch)
                raise TxnctlError("the disk is full")

            return write(and_fail, **options)  # type: ignore[arg-type]

        process.connection.write = fails  # type: ignore[method-assign, assignment]
        with pytest.raises(TxnctlError, match="full"):
            process.create_producer("t", access_mode=mode)
        process.connection.write = write  # type: ignore[method-assign]
        assert records(store) == before
        if there is not None:
            there.send(b"undisturbed")
