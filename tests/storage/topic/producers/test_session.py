"""Sessions: what connects a producer, who may use it, who may come back under its epoch (semantics section 6)."""

from __future__ import annotations

from typing import Any

import pytest

from storage import AccessMode, IsolationLevel, Store
from storage.errors import (
    InvalidValue,
    ProducerBusy,
    ProducerFenced,
    SessionNotFound,
    TopicNotFound,
    TxnctlError,
    WaitTimeout,
)
from tests.row_json import row_json
from tests.storage.topic.producers.rivals import (
    EXCLUSIVE,
    FENCING,
    SHARED,
    WAITING,
    Rivals,
    TurnClock,
    assert_fenced,
    epochs,
    records,
    topic_epoch,
)


def values(store: Store, topic: str = "t") -> list[bytes | None]:
    messages = store.reader(topic, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return [message.value for message in messages]


def publish(rivals: Rivals, token: str, value: bytes = b"x", topic: str = "t", **how: Any) -> None:
    """One shell command: a process comes, publishes through the session, and goes."""
    with rivals.open() as process:
        process.session_producer(topic, token).send(value, **how)


def lease(rivals: Rivals, seconds: float = 60, **how: Any) -> str:
    """`producers open`: the token, printed by a process that has gone."""
    with rivals.open() as process:
        token: str = row_json(process.open_session("t", lease=seconds, **how))["session"]
    return token


class TestLeased:
    """A session opened by one shell command and used by the next."""

    def test_it_outlives_the_process_that_opened_it(self, store: Store, rivals: Rivals) -> None:
        """Each command is a process of its own; all of them publish under one epoch and one name."""
        token = lease(rivals, producer_name="script")
        for number in range(3):
            publish(rivals, token, b"%d" % number)
        messages = list(store.reader("t"))
        assert [(m.value, m.epoch, m.producer_name, m.sequence_id) for m in messages] == [
            (b"%d" % number, 0, "script", number) for number in range(3)
        ]
        assert topic_epoch(store) == 0

    def test_it_keeps_others_out_while_it_runs(self, rivals: Rivals, clock: TurnClock) -> None:
        """To the last moment of the lease, not one longer."""
        lease(rivals, 60)
        clock.advance(59.999)
        for mode in (SHARED, EXCLUSIVE):
            with pytest.raises(ProducerBusy):
                rivals.produce(mode)
        clock.advance(0.001)
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1

    def test_every_publish_renews_it(self, rivals: Rivals, clock: TurnClock) -> None:
        """Used every 40 seconds, a lease of a minute lives for ever."""
        token = lease(rivals, 60)
        for _ in range(5):
            clock.advance(40)
            publish(rivals, token)
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    def test_a_refused_publish_renews_nothing(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """Bad input leaves the lease as it is."""
        token = lease(rivals, 60)
        clock.advance(30)
        before = records(store)
        with rivals.open() as process, pytest.raises(TxnctlError):
            process.session_producer("t", token).send("text")  # type: ignore[arg-type]
        assert records(store) == before
        assert row_json(store.reports.show_session(token))["leaseEndsInMs"] == 30_000

    def test_a_publish_in_a_transaction_renews_it_too(
        self, store: Store, rivals: Rivals, clock: TurnClock
    ) -> None:
        """By use, not by commit."""
        token, txn = lease(rivals, 60), store.begin_transaction(timeout=3600)
        clock.advance(50)
        publish(rivals, token, txn=txn)
        clock.advance(50)
        publish(rivals, token, txn=txn)
        assert store.commit_transaction(txn) is True
        assert epochs(store) == [0, 0]

    def test_a_jump_of_the_wall_clock_ends_no_lease(self, rivals: Rivals, clock: TurnClock) -> None:
        """Leases run on the boot clock."""
        token = lease(rivals, 60)
        for days in (1000, -2000):
            clock.wall_now_ns += days * 86_400 * 10**9
            with pytest.raises(ProducerBusy):
                rivals.produce(EXCLUSIVE)
        publish(rivals, token)

    def test_closing_it_leaves_the_topic(self, store: Store, rivals: Rivals) -> None:
        """`producers close`: the next one may own it, and the token is worth nothing any more."""
        token = lease(rivals)
        planned = row_json(store.admin.producers.close_session(token, dry_run=True))
        assert row_json(store.reports.show_session(token))["isOwner"] is True
        report = row_json(store.admin.producers.close_session(token))
        assert planned["sessionId"] == report["sessionId"]
        with pytest.raises((ProducerFenced, SessionNotFound)):
            publish(rivals, token)
        with pytest.raises(SessionNotFound):
            store.reports.show_session(token)
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1
        assert values(store) == []

    def test_closing_what_was_taken_over_says_so(self, rivals: Rivals, store: Store) -> None:
        """A script that ends learns that it was not the only writer to the end; the successor stays."""
        token = lease(rivals)
        successor = rivals.produce(FENCING)
        with pytest.raises((ProducerFenced, SessionNotFound)):
            store.admin.producers.close_session(token)
        successor.send(b"undisturbed")
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    def test_closing_a_producer_that_borrows_it_leaves_it_open(self, rivals: Rivals) -> None:
        """The session belongs to whoever opened it."""
        token = lease(rivals)
        with rivals.open() as process, process.session_producer("t", token) as producer:
            producer.send(b"1")
        publish(rivals, token, b"2")
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING, SHARED])
    def test_it_may_be_opened_in_every_mode(self, store: Store, rivals: Rivals, mode: str) -> None:
        """The mode says who else may be there, the lease how long it lasts."""
        with rivals.open() as process:
            row = row_json(process.open_session("t", access_mode=mode, lease=5))
        assert (row["accessMode"], row["state"], row["leaseMs"], row["leaseEndsInMs"]) == (
            mode,
            "leased",
            5000,
            5000,
        )
        publish(rivals, row["session"])
        assert epochs(store) == [-1 if mode == SHARED else 0]
        if mode != SHARED:
            with pytest.raises(ProducerBusy):
                rivals.produce(SHARED)

    @pytest.mark.parametrize("seconds", [0, -1, "long", float("nan"), 25 * 3600])
    def test_a_lease_has_bounds(self, store: Store, seconds: Any) -> None:
        """Some time, a day at most."""
        before = records(store)
        with pytest.raises(InvalidValue):
            store.open_session("t", lease=seconds)
        assert records(store) == before

    def test_opening_one_waits_its_turn(self, rivals: Rivals, clock: TurnClock) -> None:
        """A waiting `producers open` is attached to its process as long as it waits: the lease begins with the turn."""
        owner = rivals.produce(EXCLUSIVE)
        process = rivals.open()
        waiter = rivals.wait(store=process, call="open_session", lease=10)
        rivals.pass_time(3600)
        assert waiter.waits
        owner.close()
        rivals.look()
        process.close()
        row = waiter.result
        assert (row["epoch"], row["leaseEndsInMs"]) == (1, 10_000)
        clock.advance(9)
        publish(rivals, row["session"])

    def test_a_process_that_dies_while_it_waits_for_a_lease_leaves_the_queue(self, rivals: Rivals) -> None:
        """It has no lease yet that could outlive it."""
        owner = rivals.produce(EXCLUSIVE)
        process = rivals.open()
        rivals.wait(store=process, call="open_session", lease=3600)
        process.close()
        owner.close()
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1


class TestExpired:
    """A publish through an expired lease is a reconnect."""

    @pytest.fixture
    def token(self, rivals: Rivals, clock: TurnClock) -> str:
        """Of a session that published once, and whose lease ended a while ago."""
        token = lease(rivals, 10)
        publish(rivals, token, b"before")
        clock.advance(100)
        return token

    def test_it_goes_on_if_nobody_came(self, store: Store, rivals: Rivals, token: str) -> None:
        """Under its epoch, with a lease of the same length."""
        publish(rivals, token, b"after")
        assert epochs(store) == [0, 0]
        assert row_json(store.reports.show_session(token))["leaseEndsInMs"] == 10_000
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    def test_it_goes_on_though_others_looked(self, store: Store, rivals: Rivals, token: str) -> None:
        """Who came and left without a word has not interleaved anything."""
        rivals.produce(SHARED).close()
        publish(rivals, token, b"after")
        assert epochs(store) == [0, 0]

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    def test_it_is_over_if_somebody_took_over(
        self, store: Store, rivals: Rivals, token: str, mode: str
    ) -> None:
        """Also if that one has closed again without a message."""
        rivals.produce(mode).close()
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                publish(rivals, token, b"never stored")
        assert values(store) == [b"before"]

    def test_it_is_over_if_an_operator_fenced_the_topic(
        self, store: Store, rivals: Rivals, token: str
    ) -> None:
        """`producers fence` is a takeover."""
        store.admin.producers.fence_producers("t")
        with pytest.raises(ProducerFenced):
            publish(rivals, token)

    @pytest.mark.parametrize("connected", [True, False])
    def test_it_is_over_if_somebody_else_produced(
        self, store: Store, rivals: Rivals, token: str, connected: bool
    ) -> None:
        """Under the very same epoch: what followed its last message is not its own."""
        with store.create_producer("t", connected=connected) as other:
            other.send(b"between")
        with pytest.raises(ProducerFenced):
            publish(rivals, token, b"never stored")
        assert values(store) == [b"before", b"between"]
        assert epochs(store) == [0, 0]

    def test_it_is_over_if_somebody_waits(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """The waiter's turn came with the end of the lease, though it has not looked yet."""
        token = lease(rivals, 10)
        waiter = rivals.wait()
        clock.advance(9)
        publish(rivals, token)
        clock.advance(10)
        with pytest.raises(TxnctlError) as caught:
            publish(rivals, token, b"never stored")
        assert caught.value.code in ("producer-fenced", "producer-busy")
        rivals.look()
        assert waiter.result.topic_epoch == 1
        with pytest.raises(ProducerFenced):
            publish(rivals, token)

    def test_a_waiter_is_promoted_when_the_lease_ends(self, rivals: Rivals) -> None:
        """Within a second, nobody else writing."""
        lease(rivals, 10)
        waiter = rivals.wait()
        rivals.pass_time(8)
        assert waiter.waits
        rivals.pass_time(3)
        assert waiter.result.topic_epoch == 1

    def test_it_is_refused_while_somebody_is_connected(
        self, store: Store, rivals: Rivals, token: str
    ) -> None:
        """An owner that comes back does not join others, and evicts nobody."""
        shared = rivals.produce(SHARED)
        with pytest.raises((ProducerFenced, ProducerBusy)):
            publish(rivals, token, b"never stored")
        shared.send(b"undisturbed")
        assert values(store) == [b"before", b"undisturbed"]

    def test_its_transaction_goes_on_with_it(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """Nobody took over, so nothing was aborted."""
        token, txn = lease(rivals, 10), store.begin_transaction(timeout=3600)
        publish(rivals, token, b"1", txn=txn)
        clock.advance(100)
        publish(rivals, token, b"2", txn=txn)
        assert store.commit_transaction(txn) is True
        assert values(store) == [b"1", b"2"]

    def test_a_fenced_publish_through_it_dooms_its_transaction(
        self, store: Store, rivals: Rivals, token: str
    ) -> None:
        """As of any fenced producer."""
        rivals.produce(FENCING).close()
        txn = store.begin_transaction(timeout=3600)
        with pytest.raises(ProducerFenced):
            publish(rivals, token, txn=txn)
        shown = row_json(store.reports.show_transaction(txn))
        assert (shown["state"], shown["reason"]) == ("ABORTED", "fenced")

    def test_a_reboot_leaves_what_was_left_of_it(
        self, store: Store, rivals: Rivals, path: str, clock: TurnClock
    ) -> None:
        """A lease runs on the store's clock, which goes on after a reboot from the last commit."""
        token = lease(rivals, 60)
        clock.advance(20)
        publish(rivals, token)
        rivals.close()
        store.close()
        clock.reboot()
        with Store.open(path, clock=clock) as again:
            clock.advance(30)
            with pytest.raises(ProducerBusy):
                again.create_producer("t", access_mode=EXCLUSIVE)
            again.session_producer("t", token).send(b"after the reboot")
            clock.advance(61)
            with again.create_producer("t", access_mode=EXCLUSIVE) as next_one:
                assert next_one.topic_epoch == 1


class TestBorrowed:
    """Publishing through a session that another process holds, as under `producers lead`."""

    def test_others_publish_through_the_session_of_a_living_process(
        self, store: Store, rivals: Rivals
    ) -> None:
        """Whoever has the token; the process that leads publishes too."""
        leader = rivals.produce(WAITING, producer_name="leader")
        leader.send(b"1")
        publish(rivals, leader.session, b"2")
        leader.send(b"3")
        messages = list(store.reader("t"))
        assert [(m.value, m.epoch, m.sequence_id) for m in messages] == [
            (b"1", 0, 0),
            (b"2", 0, 1),
            (b"3", 0, 2),
        ]
        assert {m.producer_name for m in messages} == {"leader"}

    def test_the_death_of_that_process_ends_it(self, store: Store, rivals: Rivals) -> None:
        """Even if nobody came yet: a leader's commands must not go on without the leader."""
        process = rivals.open()
        leader = process.create_producer("t", access_mode=EXCLUSIVE)
        borrower = rivals.open().session_producer("t", leader.session)
        borrower.send(b"1")
        process.close()
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                borrower.send(b"never stored")
        with pytest.raises(ProducerFenced):
            publish(rivals, leader.session)
        assert values(store) == [b"1"]

    def test_the_close_of_the_session_ends_it(self, store: Store, rivals: Rivals) -> None:
        """And so does its eviction."""
        leader = rivals.produce(EXCLUSIVE)
        borrower = rivals.open().session_producer("t", leader.session)
        borrower.send(b"1")
        leader.close()
        assert_fenced(borrower)
        leader = rivals.produce(EXCLUSIVE)
        borrower = rivals.open().session_producer("t", leader.session)
        rivals.produce(FENCING)
        assert_fenced(borrower)

    def test_a_waiting_session_is_not_there_yet(self, store: Store, rivals: Rivals) -> None:
        """Its token does not let anybody publish before its turn."""
        owner = rivals.produce(EXCLUSIVE)
        rivals.wait()
        (row,) = [row for row in row_json(store.reports.list_producers("t")) if row["isWaiting"]]
        guess = owner.session.split("-")
        guess[1] = str(row["sessionId"])
        with pytest.raises(TxnctlError) as caught:
            publish(rivals, "-".join(guess))
        assert caught.value.exit_code in (3, 4)

    @pytest.mark.parametrize("part", [0, 1, 2])
    def test_a_guessed_token_is_no_token(self, store: Store, rivals: Rivals, part: int) -> None:
        """Topic, number and secret must all be right; a wrong one disturbs nobody."""
        owner = rivals.produce(EXCLUSIVE)
        owner.send(b"x")
        store.create_topic("u")
        token = owner.session.split("-")
        token[part] = {0: "2", 1: str(int(token[1]) + 1), 2: "00" * (len(token[2]) // 2)}[part]
        before = records(store)
        for topic in ("t", "u") if part == 0 else ("t",):
            with pytest.raises(TxnctlError) as caught:
                publish(rivals, "-".join(token), topic=topic)
            assert caught.value.exit_code in (2, 3, 4)
        for call in (store.reports.show_session, store.admin.producers.close_session):
            with pytest.raises(TxnctlError):
                call("-".join(token))
        assert records(store) == before
        owner.send(b"still mine")

    def test_a_token_is_of_one_topic(self, store: Store, rivals: Rivals) -> None:
        """It opens no other topic."""
        store.create_topic("u")
        owner = rivals.produce(EXCLUSIVE)
        with pytest.raises(TxnctlError) as caught:
            publish(rivals, owner.session, topic="u")
        assert caught.value.exit_code in (2, 3, 4)
        assert values(store, "u") == []

    def test_the_session_tells_of_itself(self, store: Store, rivals: Rivals) -> None:
        """A row as in `producer_rows`, of whatever kind of session."""
        owner = rivals.produce(EXCLUSIVE, producer_name="me")
        row = row_json(store.reports.show_session(owner.session))
        assert (row["producerName"], row["epoch"], row["isOwner"], row["state"], row["leaseMs"]) == (
            "me", 0, True, "alive", None,
        )  # fmt: skip
        owner.close()
        with pytest.raises(SessionNotFound):
            store.reports.show_session(owner.session)


class TestResume:
    """A reconnect brings its session and continues if nobody took over or produced."""

    def lost(self, rivals: Rivals, mode: str = EXCLUSIVE, **how: Any) -> str:
        """An owner that published once and whose process then died; its token."""
        with rivals.open() as process:
            producer = process.create_producer("t", access_mode=mode, producer_name="owner", **how)
            producer.send(b"before")
            return producer.session

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    def test_the_last_owner_goes_on_under_its_epoch(self, store: Store, rivals: Rivals, mode: str) -> None:
        """Upstream: reconnection under each mode; no new epoch, no new owner in the history."""
        token = self.lost(rivals, mode)
        producer = rivals.produce(mode, resume=token)
        assert (producer.topic_epoch, producer.producer_name) == (0, "owner")
        producer.send(b"after")
        messages = list(store.reader("t"))
        assert [(m.value, m.epoch, m.sequence_id) for m in messages] == [(b"before", 0, 0), (b"after", 0, 1)]
        (owner,) = row_json(store.reports.ownership_history("t"))
        assert (owner["topicEpoch"], owner["endedBy"]) == (0, None)

    def test_again_and_again(self, store: Store, rivals: Rivals) -> None:
        """As often as its connection is lost."""
        token = self.lost(rivals)
        for _ in range(5):
            with rivals.open() as process:
                producer = process.create_producer("t", access_mode=EXCLUSIVE, resume=token)
                producer.send(b"again")
                token = producer.session
        assert epochs(store) == [0] * 6

    def test_its_transactions_go_on(self, store: Store, rivals: Rivals) -> None:
        """A reconnect is no takeover: what it sent in a detached transaction may be committed."""
        txn = store.begin_transaction(timeout=3600)
        with rivals.open() as process:
            producer = process.create_producer("t", access_mode=EXCLUSIVE)
            producer.send(b"1", txn=txn)
            token = producer.session
        producer = rivals.produce(EXCLUSIVE, resume=token)
        producer.send(b"2", txn=txn)
        assert store.commit_transaction(txn) is True
        assert [message.value for message in store.reader("t")] == [b"1", b"2"]

    def test_a_leased_one_may_be_opened_again(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """`producers open --resume` after the lease has ended."""
        token = lease(rivals, 10)
        publish(rivals, token)
        clock.advance(11)
        again = row_json(store.open_session("t", resume=token, lease=20))
        assert (again["epoch"], again["leaseMs"]) == (0, 20_000)
        publish(rivals, again["session"])
        assert epochs(store) == [0, 0]

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    @pytest.mark.parametrize("successor", [EXCLUSIVE, FENCING, "operator"])
    def test_it_is_over_if_somebody_took_over(
        self, store: Store, rivals: Rivals, mode: str, successor: str
    ) -> None:
        """Fenced for ever, also when the successor is gone; and it evicts nobody that is there."""
        token = self.lost(rivals)
        if successor == "operator":
            store.admin.producers.fence_producers("t")
        else:
            there = rivals.produce(successor)
            with pytest.raises(ProducerFenced):
                rivals.produce(mode, resume=token)
            there.send(b"undisturbed")
            there.close()
        before = records(store)
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                rivals.produce(mode, resume=token)
        assert records(store) == before

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    @pytest.mark.parametrize("connected", [True, False])
    def test_it_is_over_if_somebody_else_produced(
        self, store: Store, rivals: Rivals, mode: str, connected: bool
    ) -> None:
        """A Shared producer did, under the very same epoch: equal epochs are not the same session."""
        token = self.lost(rivals)
        with store.create_producer("t", connected=connected) as other:
            other.send(b"between")
        assert epochs(store) == [0, 0]
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                rivals.produce(mode, resume=token)
        new = rivals.produce(mode)
        assert new.topic_epoch == 1

    def test_it_goes_on_if_others_came_and_said_nothing(self, store: Store, rivals: Rivals) -> None:
        """Shared producers that connected and left have not interleaved anything."""
        token = self.lost(rivals)
        rivals.produce(SHARED).close()
        assert rivals.produce(EXCLUSIVE, resume=token).topic_epoch == 0

    def test_it_does_not_join_others(self, store: Store, rivals: Rivals) -> None:
        """Exclusive is refused while a Shared one is connected; waiting, it resumes when that one has left silent."""
        token = self.lost(rivals)
        shared = rivals.produce(SHARED)
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE, resume=token)
        waiter = rivals.wait(resume=token)
        assert waiter.look()
        shared.close()
        rivals.look()
        assert waiter.result.topic_epoch == 0
        waiter.result.send(b"after")
        assert epochs(store) == [0, 0]

    def test_it_keeps_its_name_under_a_new_epoch_too(self, store: Store, rivals: Rivals) -> None:
        """Coming back with fencing it evicts the silent ones that are there, and goes on with its sequence ids."""
        token = self.lost(rivals)
        shared = rivals.produce(SHARED)
        producer = rivals.produce(FENCING, resume=token)
        assert_fenced(shared)
        assert producer.producer_name == "owner"
        producer.send(b"after")
        assert [message.sequence_id for message in store.reader("t")] == [0, 1]

    def test_an_unnamed_one_keeps_the_name_that_it_was_given(self, store: Store, rivals: Rivals) -> None:
        """And never uses a sequence id of it twice: not when it resumes, nor when others borrow its session."""
        process = rivals.open()
        first = process.create_producer("t", access_mode=EXCLUSIVE)
        first.send(b"0")
        publish(rivals, first.session, b"1")
        first.send(b"2")
        process.close()
        again = rivals.produce(EXCLUSIVE, resume=first.session)
        again.send(b"3")
        publish(rivals, again.session, b"4")
        messages = list(store.reader("t"))
        assert [m.value for m in messages] == [b"%d" % number for number in range(5)]
        assert {m.producer_name for m in messages} == {first.producer_name}
        assert len({m.sequence_id for m in messages}) == 5

    def test_a_waiting_reconnect_is_over_if_others_produce_meanwhile(
        self, store: Store, rivals: Rivals
    ) -> None:
        """It learns it at its turn, at the latest, and those behind it move up."""
        token = self.lost(rivals)
        shared = rivals.produce(SHARED)
        waiter, behind = rivals.wait(resume=token), rivals.wait()
        shared.send(b"between")
        shared.close()
        rivals.look()
        rivals.pass_time(1)
        assert isinstance(waiter.error, ProducerFenced)
        assert behind.result.topic_epoch == 1

    def test_nobody_resumes_what_is_connected(self, store: Store, rivals: Rivals) -> None:
        """A second process with the same token is refused under every mode, and the first goes on."""
        owner = rivals.produce(EXCLUSIVE)
        before = records(store)
        for mode in (EXCLUSIVE, WAITING, FENCING):
            with pytest.raises((ProducerBusy, WaitTimeout)):
                rivals.produce(mode, resume=owner.session, timeout=0)
        assert records(store) == before
        owner.send(b"undisturbed")

    def test_a_split_brain_is_impossible(self, store: Store, rivals: Rivals) -> None:
        """Two come back with the same token: one goes on, the other is refused."""
        token = self.lost(rivals)
        first = rivals.produce(EXCLUSIVE, resume=token)
        with pytest.raises((ProducerBusy, ProducerFenced)):
            rivals.produce(EXCLUSIVE, resume=token)
        first.send(b"after")
        assert epochs(store) == [0, 0]

    def test_what_was_closed_is_not_resumed(self, store: Store, rivals: Rivals) -> None:
        """A close is for good: whoever closes comes back as a new owner."""
        owner = rivals.produce(EXCLUSIVE)
        owner.close()
        with pytest.raises((ProducerFenced, SessionNotFound)):
            rivals.produce(EXCLUSIVE, resume=owner.session)
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1

    def test_a_shared_session_is_nothing_to_resume(self, store: Store, rivals: Rivals) -> None:
        """It owned nothing."""
        with rivals.open() as process:
            token = process.create_producer("t").session
        with pytest.raises(TxnctlError) as caught:
            rivals.produce(EXCLUSIVE, resume=token)
        assert caught.value.exit_code in (2, 3, 4)
        with pytest.raises(TxnctlError):
            rivals.produce(SHARED, resume=token)

    def test_the_secret_is_needed(self, store: Store, rivals: Rivals) -> None:
        """Who knows only the numbers is not the last owner."""
        store_id, topic, number, secret = self.lost(rivals).split("-")
        with pytest.raises(ProducerFenced):
            rivals.produce(EXCLUSIVE, resume=f"{store_id}-{topic}-{number}-{'00' * (len(secret) // 2)}")

    def test_after_a_reboot(self, store: Store, rivals: Rivals, path: str, clock: TurnClock) -> None:
        """Everybody is gone; the last owner may go on, and tickets of the other boot are void."""
        token = self.lost(rivals)
        owner = rivals.produce(EXCLUSIVE, resume=token)
        assert owner.session != token, "what it had started before it was gone is out"
        token = owner.session
        owner.send(b"before")
        waiter = rivals.wait()
        rivals.crash()
        store.close()
        clock.reboot()
        with Store.open(path, clock=clock) as again:
            rows = row_json(again.reports.list_producers("t"))
            assert all(row["state"] == "rebooted" for row in rows)
            with again.create_producer("t", access_mode=EXCLUSIVE, resume=token) as producer:
                assert producer.topic_epoch == 0
                producer.send(b"after")
            assert epochs(again) == [0, 0, 0]
            assert row_json(again.reports.list_producers("t")) == []
        assert waiter.result is None


class TestIncarnations:
    """Equal epochs that are not the same session: topic incarnation, epoch and session must all be right."""

    def test_a_shared_producer_of_a_deleted_topic(self, store: Store, rivals: Rivals) -> None:
        """The topic is created again under the same name, without an epoch as before: it is another topic."""
        shared = rivals.produce(SHARED)
        store.admin.topics.delete_topic("t", force=True)
        with pytest.raises((ProducerFenced, TopicNotFound)):
            shared.send(b"x")
        store.create_topic("t")
        assert topic_epoch(store) is None
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                shared.send(b"never stored")
        assert values(store) == []

    def test_the_owner_of_a_deleted_topic(self, store: Store, rivals: Rivals) -> None:
        """Upstream: deleted and recreated; the epoch goes on counting, and the owner is fenced for ever."""
        owner = rivals.produce(EXCLUSIVE)
        owner.send(b"x")
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        assert topic_epoch(store) == 0
        with pytest.raises(ProducerFenced):
            owner.send(b"never stored")
        rivals.produce(SHARED).send(b"of the new topic")
        with pytest.raises(ProducerFenced):
            owner.send(b"never stored")
        assert epochs(store) == [0]
        assert rivals.produce(FENCING).topic_epoch == 1

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
    def test_the_token_of_a_deleted_topic(self, store: Store, rivals: Rivals, mode: str) -> None:
        """It resumes nothing on the new one, and publishes nothing to it."""
        with rivals.open() as process:
            token = process.create_producer("t", access_mode=mode).session
        store.admin.topics.delete_topic("t")
        store.create_topic("t")
        for call in (
            lambda: rivals.produce(mode, resume=token),
            lambda: publish(rivals, token),
        ):
            with pytest.raises(TxnctlError) as caught:
                call()
            assert caught.value.exit_code in (2, 3, 4)
        assert values(store) == []

    def test_a_leased_session_of_a_deleted_topic(self, store: Store, rivals: Rivals) -> None:
        """Its lease still runs, and holds nothing of the new topic."""
        token = lease(rivals)
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        owner = rivals.produce(EXCLUSIVE)
        with pytest.raises(TxnctlError):
            publish(rivals, token)
        for call in (store.reports.show_session, store.admin.producers.close_session):
            with pytest.raises(TxnctlError):
                call(token)
        owner.send(b"mine")
        assert values(store) == [b"mine"]

    def test_the_epoch_of_a_session_that_waits_is_of_its_grant(self, store: Store, rivals: Rivals) -> None:
        """While it waits it has none."""
        rivals.produce(EXCLUSIVE)
        rivals.wait()
        assert [(row["epoch"], row["place"]) for row in row_json(store.reports.list_producers("t"))] == [
            (0, None),
            (None, 1),
        ]

    @pytest.mark.parametrize("how", ["resume", "topic_epoch"])
    def test_an_old_owner_does_not_take_the_session_of_a_new_one(
        self, store: Store, rivals: Rivals, how: str
    ) -> None:
        """It brings the epoch that a Shared producer carries as well: still only one of them was the owner."""
        owner = rivals.produce(EXCLUSIVE)
        owner.close()
        shared = rivals.produce(SHARED)
        shared.send(b"of the shared one")
        value: Any = owner.session if how == "resume" else 0
        with pytest.raises((ProducerFenced, ProducerBusy)):
            rivals.produce(EXCLUSIVE, **{how: value})
        shared.send(b"undisturbed")


class TestMode:
    """What a session says of itself."""

    def test_a_borrowed_producer_has_the_mode_of_its_session(self, rivals: Rivals) -> None:
        """And its epoch and name."""
        leader = rivals.produce(WAITING, producer_name="leader")
        borrower = rivals.open().session_producer("t", leader.session)
        assert (borrower.access_mode, borrower.topic_epoch, borrower.producer_name, borrower.session) == (
            AccessMode.WAIT_FOR_EXCLUSIVE, 0, "leader", leader.session,
        )  # fmt: skip
