"""One process has two sessions on a server; a fork leaves them to the parent."""

from __future__ import annotations

import os

import pytest

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.schema import TOPICS
from storage.errors import StoreClosed, StoreInvalid
from tests.postgres_cluster import Cluster


def sessions(cluster: Cluster) -> int:
    """The sessions of this process on the server."""
    name = f"txnctl:{os.uname().nodename}:{os.getpid()}"
    return int(cluster.psql(f"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '{name}%'"))


def test_handles_of_a_process_share_two_sessions(url: str, store: Store, postgres_cluster: Cluster) -> None:
    """Which end with the last handle."""
    with Store.open(url) as second:
        second.create_topic("t")
        assert store.has_topic("t")
        assert sessions(postgres_cluster) == 2


def test_a_reader_becomes_a_writer_with_a_second_handle(url: str) -> None:
    """A handle for reading only stays one."""
    with Store.open(url, read_only=True) as reader:
        with pytest.raises(StoreInvalid, match="reading only"):
            reader.create_topic("t")
        with Store.open(url) as writer:
            writer.create_topic("t")
        assert reader.has_topic("t")


def test_a_forked_child_opens_the_store_anew(url: str, store: Store) -> None:
    """The parent's handle fails in the child, and goes on in the parent."""
    store.create_topic("t")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            try:
                store.has_topic("t")
            except StoreClosed:
                with Store.open(url) as own:
                    own.create_producer("t").send(b"of the child")
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    store.create_producer("t").send(b"of the parent")
    with store.reader("t") as reader:
        assert [message.value for message in reader] == [b"of the child", b"of the parent"]


def test_views_and_batches_see_one_order_of_commits(store: Store, environment: PostgresEnvironment) -> None:
    """A view shows the commit that it was opened on, also while a batch of the process commits."""
    store.create_topic("t")
    with store.connection.view() as view:
        before = view.commit
        store.create_topic("u")
        assert view.commit == before
        assert environment.writer.kept.commit[1] == before + 1
    with store.connection.view() as view:
        assert view.commit == before + 1


def test_a_view_inside_a_view_shows_the_last_commit(store: Store, environment: PostgresEnvironment) -> None:
    """The outer one stays as it is, also behind the end of the inner one."""
    with store.connection.view() as outer:
        before = outer.commit, outer.count(TOPICS)
        store.create_topic("u")
        with store.connection.view() as inner, store.connection.view() as innermost:
            assert innermost.commit == inner.commit == before[0] + 1
            assert inner.count(TOPICS) == innermost.count(TOPICS) == before[1] + 1
        store.create_topic("v")
        assert (outer.commit, outer.count(TOPICS)) == before
    with store.connection.view() as view:
        assert view.count(TOPICS) == before[1] + 2
