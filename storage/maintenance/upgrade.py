"""Bring a store of an earlier format to the present one, in place.

Records of format 1 keep their meaning in format 2, so nothing is converted: the databases that the store lacks, the
bounds of its subscriptions, the version of each table from which its changes are kept, the number and the audit record
are one commit. A killed upgrade leaves format 1 untouched or format 2 whole, and no number for half of an upgrade is
needed (docs/decisions/0042-format-2-in-one-commit.md).
"""

from __future__ import annotations

from storage import audit_trail
from storage.disk.codec import missing, pack, unpack
from storage.disk.schema import FORMAT_KEY, FORMAT_NUMBER, STORE
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.maintenance.store_alone import store_alone
from storage.process.identity import ProcessIdentity
from storage.subscription import catalogue as subscriptions, cursor as cursors, mark_index
from storage.subscription.mark_index import Bound
from storage.table import catalogue as tables, change_index
from storage.topic import catalogue as topics
from storage.txn.reaper import EVERY
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position


class FormatChange(NamedTuple):
    """An upgrade as the audit trail stores it."""

    format_before: int
    format: int


class UpgradeResult(NamedTuple):
    """The format of a store before and after; the same two numbers where nothing was to be done."""

    path: str
    format_before: int
    format: int
    dry_run: bool


def upgrade_store(engine: Engine, dry_run: bool = False, reason: str | None = None) -> UpgradeResult:
    """Bring the store to the present format, while only this process has the store open; nothing if it has that format.

    Args:
        dry_run: run everything, then drop the change.

    Raises:
        StoreInUse: a second process has the store open; the error names every such process.
        InvalidValue, StoreFull, WriterBusy
    """
    audit_trail.check_reason(reason)
    connection = engine.connection
    before = connection.environment.format_number
    if before != FORMAT_NUMBER:
        with store_alone(engine):
            upgrade(engine, reason, dry_run)
    return UpgradeResult(connection.path, before, FORMAT_NUMBER, dry_run)


def upgrade(engine: Engine, reason: str | None, dry_run: bool = False) -> None:
    """Bring a store that no other process has open to the present format; nothing if it has that format."""
    connection = engine.connection
    if connection.environment.format_number != FORMAT_NUMBER:
        # `EVERY` prevents reaping: an upgrade ends nobody's transaction.
        connection.upgrade(lambda batch: _write_number(batch, engine, reason), EVERY, dry_run)


def _write_number(batch: WriteBatch, engine: Engine, reason: str | None) -> None:
    payload = batch.get(STORE, FORMAT_KEY)
    if payload is None:
        raise missing(STORE, FORMAT_KEY)
    before, *fields = unpack(payload, 3)
    batch.put(STORE, FORMAT_KEY, pack([FORMAT_NUMBER, *fields]))
    convert(batch, engine.process, before, reason)


def convert(batch: WriteBatch, process: ProcessIdentity, before: int, reason: str | None) -> None:
    """Within a batch, add the records that format `before` lacks, and the audit record."""
    _add_bounds(batch)
    for table in tables.every(batch):
        change_index.raise_horizon(batch, table.table_id, batch.superblock.last_timestamp)
    audit_trail.record(batch, process, "store upgrade", "store", reason, FormatChange(before, FORMAT_NUMBER))


def _add_bounds(batch: WriteBatch) -> None:
    """Add each subscription to the index of marks, which format 1 lacks."""
    for topic in topics.every(batch):
        for subscription in list(subscriptions.every(batch, topic.topic_id)):
            at = Position(*cursors.load(batch, subscription.subscription_id).mark_delete)
            mark_index.put(batch, topic.topic_id, Bound(at, subscription.subscription_id, subscription.name))
