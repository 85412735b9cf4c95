"""Who may connect to a topic, who waits for it, and who is turned away (semantics section 6, PIP-68)."""

from __future__ import annotations

from typing import Any

import pytest

from storage import EARLIEST, AccessMode, Store
from storage.disk.view import WriteBatch
from storage.errors import (
    InvalidName,
    InvalidValue,
    ProducerBusy,
    ProducerFenced,
    StoreClosed,
    TopicNotFound,
    WaitTimeout,
)
from storage.topic import catalogue as topics
from storage.topic.producers import session as sessions
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, MODES, SHARED, WAITING
from tests.storage.topic.producers.rivals import (
    Rivals,
    TurnClock,
    assert_fenced,
    commits,
    epochs,
    records,
    topic_epoch,
)


class TestExclusive:
    """One producer for itself, or a refusal at once."""

    def test_a_shared_producer_is_refused_while_an_exclusive_one_is_connected(self, rivals: Rivals) -> None:
        """Upstream: a Shared producer cannot join; the owner is named."""
        rivals.produce(EXCLUSIVE, producer_name="owner")
        with pytest.raises(ProducerBusy, match="owner"):
            rivals.produce(SHARED)

    def test_a_shared_producer_that_connects_per_send_is_refused_at_its_send(
        self, store: Store, rivals: Rivals
    ) -> None:
        """Between sends it is nobody; each send asks again, within its own store transaction."""
        visitor = store.create_producer("t", connected=False)
        assert row_json(store.reports.list_producers("t")) == []
        visitor.send(b"before")
        assert row_json(store.reports.list_producers("t")) == []
        owner = rivals.produce(EXCLUSIVE, producer_name="owner")
        with pytest.raises(ProducerBusy, match="owner"):
            visitor.send(b"meanwhile")
        owner.close()
        visitor.send(b"after")
        assert [message.value for message in store.reader("t")] == [b"before", b"after"]
        assert epochs(store) == [-1, 0]

    def test_the_topic_is_free_again_after_a_close(self, store: Store, rivals: Rivals) -> None:
        """Upstream: another one may own it then, under the next epoch; closing twice does no harm."""
        first = rivals.produce(EXCLUSIVE)
        first.close()
        first.close()
        second = rivals.produce(EXCLUSIVE)
        assert second.topic_epoch == 1
        first.close()
        second.send(b"mine")
        second.close()
        rivals.produce(SHARED).send(b"any")
        assert epochs(store) == [1, 1]

    def test_the_topic_is_free_again_after_a_death(self, rivals: Rivals) -> None:
        """An owner whose process has gone holds nothing, though it never closed."""
        owner_process = rivals.open()
        owner_process.create_producer("t", access_mode=EXCLUSIVE)
        owner_process.close()
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1

    @pytest.mark.parametrize("mode", [EXCLUSIVE, SHARED])
    def test_a_session_whose_lease_nobody_recorded_is_dead(
        self, store: Store, rivals: Rivals, mode: str
    ) -> None:
        """The next owner gets the topic and publishes on; the dead session is fenced and its transaction aborted."""
        lost = rivals.produce(mode, producer_name="lost")
        lost.send(b"1")
        txn = store.begin_transaction()
        lost.send(b"never shown", txn=txn)

        def name_no_process(batch: WriteBatch) -> None:
            (session,) = sessions.every(batch, topics.get(batch, "t").topic_id)
            session.lease = 99
            sessions.save(batch, session)

        store.connection.write(name_no_process)
        owner = rivals.produce(EXCLUSIVE, producer_name="owner")
        owner.send(b"2")
        assert_fenced(lost)
        with pytest.raises(ProducerBusy, match="owner"):
            rivals.produce(SHARED)
        owner.send(b"3")
        assert [row["producerName"] for row in row_json(store.reports.list_producers("t"))] == ["owner"]

    def test_existing_shared_producers_refuse_an_exclusive_one(self, store: Store, rivals: Rivals) -> None:
        """Upstream: as long as one of them is connected; the refusal names them."""
        first, second = (rivals.produce(SHARED, producer_name=name) for name in ("ann", "bob"))
        with pytest.raises(ProducerBusy) as caught:
            rivals.produce(EXCLUSIVE)
        assert "ann" in caught.value.message or "ann" in str(caught.value.details)
        first.close()
        with pytest.raises(ProducerBusy, match="bob"):
            rivals.produce(EXCLUSIVE)
        second.close()
        assert rivals.produce(EXCLUSIVE).topic_epoch == topic_epoch(store) == 0

    def test_consumers_and_readers_do_not_matter(self, store: Store, rivals: Rivals) -> None:
        """Upstream: only producers count; consumers come, go and acknowledge under any owner."""
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        reader = store.reader("t")
        owner = rivals.produce(EXCLUSIVE)
        owner.send(b"1")
        other = rivals.open().subscribe("t", "late", initial_position=EARLIEST)
        for each in (consumer, other):
            message = each.receive(timeout=0)
            assert (message.value, message.epoch) == (b"1", 0)
            each.acknowledge(message)
        assert next(iter(reader)).value == b"1"
        rivals.produce(FENCING).send(b"2")
        assert consumer.receive(timeout=0).value == b"2"

    def test_topics_have_owners_of_their_own(self, store: Store, rivals: Rivals) -> None:
        """Owning one topic says nothing about another; one process may own several."""
        store.create_topic("u")
        process = rivals.open()
        for name in ("t", "u"):
            process.create_producer(name, access_mode=EXCLUSIVE).send(b"x")
        store.create_topic("v")
        rivals.produce(SHARED, "v").send(b"x")
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE, "u")

    def test_one_process_is_its_own_rival(self, store: Store) -> None:
        """Two producers of one process are two producers."""
        owner = store.create_producer("t", access_mode=EXCLUSIVE)
        with pytest.raises(ProducerBusy):
            store.create_producer("t", access_mode=EXCLUSIVE)
        fencing = store.create_producer("t", access_mode=FENCING)
        assert_fenced(owner)
        fencing.send(b"x")

    def test_the_with_statement_leaves_the_topic(self, store: Store, rivals: Rivals) -> None:
        """At the end of the block the next one may have it."""
        with store.create_producer("t", access_mode=EXCLUSIVE) as owner:
            owner.send(b"x")
        assert row_json(store.reports.list_producers("t")) == []
        rivals.produce(EXCLUSIVE)
        with pytest.raises((ProducerFenced, StoreClosed)):
            owner.send(b"y")


class TestArguments:
    """What can be asked for."""

    @pytest.mark.parametrize(
        "text",
        [
            "WaitForExclusive",
            "waitforexclusive",
            "wait-for-exclusive",
            "WAIT_FOR_EXCLUSIVE",
            "Wait_for-Exclusive",
        ],
    )
    def test_a_mode_may_be_given_as_text(self, store: Store, text: str) -> None:
        """In any case, with or without - or _."""
        producer = store.create_producer("t", access_mode=text)
        assert producer.access_mode is AccessMode.WAIT_FOR_EXCLUSIVE

    def test_the_words_of_the_modes_are_pulsars(self) -> None:
        """Scripts for upstream's stats carry over."""
        assert [mode.value for mode in AccessMode] == MODES

    def test_shared_is_the_default(self, store: Store, rivals: Rivals) -> None:
        """As upstream: several connect, all under the topic's epoch, absent as long as there was no owner."""
        producers = [rivals.open().create_producer("t") for _ in range(3)]
        for producer in producers:
            assert (producer.access_mode, producer.topic_epoch) == (AccessMode.SHARED, None)
            producer.send(b"x")
        assert epochs(store) == [-1, -1, -1]

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "no token",
            "1-2",
            "0badcafe-1-2-zzzzzzzzzzzzzzzz",
            "0badcafe-1-2-0011223344556677-00",
            "-1-2-0011223344556677",
            5,
            None,
        ],
    )
    def test_what_is_no_token_opens_nothing(self, store: Store, token: Any) -> None:
        """Wherever a token is given."""
        before = records(store), commits(store)
        for call in (
            store.reports.show_session,
            store.admin.producers.close_session,
            lambda text: store.session_producer("t", text),
        ):
            with pytest.raises(InvalidValue):
                call(token)
        assert (records(store), commits(store)) == before

    @pytest.mark.parametrize("mode", MODES)
    def test_a_missing_topic_is_created_only_if_asked_for(self, store: Store, mode: str) -> None:
        """With `create_topic` its first owner has epoch 0."""
        with pytest.raises(TopicNotFound):
            store.create_producer("new", access_mode=mode)
        assert not store.has_topic("new")
        producer = store.create_producer("new", access_mode=mode, create_topic=True)
        assert producer.topic_epoch == (None if mode == SHARED else 0)

    @pytest.mark.parametrize("mode", MODES)
    def test_names_follow_the_rule_of_names_under_every_mode(self, store: Store, mode: str) -> None:
        """A bad one is refused; without one the store gives one that no other ever had."""
        with pytest.raises(InvalidName):
            store.create_producer("t", access_mode=mode, producer_name="producer-1")
        names = set()
        for _ in range(3):
            with store.create_producer("t", access_mode=mode) as producer:
                names.add(producer.producer_name)
        assert len(names) == 3

    def test_one_name_is_connected_once(self, store: Store, rivals: Rivals) -> None:
        """The same name twice on a topic is refused; on another topic, or after a close or a death, it is free."""
        store.create_topic("u")
        process = rivals.open()
        first = process.create_producer("t", producer_name="p")
        with pytest.raises(ProducerBusy, match="p"):
            rivals.produce(SHARED, producer_name="p")
        rivals.produce(SHARED, "u", producer_name="p").send(b"x")
        first.close()
        process.create_producer("t", producer_name="p")
        process.close()
        rivals.produce(SHARED, producer_name="p").send(b"x")

    def test_a_fencing_producer_may_take_the_name_of_the_one_it_evicts(self, rivals: Rivals) -> None:
        """The evicted one is gone when the name is looked at."""
        first = rivals.produce(EXCLUSIVE, producer_name="leader")
        second = rivals.produce(FENCING, producer_name="leader")
        second.send(b"x", sequence_id=1)
        assert_fenced(first)


class TestWaiting:
    """First come, first served."""

    def test_a_waiter_is_promoted_when_the_owner_leaves(self, store: Store, rivals: Rivals) -> None:
        """Upstream: its creation returns then, under the next epoch."""
        owner = rivals.produce(EXCLUSIVE)
        waiter = rivals.wait()
        assert waiter.look()
        owner.send(b"of the owner")
        assert waiter.look()
        owner.close()
        rivals.look()
        waiter.result.send(b"of the next")
        assert (waiter.result.topic_epoch, topic_epoch(store)) == (1, 1)
        assert epochs(store) == [0, 1]

    def test_waiters_are_promoted_in_the_order_of_their_coming(self, store: Store, rivals: Rivals) -> None:
        """Invariant 11, whoever looks first: each is owner when all before it have left."""
        owner = rivals.produce(EXCLUSIVE)
        waiters = [rivals.wait(producer_name=f"w{number}") for number in range(5)]
        assert [row["producerName"] for row in row_json(store.reports.list_producers("t")) if row["isWaiting"]] == [
            "w0", "w1", "w2", "w3", "w4",
        ]  # fmt: skip
        owner.close()
        for number in range(5):
            for waiter in reversed(waiters):
                waiter.look()
            owners = [waiter.result for waiter in waiters if waiter.result is not None]
            assert [each.producer_name for each in owners] == [f"w{each}" for each in range(number + 1)]
            assert owners[-1].topic_epoch == number + 1
            owners[-1].send(b"x")
            owners[-1].close()

    def test_a_waiter_behind_shared_producers_is_promoted_when_the_last_one_leaves(
        self, store: Store, rivals: Rivals
    ) -> None:
        """Upstream is suspected to forget it; here both a close and a death count."""
        process = rivals.open()
        first, second = process.create_producer("t"), rivals.produce(SHARED)
        waiter = rivals.wait()
        second.send(b"1")
        second.close()
        assert waiter.look()
        first.send(b"2")
        process.close()
        rivals.pass_time(1)
        assert waiter.result.topic_epoch == 0
        waiter.result.send(b"3")
        assert epochs(store) == [-1, -1, 0]

    def test_shared_producers_wait_outside_while_somebody_waits(self, store: Store, rivals: Rivals) -> None:
        """Else a stream of them would keep the waiter out for ever; those already there go on."""
        there = rivals.produce(SHARED)
        waiter = rivals.wait(producer_name="patient")
        with pytest.raises(ProducerBusy, match="patient"):
            rivals.produce(SHARED)
        with pytest.raises(ProducerBusy, match="patient"):
            store.create_producer("t", connected=False).send(b"x")
        there.send(b"x")
        there.close()
        rivals.look()
        assert waiter.result.topic_epoch == 0

    def test_an_exclusive_producer_does_not_push_in(self, rivals: Rivals) -> None:
        """The owner has left and the waiter has not looked yet: the topic is the waiter's already."""
        owner = rivals.produce(EXCLUSIVE)
        waiter = rivals.wait(producer_name="patient")
        owner.close()
        with pytest.raises(ProducerBusy, match="patient"):
            rivals.produce(EXCLUSIVE)
        with pytest.raises(ProducerBusy, match="patient"):
            rivals.produce(SHARED)
        behind = rivals.wait()
        behind.look()
        assert behind.waits
        waiter.look()
        assert waiter.result.topic_epoch == 1

    def test_nobody_there_means_no_waiting(self, rivals: Rivals) -> None:
        """It is owner at once and is not told that it waits."""
        told: list[Any] = []
        producer = rivals.produce(WAITING, on_wait=told.append)
        assert (producer.topic_epoch, told) == (0, [])

    def test_a_dead_owner_is_found_within_a_second(self, rivals: Rivals) -> None:
        """Nobody tells of a death: the waiter looks, and is promoted without anybody else writing."""
        process = rivals.open()
        process.create_producer("t", access_mode=EXCLUSIVE)
        waiter = rivals.wait()
        process.close()
        rivals.pass_time(1)
        assert waiter.result.topic_epoch == 1

    def test_dead_waiters_are_skipped(self, store: Store, rivals: Rivals) -> None:
        """The next living one is promoted, and the dead one's record is gone."""
        owner = rivals.produce(EXCLUSIVE)
        process = rivals.open()
        first, second = rivals.wait(store=process), rivals.wait()
        process.close()
        owner.close()
        second.look()
        rivals.pass_time(1)
        assert second.result.topic_epoch == 1
        assert first.result is None
        assert [row["isOwner"] for row in row_json(store.reports.list_producers("t"))] == [True]

    def test_a_dead_waiter_keeps_nobody_out(self, rivals: Rivals) -> None:
        """A queue of the dead is no queue: Shared and Exclusive connect at once."""
        process = rivals.open()
        owner = rivals.produce(EXCLUSIVE)
        rivals.wait(store=process)
        process.close()
        owner.close()
        with rivals.produce(SHARED) as shared:
            shared.send(b"x")
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1

    def test_an_interrupted_waiter_leaves_the_queue(self, store: Store, rivals: Rivals) -> None:
        """Ctrl-C: its place is withdrawn at once, and the next one moves up."""
        owner = rivals.produce(EXCLUSIVE)
        before = records(store)
        first = rivals.wait()
        first.interrupt()
        assert isinstance(first.error, KeyboardInterrupt)
        assert records(store) == before
        second, third = rivals.wait(), rivals.wait()
        second.interrupt()
        owner.close()
        third.look()
        assert third.result.topic_epoch == 1

    def test_a_waiter_gives_up_after_its_timeout(self, store: Store, rivals: Rivals) -> None:
        """WaitTimeout, exit code 7; it leaves no trace, and those behind it move up."""
        owner = rivals.produce(EXCLUSIVE, producer_name="owner")
        behind_nobody = records(store)
        waiter = rivals.wait(timeout=30)
        assert waiter.look()
        rivals.pass_time(29)
        assert waiter.waits
        rivals.pass_time(2)
        assert isinstance(waiter.error, WaitTimeout)
        assert waiter.error.exit_code == 7
        assert "owner" in waiter.error.message + str(waiter.error.details)
        assert records(store) == behind_nobody
        owner.send(b"undisturbed")

    def test_a_timeout_of_nothing_looks_once(self, store: Store, rivals: Rivals) -> None:
        """It owns a free topic, and gives up at once on one that is not."""
        with rivals.produce(WAITING, timeout=0) as owner:
            before = records(store)
            with pytest.raises(WaitTimeout):
                rivals.produce(WAITING, timeout=0)
            assert records(store) == before
            owner.send(b"x")
        assert rivals.produce(WAITING, timeout=0).topic_epoch == 1

    def test_a_waiter_outlasts_every_timeout_of_clients(self, rivals: Rivals) -> None:
        """Upstream: half an hour of waiting, or a day, ends as it should."""
        owner = rivals.produce(EXCLUSIVE)
        waiter = rivals.wait()
        for hours in (0.5, 24, 24 * 40):
            rivals.pass_time(hours * 3600)
            assert waiter.waits
        owner.send(b"still here")
        owner.close()
        rivals.look()
        assert waiter.result.topic_epoch == 1

    def test_a_jump_of_the_wall_clock_ends_no_waiting(self, rivals: Rivals, clock: TurnClock) -> None:
        """Timeouts run on the boot clock."""
        rivals.produce(EXCLUSIVE)
        waiter = rivals.wait(timeout=60)
        for days in (400, -800):
            clock.wall_now_ns += days * 86_400 * 10**9
            rivals.pass_time(1)
            assert waiter.waits

    def test_failover_with_one_name(self, store: Store, rivals: Rivals) -> None:
        """A waiter may bear the name of the owner: it goes on with the same sequence ids after the takeover."""
        owner = rivals.produce(EXCLUSIVE, producer_name="leader")
        waiter = rivals.wait(producer_name="leader")
        owner.send(b"1", sequence_id=1)
        owner.close()
        rivals.look()
        waiter.result.send(b"1 again", sequence_id=1)
        waiter.result.send(b"2", sequence_id=2)
        assert [message.value for message in store.reader("t")] == [b"1", b"2"]

    def test_the_topic_is_deleted_while_somebody_waits(self, store: Store, rivals: Rivals) -> None:
        """By force: the waiter learns it at its next look, and does not own the topic created anew."""
        rivals.produce(EXCLUSIVE)
        waiter = rivals.wait()
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        waiter.look()
        assert isinstance(waiter.error, ProducerFenced | TopicNotFound)
        assert row_json(store.reports.list_producers("t")) == []
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1


class TestFencing:
    """ExclusiveWithFencing takes the topic, whoever has it."""

    def test_it_evicts_the_owner(self, store: Store, rivals: Rivals) -> None:
        """Upstream: the owner learns of it at its next publish, and stays fenced even when the successor is gone."""
        owner = rivals.produce(EXCLUSIVE, producer_name="old")
        owner.send(b"1")
        successor = rivals.produce(FENCING, producer_name="new")
        assert successor.topic_epoch == 1
        with pytest.raises(ProducerFenced) as caught:
            owner.send(b"never stored")
        details = caught.value.details
        assert (details["topicEpoch"], details["epoch"], details["lastSequenceId"]) == (1, 0, 0)
        assert "new" in str(details["takenOverBy"])
        assert (caught.value.code, caught.value.exit_code) == ("producer-fenced", 4)
        successor.send(b"2")
        successor.close()
        assert_fenced(owner)
        assert epochs(store) == [0, 1]

    def test_it_evicts_those_who_wait(self, store: Store, rivals: Rivals) -> None:
        """Upstream: they get ProducerFenced, every one, and are not promoted later."""
        rivals.produce(EXCLUSIVE)
        waiters = [rivals.wait() for _ in range(3)]
        successor = rivals.produce(FENCING)
        rivals.look()
        assert [type(waiter.error) for waiter in waiters] == [ProducerFenced] * 3
        successor.close()
        rivals.pass_time(2)
        assert [waiter.result for waiter in waiters] == [None] * 3
        assert row_json(store.reports.list_producers("t")) == []

    def test_it_evicts_shared_producers(self, store: Store, rivals: Rivals) -> None:
        """All of them, though they never had an epoch."""
        shared = [rivals.produce(SHARED) for _ in range(3)]
        waiter = rivals.wait()
        successor = rivals.produce(FENCING)
        assert_fenced(*shared)
        rivals.look()
        assert isinstance(waiter.error, ProducerFenced)
        assert successor.topic_epoch == 0
        assert [row["isOwner"] for row in row_json(store.reports.list_producers("t"))] == [True]

    def test_an_evicted_shared_producer_stays_evicted_when_others_connect_again(
        self, store: Store, rivals: Rivals
    ) -> None:
        """Its epoch may equal the topic's in no way that helps it: its session is gone."""
        shared = rivals.produce(SHARED)
        rivals.produce(FENCING).close()
        rivals.produce(SHARED).send(b"of another")
        assert_fenced(shared)
        assert epochs(store) == [0]

    def test_fencing_twice_leaves_the_last_one(self, store: Store, rivals: Rivals) -> None:
        """Each takes over from the one before."""
        producers = [rivals.produce(FENCING) for _ in range(4)]
        assert [each.topic_epoch for each in producers] == [0, 1, 2, 3]
        assert_fenced(*producers[:3])
        producers[3].send(b"x")
        assert epochs(store) == [3]

    def test_a_free_topic_is_owned(self, rivals: Rivals) -> None:
        """With nobody there it is an owner like any other: others are refused."""
        rivals.produce(FENCING)
        for mode in (SHARED, EXCLUSIVE):
            with pytest.raises(ProducerBusy):
                rivals.produce(mode)

    def test_fenced_behind_its_back(self, store: Store, rivals: Rivals) -> None:
        """Upstream: owners came and went, the topic is free, and the first one still believes it owns it."""
        first = rivals.produce(EXCLUSIVE)
        first.send(b"1")
        rivals.produce(FENCING).close()
        rivals.produce(EXCLUSIVE).close()
        assert row_json(store.reports.list_producers("t")) == []
        assert_fenced(first)
        first.close()
        assert topic_epoch(store) == 2
        assert epochs(store) == [0]

    def test_closing_a_fenced_producer_disturbs_nobody(self, store: Store, rivals: Rivals) -> None:
        """It leaves what it no longer has."""
        fenced = rivals.produce(EXCLUSIVE)
        owner = rivals.produce(FENCING)
        before = records(store)
        fenced.close()
        assert records(store) == before
        owner.send(b"x")
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    def test_a_batch_and_a_bulk_are_fenced_too(self, store: Store, rivals: Rivals) -> None:
        """Whatever is sent, nothing of it is stored."""
        owner = rivals.produce(EXCLUSIVE, producer_name="p")
        rivals.produce(FENCING)
        before = records(store)
        for values in ([b"1", b"2"], [b"x" * 1024 * 1024] * 20):
            with pytest.raises(ProducerFenced):
                owner.send_batch(values)
        with pytest.raises(ProducerFenced):
            owner.send_batch([b"1"], sequence_ids=[1])
        assert records(store) == before

    def test_the_epoch_is_checked_before_the_sequence_ids(self, rivals: Rivals) -> None:
        """A fenced producer that sends again what is stored is told that it is fenced, not that all is well."""
        owner = rivals.produce(EXCLUSIVE, producer_name="p")
        owner.send(b"1", sequence_id=1)
        rivals.produce(FENCING)
        with pytest.raises(ProducerFenced) as caught:
            owner.send(b"1", sequence_id=1)
        assert caught.value.details["lastSequenceId"] == 1

    def test_the_operator_fences_whoever_is_there(self, store: Store, rivals: Rivals) -> None:
        """`fence` counts as an owner that leaves at once: under a new epoch, and who waits is next."""
        owner = rivals.produce(EXCLUSIVE, producer_name="owner")
        waiter = rivals.wait(producer_name="waiter")
        before = records(store)
        planned = row_json(store.admin.producers.fence_producers("t", dry_run=True))
        assert records(store) == before
        report = row_json(store.admin.producers.fence_producers("t", reason="stuck"))
        assert {**planned, "dryRun": None} == {**report, "dryRun": None}
        assert (report["topicEpochBefore"], report["topicEpoch"]) == (0, 1)
        assert [row["producerName"] for row in report["evicted"]] == ["owner"]
        assert [row["producerName"] for row in report["waiting"]] == ["waiter"]
        assert_fenced(owner)
        rivals.look()
        assert waiter.result.topic_epoch == 2
        assert [row["producerName"] for row in row_json(store.reports.list_producers("t"))] == ["waiter"]
        assert [(row["action"], row["reason"]) for row in row_json(store.reports.list_audit_records())] == [
            ("producers fence", "stuck")
        ]

    def test_the_operator_may_fence_those_who_wait_as_well(self, store: Store, rivals: Rivals) -> None:
        """Then the topic is free for whoever comes next."""
        owner = rivals.produce(EXCLUSIVE, producer_name="owner")
        waiter = rivals.wait(producer_name="waiter")
        report = row_json(store.admin.producers.fence_producers("t", waiting=True))
        assert [row["producerName"] for row in report["evicted"]] == ["owner", "waiter"]
        assert report["waiting"] == []
        rivals.look()
        assert isinstance(waiter.error, ProducerFenced)
        assert_fenced(owner)
        assert row_json(store.reports.list_producers("t")) == []
        assert rivals.produce(SHARED).topic_epoch == 1

    def test_the_operator_may_fence_a_topic_that_had_no_owner(self, store: Store, rivals: Rivals) -> None:
        """Shared ones are evicted too; the epoch begins."""
        shared = rivals.produce(SHARED)
        assert row_json(store.admin.producers.fence_producers("t"))["topicEpoch"] == 0
        assert_fenced(shared)
        assert row_json(store.admin.producers.fence_producers("t"))["evicted"] == []
        assert topic_epoch(store) == 1
