"""A server that dies, or ends a session: the caller learns whether the change is stored, or that it cannot be known."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from storage import EARLIEST, AccessMode, Store, TransactionState
from storage.errors import (
    OutcomeUnknown,
    ProducerBusy,
    ServerLost,
    ServerUnreachable,
    StoreClosed,
    TxnctlError,
)
from tests.processes.postgres.servers import Server
from tests.row_json import row_json


class Sending(threading.Thread):
    """A call in a thread of its own, and the error that it raises."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self._call = call
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except TxnctlError as error:
            self.error = error

    def ended(self) -> BaseException | None:
        """The error, at the end of the call."""
        self.join(30)
        assert not self.is_alive()
        return self.error


def made(primary: Server, standby: Server) -> str:
    """The URL of a new store with the topic `t`."""
    url = primary.url("s", standby)
    Store.create(url)
    with Store.open(url) as store:
        store.create_topic("t")
    return url


@pytest.mark.parametrize("survivor", ["primary", "standby"])
def test_the_primary_is_killed_in_a_commit(pair: tuple[Server, Server], survivor: str) -> None:
    """The outcome is unknown, with exit code 10; afterwards sequence id and transaction tell it, and both producers go on."""
    primary, standby = pair
    url = made(primary, standby)
    with Store.open(url) as store:
        producer = store.create_producer("t", producer_name="p")
        producer.send(b"1", sequence_id=1)
        consumer = store.subscribe("t", "a", initial_position=EARLIEST)
        (first,) = consumer.receive_batch(9, timeout=0)
        txn = store.begin_transaction()
        producer.send(b"2", sequence_id=2, txn=txn)
        consumer.acknowledge(first, txn=txn)
        standby.kill()
        sending = Sending(lambda: store.commit_transaction(txn))
        primary.wait_for_standby_wait()
        primary.kill()
        standby.start()
        error = sending.ended()
        assert isinstance(error, OutcomeUnknown) and error.exit_code == 10
        assert f"show_transaction('{txn}')" in str(error.hint)
        for call in (
            lambda: producer.send(b"3"),
            lambda: consumer.receive(timeout=0),
            lambda: consumer.acknowledge(first),
            lambda: store.commit_transaction(txn),
            lambda: producer.send_async(b"3").result(30),
        ):
            with pytest.raises(StoreClosed, match="unusable"):
                call()
    if survivor == "standby":
        standby.promote()
        primary.follow(standby)
    else:
        primary.start()
        primary.wait_for_standby()
    with Store.open(url) as store, Store.open(url) as other:
        state = store.reports.show_transaction(txn).row.state
        is_stored = state == TransactionState.COMMITTED
        assert is_stored is (survivor == "primary")
        producer, second = store.create_producer("t", producer_name="p"), other.create_producer("t")
        producer.send(b"2", sequence_id=2)
        assert [message.value for message in store.reader("t")] == [b"1", b"2"]
        consumer = other.subscribe("t", "a")
        received = consumer.receive_batch(9, timeout=0)
        assert [message.value for message in received] == ([b"2"] if is_stored else [b"1", b"2"])
        with other.transaction() as later:
            second.send(b"3", txn=later)
            consumer.acknowledge_cumulative(received[-1], txn=later)
        producer.send(b"4", sequence_id=4)
        (third, fourth) = consumer.receive_batch(9, timeout=0)
        consumer.acknowledge(third)
        consumer.acknowledge(fourth)
        assert [message.value for message in store.reader("t")] == [b"1", b"2", b"3", b"4"]
        assert row_json(store.reports.subscription_stats("t", "a"))["msgBacklog"] == 0
        assert store.maintenance.verify_store(full=True) == []


def test_a_session_ended_by_the_server(server: Server, path: str) -> None:
    """Nothing was done, the handle is of no use, its leases are free; new handles get what it held, and go on."""
    store = Store.open(path)
    producer = store.create_producer("t", producer_name="p", access_mode=AccessMode.EXCLUSIVE)
    producer.send(b"1")
    consumer = store.subscribe("t", "a", initial_position=EARLIEST)
    (held,) = consumer.receive_batch(9, timeout=0)
    txn = store.transaction()
    consumer.acknowledge(held, txn=txn)
    producer.send(b"never shown", txn=txn)
    txn.flush()
    server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'txnctl:%'"
    )
    # A session that is still ending takes a step, and has no time to say farewell.
    server.wait_until("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'txnctl:%'", "0")
    with pytest.raises(ServerLost, match="terminating connection due to administrator command"):
        producer.send(b"2")
    for call in (lambda: producer.send(b"2"), lambda: consumer.receive(timeout=0), txn.commit):
        with pytest.raises(StoreClosed, match="terminating connection"):
            call()
    with Store.open(path) as again, Store.open(path) as third:
        other = again.create_producer("t", producer_name="p", access_mode=AccessMode.EXCLUSIVE)
        other.send(b"2")
        with pytest.raises(ProducerBusy):
            third.create_producer("t")
        beside = third.subscribe("t", "a")
        received = beside.receive_batch(9, timeout=0)
        assert [(message.value, message.redelivery_count) for message in received] == [(b"1", 1), (b"2", 0)]
        for message in received:
            beside.acknowledge(message)
        other.close()
        third.create_producer("t").send(b"3")
        (last,) = beside.receive_batch(9, timeout=0)
        with again.transaction() as later:
            again.create_producer("t").send(b"4", txn=later)
        beside.acknowledge(last)
        assert [message.value for message in again.reader("t")] == [b"1", b"2", b"3", b"4"]
        assert again.maintenance.verify_store(full=True) == []
    store.close()


def test_one_of_two_sessions_ended(server: Server, path: str) -> None:
    """A handle that lost the session of views gives up its leases as well."""
    store = Store.open(path)
    store.create_producer("t", access_mode=AccessMode.EXCLUSIVE)
    views = store.connection.environment._views.server_pid  # type: ignore[attr-defined]
    server.psql(f"SELECT pg_terminate_backend({views})")
    with pytest.raises(ServerLost):
        store.topics()
    with Store.open(path) as again:
        again.create_producer("t", access_mode=AccessMode.EXCLUSIVE)
    store.close()


def test_a_server_restarted_in_order(own: Server) -> None:
    """A restart is no new incarnation: transactions with an id of their own go on."""
    url = own.url()
    Store.create(url, durability="local")
    with Store.open(url) as store:
        store.create_topic("t")
        before = store.identity
    for end in (own.stop, own.kill):
        with Store.open(url) as store:
            producer = store.create_producer("t")
            end()
            with pytest.raises(ServerUnreachable):
                Store.open(url.replace("store=s", "store=other"))
            own.start()
            with pytest.raises(ServerLost):
                producer.send(b"1")
        with Store.open(url) as store:
            assert store.identity == before
            assert store.maintenance.verify_store(full=True) == []
