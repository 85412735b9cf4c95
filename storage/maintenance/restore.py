"""Restore a backup as a new incarnation of its store.

Open transactions are aborted, consumers detached and every topic epoch raised (docs/SEMANTICS.md), so that no process
that used the store before the backup can go on in the restored one.
"""

from __future__ import annotations

import os

from storage import audit_trail
from storage.disk import stores
from storage.disk.codec import U64X2
from storage.disk.lmdb.create import building, install, write_lock_file
from storage.disk.lmdb.directory import resolved
from storage.disk.schema import LEASES, TXN_DEADLINES
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import NotAStore, StoreNotFound
from storage.json_form import Flat
from storage.maintenance.copy import Progress, copy_data
from storage.maintenance.upgrade import upgrade
from storage.process.lock_file import FILE_NAME
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics, descent, state as states
from storage.topic.open_topic import OpenTopic
from storage.topic.producers.admission import ProducerRegistry
from storage.txn.fenced_txns import FencedTransactions
from storage.txn.reaper import EVERY
from storage.values.arguments import check_flags
from storage.values.named_tuple import NamedTuple
from storage.values.txn_state import AbortReason


class Reincarnation(NamedTuple):
    """The new incarnation, and the transactions and consumers ended in it."""

    incarnation: int
    transactions_aborted: int
    consumers_detached: int


class RestoreResult(NamedTuple):
    """A restored store. `format_before` is the format of the backup, from which the copy was upgraded on the way."""

    path: str
    format_before: int
    reincarnation: Flat[Reincarnation]
    dry_run: bool


def restore_store(
    source: str,
    destination: str,
    *,
    program: str | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> RestoreResult:
    """Make a new store at `destination` from a backup. A source that is in use is copied from one view.

    A backup of an earlier format becomes a store of the present format. To or from a server the records are copied.

    Args:
        dry_run: build and check the new store, and then drop it.

    Raises:
        AlreadyExists, StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreFull
    """
    check_flags(dry_run=dry_run)
    audit_trail.check_reason(reason)
    if stores.is_url(source) or stores.is_url(destination):
        from storage.maintenance.store_copy import copy_store

        copied = copy_store(
            source, destination, action="store restore", program=program, progress=progress, dry_run=dry_run,
            reason=reason,
        )  # fmt: skip
        return RestoreResult(copied.path, copied.format_before, copied.reincarnation, dry_run)
    destination = resolved(destination, os.path.abspath)
    with (
        open_source(source, program) as backed_up,
        building(destination) as build_dir,
    ):
        copy_data(backed_up, build_dir, progress)
        write_lock_file(os.path.join(build_dir, FILE_NAME))
        with Engine.open(build_dir, program=program) as engine:
            format_before = engine.connection.environment.format_number
            # Before anything is ended: the original may decide otherwise what is open in the backup.
            decided = decided_ledgers(engine)
            upgrade(engine, reason)
            result = engine.connection.write(
                lambda batch: reincarnate(batch, engine, decided, reason), naming=EVERY
            )
        if not dry_run:
            install(build_dir, destination)
    return RestoreResult(destination, format_before, result, dry_run)


def open_source(source: str, program: str | None) -> Engine:
    """Open the backup; a missing one is no store to create or to choose by `--store`."""
    try:
        return Engine.open(source, read_only=True, program=program)
    except (StoreNotFound, NotAStore) as error:
        error.hint = "Name the directory of a backup, or a store."
        raise


def decided_ledgers(engine: Engine) -> dict[int, int]:
    """The first ledger of each topic that is not closed and decided."""
    with engine.connection.view() as view:
        return {
            topic.topic_id: descent.first_undecided(states.load(view, topic.topic_id))
            for topic in topics.every(view)
        }


def reincarnate(
    batch: WriteBatch,
    engine: Engine,
    decided: dict[int, int],
    reason: str | None,
    action: str = "store restore",
) -> Reincarnation:
    """Within a batch, end every transaction, session, consumer and lease that the backup has brought along.

    Args:
        action: the action that the audit trail names.
    """
    process, batch.superblock.incarnation = engine.process, batch.superblock.incarnation + 1
    aborted = [U64X2.unpack(key)[1] for key in batch.keys(TXN_DEADLINES)]
    for txn in aborted:
        engine.coordinator.abort(batch, txn, process, AbortReason.INCARNATION)
    detached = 0
    for topic in list(topics.every(batch)):
        # No producer is connected to a copy: sessions end by the restore, not because their process died.
        registry = ProducerRegistry(
            OpenTopic.load(batch, topic.topic_id, topic.name),
            FencedTransactions(engine.coordinator, process),
            is_swept=False,
        )
        registry.fence_producers(process, "restore")
        descent.note(batch, topic.topic_id, batch.superblock.incarnation - 1, decided[topic.topic_id])
        for subscription in subscriptions.every(batch, topic.topic_id):
            opened = OpenSubscription(batch, subscription)
            for consumer in attached_consumers.every(batch, subscription.subscription_id):
                attached_consumers.detach(opened, consumer.consumer_id)
                detached += 1
            # However old the backup is: nobody could come for a subscription of the copy before now.
            attached_consumers.note_use(opened)
    for key in list(batch.keys(LEASES)):
        batch.delete(LEASES, key)
    result = Reincarnation(batch.superblock.incarnation, len(aborted), detached)
    audit_trail.record(batch, process, action, "store", reason, result)
    return result
