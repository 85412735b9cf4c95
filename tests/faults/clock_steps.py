"""A process whose clocks jump in the middle of deadlines, leases, delays and retention times: what must hold, asserted.

    LD_PRELOAD=clocks.so python -m tests.faults.clock_steps DIRECTORY WALL_S BOOT_S

Both clocks jump by these seconds once everything is under way. `verify --full` finds nothing before and after.
"""

from __future__ import annotations

import ctypes
import os
import sys

from storage import EARLIEST, Store, SubscriptionType
from tests.row_json import row_json

HOUR = 3_600
RETENTION_MS = 7 * 24 * HOUR * 1_000


def jump(wall_s: int, boot_s: int) -> None:
    """Move the clocks of this process."""
    library = ctypes.CDLL(None)
    library.clock_jump.argtypes = [ctypes.c_longlong, ctypes.c_longlong]
    library.clock_jump(wall_s * 10**9, boot_s * 10**9)


def sound(store: Store) -> None:
    """Check the whole store."""
    assert store.maintenance.verify_store(full=True) == []


def kept(store: Store) -> int:
    """Messages that are left of the topic with a retention time."""
    return len(list(store.reader("old")))


def prepare(path: str) -> None:
    """Build a store with a trimmed topic, a delayed redelivery and rows."""
    Store.create(path)
    with Store.open(path) as store:
        for name in ("old", "jobs", "owned"):
            store.create_topic(name, ledger_entries_max=2)
        store.create_table("rows")
        store.admin.topics.set_retention("old", time_ms=RETENTION_MS)
        store.admin.subscriptions.create_subscription("old", "s", initial_position=EARLIEST)
        with store.create_producer("old") as old, store.subscribe("old", "s") as consumer:
            for number in range(6):
                old.send(b"%d" % number)
            consumer.acknowledge_cumulative(list(consumer.receive_batch(6, timeout=0))[-1])
        store.table("rows").put(b"k", b"before")
        store.create_producer("jobs", connected=False).send(b"job")


def main(directory: str, wall: str, boot: str) -> None:
    """See the module."""
    path, wall_s, boot_s = os.path.join(directory, "store"), int(wall), int(boot)
    prepare(path)
    with Store.open(path) as store:
        sound(store)
        with store.subscribe(
            "jobs", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        ) as consumer:
            job = consumer.receive(timeout=0)
            consumer.negative_acknowledge(job, delay=HOUR)
            txn = store.begin_transaction(timeout=HOUR)
            store.create_producer("jobs", connected=False).send(b"within", txn=txn)
            session = row_json(store.open_session("owned", access_mode="Exclusive", lease=HOUR))["session"]

            jump(wall_s, boot_s)
            sound(store)
            store.table("rows").put(b"k", b"after")
            assert store.table("rows").get(b"k") == b"after"
            is_over = boot_s > HOUR
            state = row_json(store.reports.show_transaction(str(txn)))["state"]
            assert state == ("ABORTED" if is_over else "OPEN"), state
            leased = [
                row
                for row in row_json(store.reports.list_producers(topic="owned"))
                if row["state"] == "leased"
            ]
            assert bool(leased) is not is_over, leased
            again = consumer.receive_batch(1, timeout=0)
            assert bool(again) is is_over, "a delay goes by the boot clock"
        store.maintenance.collect_garbage()
        moved_together = abs(wall_s - boot_s) < 60
        is_old = wall_s * 1_000 > RETENTION_MS
        assert kept(store) == (0 if moved_together and is_old else 6), kept(store)
        store.maintenance.collect_garbage(trust_clock=True)
        assert kept(store) == (0 if is_old else 6), kept(store)
        if not is_over:
            store.commit_transaction(str(txn))
            store.session_producer("owned", session).send(b"still the owner")
        with store.transaction() as work:
            work_value = store.table("rows").get(b"k", txn=work)
            store.table("rows").put(b"k", work_value + b", later", txn=work)
        assert store.table("rows").get(b"k") == b"after, later"
        sound(store)
    jump(-wall_s, -boot_s)
    with Store.open(path) as store:
        store.table("rows").put(b"k", b"back")
        assert store.table("rows").get(b"k") == b"back"
        sound(store)
    print("held")


if __name__ == "__main__":
    main(*sys.argv[1:])
