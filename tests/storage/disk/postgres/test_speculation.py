"""A batch made without the gate starts from the last commit as the process has stored it."""

from __future__ import annotations

import subprocess
import sys

from storage import EARLIEST, Store
from storage.disk.codec import key1, unpack
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.speculation import Speculation
from storage.disk.schema import LEASES
from storage.process.identity import ProcessIdentity

OWNER = """
import os, sys
from storage import EARLIEST, Store

store = Store.open(sys.argv[1])
producer = store.create_producer("t", access_mode="Exclusive")
for number in range(3):
    producer.send(b"%d" % number)
consumer = store.subscribe("t", "a", initial_position=EARLIEST)
txn = store.transaction()
consumer.acknowledge(consumer.receive(timeout=30), txn=txn)
txn.flush()
os._exit(0)
"""
"""Has a producer, a consumer and a transaction by one lease, and dies."""


def test_the_known_commit_is_the_stored_one(store: Store, environment: PostgresEnvironment) -> None:
    """Number and superblock, which a view reads from the server."""
    store.create_topic("t")
    writer = environment.writer
    known = Speculation(environment._batches, writer.kept.commit[1], writer._superblock)
    with store.connection.view() as view:
        assert known.number == view.commit
        assert known.superblock().encode() == view.superblock.encode()
    snapshot = known.snapshot(KeptReads(known.number), known.number + 1)
    assert snapshot.id() == known.number + 1


def test_a_first_lease_behind_the_commits_of_a_process_that_died(store: Store, url: str) -> None:
    """The process takes no lease that the dead one recorded: producer, consumer and transaction are dead, and stay so."""
    for name in ("t", "u", "v"):
        store.create_topic(name)
    subprocess.run([sys.executable, "-c", OWNER, url], check=True, timeout=60)
    lease = store.connection.write(store.connection.lease)
    with store.connection.view() as view:
        payload = view.get(LEASES, key1(lease))
    assert payload is not None
    assert ProcessIdentity.of(unpack(payload)) == store.connection.identity
    consumer = store.subscribe("t", "a", initial_position=EARLIEST)
    received = consumer.receive_batch(9, timeout=0)
    assert [message.value for message in received] == [b"0", b"1", b"2"]
    consumer.acknowledge_cumulative(received[-1])
    store.create_producer("t", access_mode="Exclusive").send(b"3")
    assert [message.value for message in consumer.receive_batch(9, timeout=0)] == [b"3"]
