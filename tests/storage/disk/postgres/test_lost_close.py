"""Closing a handle whose server has died: the next open of the process is a new one."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import StoreInvalid
from txnctl.demo.cluster import running_cluster


@pytest.mark.needs_program("initdb")
def test_a_store_opens_again_behind_a_handle_that_lost_its_server() -> None:
    """`close` finds out about the death in one of two sessions, raises nothing, and lets go of both."""
    with running_cluster() as cluster:
        url = cluster.url("bank")
        Store.create(url)
        store = Store.open(url)
        store.create_topic("orders")
        producer = store.create_producer("orders")
        cluster.primary.kill()
        with pytest.raises(StoreInvalid):
            producer.send(b"lost")
        cluster.promote()
        cluster.standby.make_standby_of(cluster.primary)
        store.close()
        with Store.open(url) as again:
            again.create_producer("orders").send(b"kept")
