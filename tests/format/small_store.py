"""The small stores of tests/format: one of each format, packed.

store-1.mdb.gz was written by the first release and stays as it is. store-2.mdb.gz has one of everything that this
release writes, and is made anew when a record or database of format 2 is added before its release:

    python -m tests.format.small_store tests/format/store-2.mdb.gz
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from storage.errors import LostConflict
from storage.process.clock import ManualClock


def build(path: Path) -> None:
    """One of everything: plain, batch, keyed, tombstone, committed, aborted, open, acknowledged, pending, held, owned."""
    clock = ManualClock()
    Store.create(path, clock=clock)
    with Store.open(path, clock=clock, program="small-store") as store:
        store.create_topic("orders", ledger_entries_max=4)
        named = store.create_producer("orders", producer_name="loader")
        named.send(b"plain", sequence_id=7)
        named.send_batch(
            [b"a", None, b"\xff"],
            keys=[b"k", None, b""],
            properties=[{"p": "q"}, None, None],
            event_times=[5, None, 6],
        )
        committed, aborted, opened = (
            store.begin_transaction(),
            store.begin_transaction(),
            store.begin_transaction(labels={"job": "x"}),
        )
        named.send(b"committed", txn=committed)
        named.send(b"aborted", txn=aborted)
        named.send(b"open", txn=opened)
        store.commit_transaction(committed)
        store.admin.transactions.abort_transaction(aborted, reason="golden")
        store.admin.subscriptions.create_subscription("orders", "E", initial_position=EARLIEST)
        store.admin.subscriptions.create_subscription(
            "orders",
            "D",
            initial_position=EARLIEST,
            subscription_type=SubscriptionType.SHARED,
            subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED,
        )
        with store.subscribe("orders", "E") as consumer:
            consumer.acknowledge(consumer.receive(timeout=0))
        with store.subscribe("orders", "D") as consumer:
            messages = consumer.receive_batch(3, timeout=0)
            consumer.acknowledge(messages[1:2])
            consumer.acknowledge(messages[2:3], txn=opened)
        named.close()
        store.create_topic("accounts")
        with store.create_producer("accounts", access_mode="Exclusive", producer_name="first") as owner:
            owner.send(b"by the first owner")
        store.open_session("accounts", producer_name="second", lease=3600)
        store.create_topic("left")
        owned = store.create_producer("left", access_mode="WaitForExclusive", producer_name="dead")
        owned.send(b"by one that is dead")
        store.create_table("accounts")
        accounts = store.table("accounts")
        accounts.put(b"B1", b"100")
        accounts.put(b"B1", b"90")
        accounts.delete(b"B2")
        holder, loser = store.begin_transaction(), store.begin_transaction(priority="low")
        accounts.put(b"B3", b"held", txn=holder)
        with suppress(LostConflict):
            accounts.get(b"B3", txn=loser)
        store.create_table("dropped")
        store.admin.tables.delete_table("dropped")
        store.create_topic("parcels")
        parcels, late = store.create_producer("parcels", producer_name="belt"), store.begin_transaction()
        parcels.send(b"open", key="k", txn=late)
        parcels.send_batch([b"waits", b"goes"], keys=["k", "l"])
        with store.subscribe(
            "parcels", "K", subscription_type="key_shared", on_open="skip", initial_position=EARLIEST
        ) as consumer:
            consumer.acknowledge(consumer.receive(timeout=0))
        parcels.close()


def unpacked(format_number: int, path: Path) -> Path:
    """Put the small store of a format into a new directory, as if it had been lying there."""
    path.mkdir(mode=0o700)
    with (
        gzip.open(Path(__file__).with_name(f"store-{format_number}.mdb.gz")) as packed,
        open(path / "data.mdb", "wb") as data,
    ):
        shutil.copyfileobj(packed, data)
    (path / "store.lock").touch(mode=0o600)
    os.chmod(path / "data.mdb", 0o600)
    return path


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        build(Path(directory) / "store")
        data = (Path(directory) / "store" / "data.mdb").read_bytes()
    Path(sys.argv[1]).write_bytes(gzip.compress(data, mtime=0))
