"""Sessions whose lease has ended: use continues while no successor came, and fails afterwards."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import ProducerBusy, ProducerFenced, TxnctlError
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED, WAITING
from tests.storage.topic.producers.rivals import Rivals, TurnClock, epochs, lease, publish, values


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

    def test_a_lease_ends_after_a_reboot_although_every_write_is_refused(
        self, store: Store, rivals: Rivals, path: str, clock: TurnClock
    ) -> None:
        """A refused producer drops its batch, and the store clock runs all the same from the first attempt on."""
        lease(rivals, 5)
        rivals.close()
        store.close()
        clock.reboot()
        with Store.open(path, clock=clock) as again:
            for _ in range(2):
                with pytest.raises(ProducerBusy):
                    again.create_producer("t", access_mode=EXCLUSIVE)
                clock.advance(3)
            with again.create_producer("t", access_mode=EXCLUSIVE) as next_one:
                assert next_one.topic_epoch == 1
