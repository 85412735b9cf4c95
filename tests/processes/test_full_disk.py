"""A full disk, as a limit on the size of files shows it: StoreFull, nothing lost, and on it goes with room again."""

from __future__ import annotations

import pytest

from storage import Store
from tests.processes.child import Children

LIMIT = """
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def allow(more):
        size = os.stat(os.path.join(path, "data.mdb")).st_size
        limit = resource.RLIM_INFINITY if more is None else max(0, size + more)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
"""

SENDS = (
    LIMIT
    + """
    with Store.open(path) as store:
        producer, sent = store.create_producer("t"), []
        def send(value):
            try:
                producer.send(value)
            except errors.StoreFull as error:
                assert error.hint and error.exit_code == 6
                return False
            sent.append(value)
            return True

        full = 0
        for room in [*range(0, 70_000, 3_001), 200_000]:
            allow(room)
            for number in range(100):
                if not send(b"%d %d " % (room, number) + b"." * (number * 997 % 30_000)):
                    full += 1
                    break
            assert [message.value for message in store.reader("t")] == sent, room
            assert send(b"%d small" % room) in (True, False)
            allow(None)
            assert send(b"%d after" % room), "with room it goes on"
        assert [message.value for message in store.reader("t")] == sent
        assert store.maintenance.verify_store(full=True) == []
        say("full", full)
        say("sent", len(sent))
"""
)

EVERYTHING = (
    LIMIT
    + """
    def attempts(store, producer, consumer, txn):
        yield "send", lambda: store.create_producer("t").send(b"x" * 50_000)
        yield "batch", lambda: store.create_producer("t").send_batch([b"x" * 50_000] * 400)
        yield "begin", lambda: [store.begin_transaction() for _ in range(300)]
        yield "create", lambda: [store.create_topic(f"many-{number}") for number in range(300)]
        yield "subscribe", lambda: [store.subscribe("t", f"s{number}") for number in range(300)]
        yield "receive", lambda: [consumer.receive(timeout=0) for _ in range(3_000)]
        # Sends of a transaction are buffered for up to a second: only the flush needs room for certain.
        yield "in", lambda: ([producer.send(b"x" * 9_000, txn=txn) for _ in range(100)], txn.flush())

    with Store.open(path) as store:
        producer = store.create_producer("t")
        for _ in range(30):
            producer.send_batch([b"m"] * 100)
        consumer = store.subscribe("t", "s", initial_position=EARLIEST, receiver_queue_size=10)
        txn = store.transaction()
        for name, attempt in attempts(store, producer, consumer, txn):
            allow(8_192)
            with contextlib.suppress(errors.StoreFull):
                while True:  # use up the room that is kept written at the end of the file
                    store.create_producer("t").send(b"x" * 20_000)
            try:
                attempt()
            except errors.StoreFull:
                say("full", name)
            else:
                say("room", name)
            allow(None)
            assert store.maintenance.verify_store(full=True) == [], name
        txn.commit()
        store.create_producer("t").send(b"last")
        say("done")
"""
)

NOTHING_AT_ALL = (
    LIMIT
    + """
    store = Store.open(path)
    producer = store.create_producer("t")
    producer.send(b"before")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    for _ in range(3):
        try:
            producer.send(b"never")
        except errors.StoreFull:
            say("full")
    allow(None)
    producer.send(b"after")
    say("values", *(message.value.decode() for message in store.reader("t")))
"""
)


def test_sends_on_a_full_disk_are_refused_whole_and_work_again_with_room(path: str, children: Children):
    """At many sizes of what is left: each send is stored or StoreFull, and every stored one stays."""
    child = children.run(SENDS)
    assert int(child.expect("full", 60)) >= 20
    sent = int(child.expect("sent", 60))
    child.succeed()
    with Store.open(path, read_only=True) as store:
        assert len(list(store.reader("t"))) == sent


def test_every_kind_of_change_survives_a_full_disk(path: str, children: Children):
    """Sends, batches, begins, topics, subscriptions and hand-outs: StoreFull, and the store is sound after each."""
    child = children.run(EVERYTHING)
    said = {}
    while (line := child.line(60)) not in ("done", None):
        assert line is not None
        verdict, name = line.split()
        said[name] = verdict
    child.succeed()
    assert set(said) == {"send", "batch", "begin", "create", "subscribe", "receive", "in"}
    assert {name for name, verdict in said.items() if verdict == "room"} <= {"receive"}


def test_a_disk_that_takes_nothing_at_all_leaves_neither_the_gate_held_nor_anything_lost(
    path: str, children: Children
):
    """Not even the lock file can be signed; another process writes at once, and this one when it may again."""
    child = children.run(NOTHING_AT_ALL)
    for _ in range(3):
        child.expect("full")
    with Store.open(path, lock_timeout=5) as store:
        assert child.expect("values") == "before after"
        store.create_producer("t").send(b"of another")


@pytest.mark.parametrize("room", [0, 1, 4096, 20_000, 40_000])
def test_creating_a_store_on_a_full_disk_leaves_nothing_behind(path: str, children: Children, room: int):
    """StoreFull, no store, nothing beside it; with room it is created."""
    child = children.run(
        """
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        parent = os.path.join(os.path.dirname(path), "another")
        os.mkdir(parent)
        other = os.path.join(parent, "store")
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
        try:
            Store.create(other)
        except errors.StoreFull as error:
            say("full", *os.listdir(parent))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        Store.create(other)
        with Store.open(other) as store:
            say("created", store.maintenance.verify_store(full=True))
        """,
        room,
    )
    assert child.expect("full") == ""
    assert child.expect("created") == "[]"
    child.succeed()
