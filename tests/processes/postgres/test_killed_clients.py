"""Clients of a server that are killed or stopped: locks are free at once, and nothing half-done is left."""

from __future__ import annotations

import time

import pytest

from storage import AccessMode, Store
from storage.errors import WriterBusy
from tests.processes.child import Children
from tests.processes.postgres.servers import Server

OWNER = """
with Store.open(path) as store:
    producer = store.create_producer("t", access_mode="Exclusive", producer_name="owner")
    producer.send(b"before")
    consumer = store.subscribe("t", "s", subscription_type="Exclusive")
    txn = store.begin_transaction()
    producer.send(b"open", txn=txn)
    say("ready")
    hear()
"""
INSIDE = """
from storage import faults
with Store.open(path) as store:
    producer = store.create_producer("t", producer_name="p")
    for number in range(int(sys.argv[3])):
        producer.send(b"%d" % number)
    say("ready")
    hear()
    faults.arm(sys.argv[2], lambda: os.kill(os.getpid(), signal.SIGKILL))
    producer.send(b"last")
"""
STOPPED = """
from storage import faults
with Store.open(path) as store:
    producer = store.create_producer("t", producer_name="p")
    hear()
    def stop():
        faults.disarm()
        say("inside")
        os.kill(os.getpid(), signal.SIGSTOP)
    faults.arm("environment.before_commit", stop)
    for attempt in range(2):
        try:
            producer.send(b"stopped")
        except errors.TxnctlError as error:
            say("error", error.code, error.message)
"""


def values(store: Store) -> list[bytes | None]:
    """The committed messages of the topic."""
    return [message.value for message in store.reader("t")]


def test_a_killed_client_frees_its_topic(store: Store, children: Children) -> None:
    """The exclusive owner, its consumer and its open transaction are gone with the process."""
    owner = children.run(OWNER)
    owner.expect("ready")
    owner.kill()
    producer = store.create_producer("t", access_mode=AccessMode.WAIT_FOR_EXCLUSIVE, timeout=60)
    producer.send(b"after")
    store.subscribe("t", "s", subscription_type="Exclusive").close()
    assert values(store) == [b"before", b"after"]


@pytest.mark.parametrize("sent", [0, 5])
@pytest.mark.parametrize(
    "point", ["environment.before_change", "environment.before_commit", "environment.after_commit"]
)
def test_a_client_killed_at_the_gate(store: Store, children: Children, point: str, sent: int) -> None:
    """The gate is free; the message is there whole exactly if it was committed."""
    child = children.run(INSIDE, point, sent)
    child.expect("ready")
    child.say()
    assert child.line() is None
    store.create_topic("u")
    last = [b"last"] if point == "environment.after_commit" else []
    assert values(store) == [b"%d" % number for number in range(sent)] + last


def test_a_client_killed_while_it_waits_for_the_gate(
    store: Store, children: Children, server: Server
) -> None:
    """Its leases are free though the gate is not: the server looks whether a waiting client lives."""
    waiting = children.run("""
        with Store.open(path) as store:
            producer = store.create_producer("u", access_mode="Exclusive", create_topic=True)
            say("ready")
            hear()
            producer.send(b"1")
    """)
    waiting.expect("ready")
    stopped = children.run(STOPPED)
    stopped.say()
    stopped.expect("inside")
    lock_class = store.connection.environment._lock_number  # type: ignore[attr-defined]
    held = (
        f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND classid = {lock_class}"
    )
    assert server.psql(held) == "3"
    waiting.say()
    server.wait_until(
        f"SELECT count(*) FROM pg_locks WHERE objid = 0 AND classid = {lock_class} AND NOT granted", "1"
    )
    waiting.kill()
    server.wait_until(held, "2")
    stopped.kill()


@pytest.mark.slow
def test_a_client_stopped_inside_the_gate_is_ended_by_the_server(store: Store, children: Children) -> None:
    """After four seconds others go on; the stopped one, continued, is told, and has stored nothing."""
    stopped = children.run(STOPPED)
    stopped.say()
    stopped.expect("inside")
    began = time.monotonic()
    producer = store.create_producer
    with pytest.raises(WriterBusy, match="process "):
        store.connection.write(lambda batch: batch.get, timeout_s=1.0)
    while True:
        try:
            producer("t").send(b"other")
            break
        except WriterBusy:
            assert time.monotonic() - began < 60
    assert time.monotonic() - began > 3
    stopped.resume()
    assert stopped.expect("error").startswith("server-lost the connection to ")
    assert stopped.expect("error").startswith("store-closed this handle of ")
    assert values(store) == [b"other"]
