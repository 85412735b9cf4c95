"""Resumption: the last owner of a topic reconnects under its epoch."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from storage.errors import ProducerBusy, ProducerFenced, SessionNotFound, TxnctlError, WaitTimeout
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED, WAITING
from tests.storage.topic.producers.rivals import (
    Rivals,
    TurnClock,
    assert_fenced,
    epochs,
    lease,
    publish,
    records,
)


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
