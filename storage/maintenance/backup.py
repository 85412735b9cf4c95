"""Copies of a store: backup while it is in use, restore as a new incarnation, compact in place.

A copy is built aside, synced and renamed, so that it is there whole or not at all. Restoring makes a new incarnation
(docs/SEMANTICS.md): open transactions are aborted, consumers detached, every topic epoch raised, so that nobody who
held something before the backup can go on as if nothing had happened.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from storage import audit_trail
from storage.disk.codec import U64X2
from storage.disk.create import building, install, write_lock_file
from storage.disk.directory import DATA, give_to_owner, resolved
from storage.disk.schema import LEASES, PURGES, TABLE_PURGES, TXN_DEADLINES
from storage.disk.view import WriteBatch
from storage.errors import StoreInUse
from storage.maintenance import table_gc
from storage.process.identity import describe, is_running, started
from storage.process.locks import FILE_NAME, processes_with
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.topic import catalogue as topics
from storage.topic.producers.admission import ProducerRegistry
from storage.txn.fence import Fence
from storage.txn.reaper import EVERY
from storage.values.txn_state import AbortReason

if TYPE_CHECKING:
    from storage.store import Store


Progress = Callable[[int, int], None]
"""(bytes written, bytes of the file that is copied, which is the most it can come to)"""

_PIECE_BYTES = 1 << 20


def backup(store: Store, destination: str, progress: Progress | None = None) -> dict[str, Any]:
    """A compacted copy of the store at `destination`, from one view; others go on writing meanwhile.

    Raises:
        AlreadyExists, StoreFull, StoreInvalid
    """
    destination = resolved(destination, os.path.abspath)
    with building(destination) as aside:
        _copy(store, aside, progress)
        write_lock_file(os.path.join(aside, FILE_NAME))
        install(aside, destination)
    return {"path": destination, "bytes": os.stat(os.path.join(destination, DATA)).st_size}


def restore(
    source: str,
    destination: str,
    open_store: Callable[..., Store],
    progress: Progress | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> dict[str, Any]:
    """A new store at `destination` from a backup, as a new incarnation; from a store in use it takes one view.

    Args:
        open_store: opens a store, as `Store.open`.
        dry_run: everything but putting it in its place.

    Raises:
        AlreadyExists, StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreFull
    """
    audit_trail.check_reason(reason)
    destination = resolved(destination, os.path.abspath)
    with open_store(source, read_only=True) as backed_up, building(destination) as aside:
        _copy(backed_up, aside, progress)
        write_lock_file(os.path.join(aside, FILE_NAME))
        with open_store(aside) as store:
            result = store.connection.write(lambda batch: _reincarnate(batch, store, reason), naming=EVERY)
        if not dry_run:
            install(aside, destination)
    return {"path": destination, **result, "dryRun": dry_run}


def _copy(store: Store, aside: str, progress: Progress | None) -> None:
    """Copy the data file from one view.

    LMDB copies in one call, which nothing interrupts: it runs in a thread and writes into a pipe, and this thread
    writes the file. Whatever ends this one closes the pipe, and with it the copy.
    """
    total = os.stat(os.path.join(store.path, DATA)).st_size
    source, sink = os.pipe()
    failures: list[BaseException] = []

    def copy() -> None:
        try:
            store.connection.environment.copy(sink)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            failures.append(error)
        finally:
            os.close(sink)

    thread = threading.Thread(target=copy, name="txnctl-copy")
    thread.start()
    try:
        with open(os.path.join(aside, DATA), "xb", opener=_private) as file:
            give_to_owner(file.fileno(), aside)
            done = 0
            while piece := os.read(source, _PIECE_BYTES):
                file.write(piece)
                done += len(piece)
                if progress is not None:
                    progress(done, max(done, total))
            file.flush()
            os.fsync(file.fileno())
    finally:
        os.close(source)
        thread.join()
    if failures:
        raise failures[0]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _reincarnate(batch: WriteBatch, store: Store, reason: str | None) -> dict[str, Any]:
    by, batch.superblock.incarnation = store.connection.owner, batch.superblock.incarnation + 1
    aborted = [U64X2.unpack(key)[1] for key in batch.keys(TXN_DEADLINES)]
    for txn in aborted:
        store.coordinator.abort(batch, txn, by, AbortReason.INCARNATION)
    detached = 0
    for topic in list(topics.every(batch)):
        # Nobody is connected to a copy: their sessions end by being restored, not as those of the dead.
        registry = ProducerRegistry(
            batch, topic.topic_id, topic.name, Fence(store.coordinator, by), is_swept=False
        )
        registry.fence(by, "restore")
        for subscription in subscriptions.every(batch, topic.topic_id):
            cursor = cursors.load(batch, subscription.subscription_id)
            for consumer in subscriptions.consumers(batch, subscription.subscription_id):
                subscriptions.detach(batch, subscription, cursor, consumer.consumer_id, {})
                detached += 1
            cursors.save(batch, subscription.subscription_id, cursor)
    for key in list(batch.keys(LEASES)):
        batch.delete(LEASES, key)
    result = {
        "incarnation": batch.superblock.incarnation,
        "transactionsAborted": len(aborted),
        "consumersDetached": detached,
    }
    audit_trail.record(batch, by, "store restore", "store", reason, result)
    return result


def compact(
    store: Store, progress: Progress | None = None, dry_run: bool = False, reason: str | None = None
) -> dict[str, Any]:
    """Rewrite the data file without its free pages, in place. Nobody else may have the store open.

    Args:
        dry_run: write the new file, to know its size, and leave the old one in place.

    Raises:
        StoreInUse: naming who has it open.
        StoreFull, BadInput
    """
    audit_trail.check_reason(reason)
    connection = store.connection
    environment, lock_path = connection.environment, os.path.join(connection.path, FILE_NAME)
    result: dict[str, Any] = {"path": connection.path, "bytesBefore": _data_bytes(connection.path)}
    if not environment.lock_file.own_store():
        others = [describe(pid, started(pid)) for pid in processes_with(lock_path)]
        raise StoreInUse(
            f"{connection.path} is open in {', '.join(others) or 'another process'}",
            hint="Close it there, or make a backup instead: it is compacted as well.",
            holders=others,
        )
    try:
        with building(os.path.join(connection.path, "compacted"), connection.path) as aside:
            _copy(store, aside, progress)
            _note_compacting(store, aside, reason, result["bytesBefore"])
            result["bytesAfter"] = _data_bytes(aside)
            if not dry_run:
                environment.replace_data(os.path.join(aside, DATA))
    finally:
        environment.lock_file.share_store()
    return {**result, "dryRun": dry_run}


def _note_compacting(store: Store, aside: str, reason: str | None, bytes_before: int) -> None:
    """Write the audit record into the new file, so that the one is in place with the other."""
    effects = {"bytesBefore": bytes_before, "bytesCopied": _data_bytes(aside)}
    by = store.connection.owner
    write_lock_file(os.path.join(aside, FILE_NAME))
    with type(store).open(aside, clock=store.connection.clock) as copy:
        # Nothing may be reaped here: who holds leases locks the other lock file.
        copy.connection.write(
            lambda batch: audit_trail.record(batch, by, "store compact", "store", reason, effects),
            naming=EVERY,
        )
        figures = copy.connection.environment.info()
    # The room ahead of the end that the write has made is what compacting shall give back.
    with open(os.path.join(aside, DATA), "r+b") as file:
        file.truncate((figures["last_pgno"] + 1) * figures["psize"])
        os.fsync(file.fileno())


def _data_bytes(path: str) -> int:
    return os.stat(os.path.join(path, DATA)).st_size


def collect(
    store: Store, trust_clock: bool = False, dry_run: bool = False, reason: str | None = None
) -> dict[str, Any]:
    """Free what nobody needs: reader slots of dead processes, what deleted topics and tables left, old versions.

    Raises:
        BadInput
    """
    audit_trail.check_reason(reason)
    connection = store.connection
    with connection.view() as view:
        deleted = {"deletedTopics": view.count(PURGES), "deletedTables": view.count(TABLE_PURGES)}
    if dry_run:
        dead = sum(not is_running(each["pid"]) for each in store.readers())
        return {
            "readersFreed": dead, **deleted, "purgeSteps": None, **table_gc.forecast(connection, trust_clock),
            "dryRun": True,
        }  # fmt: skip
    freed = connection.environment.check_readers()
    result = {
        "readersFreed": freed, **deleted, "purgeSteps": store.admin.purge(),
        **table_gc.collect(connection, trust_clock),
    }  # fmt: skip
    if trust_clock or freed or any(deleted.values()) or any(result[each] for each in table_gc.COUNTS):
        connection.write(
            lambda batch: audit_trail.record(
                batch, connection.owner, "store gc", "store", reason, {**result, "trustClock": trust_clock}
            )
        )
    return {**result, "dryRun": False}
