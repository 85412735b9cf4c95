"""Commits of a replicated store wait for the standby, or their outcome is unknown; unsafe servers are refused."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.postgres.writer import PostgresWriter
from storage.errors import OutcomeUnknown, ServerUnreachable, StoreNotFound, StoreUnsafe
from tests.processes.postgres.servers import Server
from tests.processes.postgres.test_lost_servers import Sending, made
from tests.waiting import let_pass


def test_a_server_without_a_standby_is_refused(server: Server) -> None:
    """Unless the caller accepts that the loss of a machine loses messages."""
    url = server.url("refused")
    with pytest.raises(StoreUnsafe, match="has no synchronous standby") as refused:
        Store.create(url)
    assert "durability='local'" in str(refused.value.hint)
    with pytest.raises(StoreUnsafe, match="names none"):
        Store.create(url, durability="replicated")
    with pytest.raises(StoreNotFound):
        Store.open(url)
    Store.create(url, durability="local")
    Store.open(url).close()


def test_a_local_store_beside_a_standby(pair: tuple[Server, Server]) -> None:
    """A local store does not ask whether its commits waited."""
    primary, _ = pair
    url = primary.url()
    Store.create(url, durability="local")
    primary.reload({"synchronous_standby_names": "''"})
    with Store.open(url) as store:
        store.create_topic("t")


def test_a_copy_goes_on_without_a_lost_standby(pair: tuple[Server, Server]) -> None:
    """Once the server names no standby any more, the store is only read, and a local copy has all of it."""
    primary, standby = pair
    url = made(primary, standby)
    with Store.open(url) as store:
        store.create_producer("t").send(b"kept")
    standby.kill()
    primary.reload({"synchronous_standby_names": "''"})
    with pytest.raises(StoreUnsafe, match="names none") as refused:
        Store.open(url)
    assert "durability='local'" in str(refused.value.hint)
    copy = primary.url("copy")
    Store.copy(url, copy, durability="local")
    with Store.open(copy) as store:
        store.create_producer("t").send(b"on")
        assert [message.value for message in store.reader("t")] == [b"kept", b"on"]


@pytest.mark.parametrize("how", ["canceled", "standby unnamed"])
def test_a_commit_that_did_not_wait(pair: tuple[Server, Server], how: str) -> None:
    """The change is on the primary alone, and so never reported as done."""
    primary, standby = pair
    with Store.open(made(primary, standby)) as store:
        producer = store.create_producer("t")
        for number in range(3):
            producer.send(b"%d" % number)
        standby.pause()
        sending = Sending(lambda: producer.send(b"alone"))
        primary.wait_for_standby_wait()
        if how == "canceled":
            primary.psql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        else:
            primary.configure({"synchronous_standby_names": "''"})
            primary.psql("SELECT pg_reload_conf()")
        error = sending.ended()
        standby.resume()
        assert isinstance(error, OutcomeUnknown) and "on the primary alone" in error.message
        hint = str(error.hint)
        assert "same sequence id" in hint and "end of the topic" in hint and "transaction" not in hint


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_slow_standby_is_waited_for(pair: tuple[Server, Server], is_alone: bool) -> None:
    """The time limit is that of the gate: a commit inside the gate waits on, however the batch was made.

    Nobody is told of a wait for the gate, which this process itself holds.
    """
    primary, standby = pair
    told: list[str] = []
    with Store.open(
        made(primary, standby), lock_timeout=0.3, on_wait=lambda who, waited: told.append(who)
    ) as store:
        producer = store.create_producer("t")
        for number in range(3):
            producer.send(b"%d" % number)
        writer = store.connection.environment.writer
        assert isinstance(writer, PostgresWriter)
        writer._is_alone = is_alone
        standby.pause()
        sending = Sending(lambda: producer.send(b"late"))
        primary.wait_for_standby_wait()
        let_pass(1.5, "five times the time limit of the gate")
        standby.resume()
        assert sending.ended() is None
        assert told == []
        assert [message.value for message in store.reader("t")] == [b"0", b"1", b"2", b"late"]


def test_an_ended_wait(pair: tuple[Server, Server]) -> None:
    """A session that is ended while its commit waits says nothing of the outcome."""
    primary, standby = pair
    with Store.open(made(primary, standby)) as store:
        producer = store.create_producer("t")
        standby.pause()
        sending = Sending(lambda: producer.send(b"alone"))
        primary.wait_for_standby_wait()
        primary.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        assert isinstance(sending.ended(), OutcomeUnknown)
        standby.resume()


def test_a_creation_that_did_not_wait(pair: tuple[Server, Server]) -> None:
    """Whether the new store will last is not known."""
    primary, standby = pair
    standby.pause()
    creating = Sending(lambda: Store.create(primary.url()))
    primary.wait_for_standby_wait()
    primary.psql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    assert isinstance(creating.ended(), OutcomeUnknown)
    standby.resume()


def test_open_for_writing_checks_the_server(pair: tuple[Server, Server]) -> None:
    """A standby is no server of a store; one without the promised standby is read, and not written."""
    primary, standby = pair
    made(primary, standby)
    # A commit waits until the standby has written it, and not until the standby shows it.
    standby.wait_until("SELECT count(*) FROM pg_namespace WHERE nspname = 's'", "1")
    any_server = standby.url() + "&target_session_attrs=any"
    for read_only in (False, True):
        with pytest.raises(ServerUnreachable, match="is a standby"):
            Store.open(any_server, read_only=read_only)
    with pytest.raises(ServerUnreachable):
        Store.open(standby.url())
    primary.reload({"synchronous_standby_names": "''"})
    with pytest.raises(StoreUnsafe, match="names none"):
        Store.open(primary.url())
    with Store.open(primary.url(), read_only=True) as store:
        store.topics()
        with pytest.raises(StoreUnsafe, match="names none"):
            Store.open(primary.url())


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_an_unsafe_server_is_refused(own: Server, setting: str) -> None:
    """At creation, and at each open for writing."""
    url = own.url()
    Store.create(url, durability="local")
    own.reload({setting: "off"})
    with pytest.raises(StoreUnsafe, match=f"runs with {setting} off"):
        Store.open(url)
    with pytest.raises(StoreUnsafe, match=f"runs with {setting} off"):
        Store.create(own.url("other"), durability="local")
    Store.open(url, read_only=True).close()


def test_settings_of_a_role(server: Server, path: str) -> None:
    """A role that confirms commits early, or ends steps early, changes nothing in our sessions."""
    server.psql("CREATE ROLE hasty SUPERUSER LOGIN")
    server.psql("ALTER ROLE hasty SET synchronous_commit = off")
    server.psql("ALTER ROLE hasty SET statement_timeout = 1")
    server.psql("ALTER ROLE hasty SET idle_in_transaction_session_timeout = 1")
    server.psql("ALTER ROLE hasty SET lock_timeout = 1")
    with Store.open(path.replace("postgres@", "hasty@")) as store:
        producer = store.create_producer("t")
        for number in range(100):
            producer.send(b"%d" % number)
        ((row,),) = store.connection.environment._batches.run_steps(  # type: ignore[attr-defined]
            (((b"setting", b"SELECT current_setting('synchronous_commit')"), ()),)
        )
        assert row[0] == b"on"
