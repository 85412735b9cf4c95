"""A store that goes on on another server: a new incarnation first, and no lost commit in silence."""

from __future__ import annotations

import pytest

from storage import Store, TransactionState
from storage.errors import CommitsLost, ProducerFenced, RequestTooOld, ServerLost
from storage.limits import TRANSACTION_IDS_SKIPPED
from tests.processes.postgres.servers import Server
from tests.processes.postgres.test_lost_servers import made


def test_a_promoted_standby_is_a_new_incarnation(pair: tuple[Server, Server]) -> None:
    """Open transactions are aborted, sessions ended and epochs raised, before anything else."""
    primary, standby = pair
    url = made(primary, standby)
    with Store.open(url) as store:
        before = store.identity
        owner = store.create_producer("t", producer_name="p", access_mode="Exclusive")
        assert owner.topic_epoch == 0
        owner.send(b"1")
        decided = store.table("accounts", create=True).put(b"a", b"1")
        consumer = store.subscribe("t", "s", subscription_type="Exclusive")
        txn = store.begin_transaction(timeout=600)
        owner.send(b"open", txn=txn)
        undecided = store.table("accounts").put(b"b", b"1")
        token = owner.session
        primary.kill()
        standby.promote()
        with pytest.raises(ServerLost):
            consumer.receive(timeout=5)
    primary.follow(standby)
    with Store.open(url) as store:
        assert store.identity.startswith(before.replace("-1", "-2-"))
        row = store.reports.show_transaction(txn).row
        assert row.state == TransactionState.ABORTED
        assert [change.key for change in store.table("accounts").changes(since=decided)] == [b"b"]
        with pytest.raises(RequestTooOld, match="is from before that"):
            store.table("accounts").changes(since=undecided)
        assert store.begin_transaction().least > TRANSACTION_IDS_SKIPPED
        change = store.reports.list_audit_records()[0]
        assert change.action == "failover" and "timeline 1" in (change.reason or "")
        with pytest.raises(ProducerFenced, match="is fenced"):
            store.create_producer("t", access_mode="Exclusive", resume=token)
        owner = store.create_producer("t", producer_name="p", access_mode="Exclusive")
        assert (owner.topic_epoch or 0) >= 2
        owner.send(b"2")
        consumer = store.subscribe("t", "s", subscription_type="Exclusive")
        assert consumer.receive(timeout=5).value == b"2"
    with Store.open(url) as store:
        assert "-2-" in store.identity
        assert store.maintenance.verify_store(full=True) == []


def test_commits_that_an_asynchronous_standby_lacks(own: Server) -> None:
    """A process that has seen more is told, once, with both numbers; then it goes on."""
    standby = Server(standby_of=own)
    url = own.url("s", standby)
    Store.create(url, durability="local")
    store = Store.open(url)
    store.create_topic("t")
    producer = store.create_producer("t")
    producer.send(b"kept")
    kept = store.connection.environment.last_commit()
    position = own.psql("SELECT pg_current_wal_flush_lsn()")
    standby.wait_until(f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn", "t")
    standby.kill()
    for _ in range(3):
        producer.send(b"lost")
    seen = store.connection.environment.last_commit()
    own.kill()
    standby.start()
    standby.promote()
    with pytest.raises(ServerLost):
        producer.send(b"more")
    store.close()
    with pytest.raises(CommitsLost, match=f"has seen commit {seen},.* up to {kept}") as lost:
        Store.open(url)
    assert (lost.value.details["seenCommit"], lost.value.details["lastCommit"]) == (seen, kept)
    with Store.open(url) as store:
        assert "-2-" in store.identity
        assert [message.value for message in store.reader("t")] == [b"kept"]
        assert store.maintenance.verify_store(full=True) == []
    standby.remove()


def test_a_former_state_of_the_same_server(own: Server) -> None:
    """Files put back from a copy are told by the commits that this process has seen, though the timeline is the same."""
    url = own.url()
    Store.create(url, durability="local")
    with Store.open(url) as store:
        store.create_topic("t")
    own.stop()
    copy = own.copy_data()
    own.start()
    with Store.open(url) as store:
        store.create_producer("t").send(b"lost")
    own.stop()
    own.put_back(copy)
    own.start()
    with pytest.raises(CommitsLost):
        Store.open(url, read_only=True)
    with Store.open(url) as store:
        store.create_producer("t").send(b"1")
        assert [message.value for message in store.reader("t")] == [b"1"]


def test_a_copied_database_is_another_store(own: Server) -> None:
    """A session of the original publishes nothing there, and no number of a transaction is given twice."""
    url = own.url("s")
    Store.create(url, durability="local")
    with Store.open(url) as store:
        store.create_topic("t")
        owner = store.create_producer("t", producer_name="p", access_mode="Exclusive")
        owner.send(b"1")
        token = owner.session
    own.psql("CREATE DATABASE twin TEMPLATE postgres", database="template1")
    with Store.open(url.replace("/postgres?", "/twin?")) as twin:
        with pytest.raises(ProducerFenced, match="is fenced"):
            twin.create_producer("t", access_mode="Exclusive", resume=token)
        change = twin.reports.list_audit_records()[0]
        assert change.action == "failover" and "copied within its server" in (change.reason or "")
        theirs = twin.begin_transaction()
        assert twin.maintenance.verify_store(full=True) == []
    with Store.open(url) as store:
        assert store.identity.endswith("-1")
        assert store.begin_transaction() != theirs
        store.create_producer("t", access_mode="Exclusive", resume=token).send(b"2")
