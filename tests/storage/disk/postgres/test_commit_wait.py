"""A process that waits hears of a commit at once, and of none when the time is over."""

from __future__ import annotations

import threading

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment


def test_a_commit_wakes_a_waiting_reader(url: str, store: Store) -> None:
    """Long before the look that backs the notification, and the committer notifies nobody else."""
    store.create_topic("t")
    producer = store.create_producer("t")
    with store.reader("t") as reader:
        timer = threading.Timer(0.2, producer.send, (b"late",))
        timer.start()
        message = reader.read_next(timeout=20)
        timer.join()
    assert message is not None
    assert message.value == b"late"


def test_the_wait_ends_with_its_time(store: Store, environment: PostgresEnvironment) -> None:
    """Without a commit; a commit before the wait ends it at once."""
    wait = environment.commit_wait()
    seen = environment.last_commit()
    assert not wait.wait(seen, environment.clock.boot_ns() + 50_000_000)
    store.create_topic("t")
    assert wait.wait(seen, environment.clock.boot_ns() + 60_000_000_000)
