"""Collect garbage: reader slots of dead processes, remains of deleted topics and tables, old versions of rows."""

from __future__ import annotations

from typing import Any

from storage import audit_trail
from storage.admin.purge import purge_deleted
from storage.disk.schema import PURGES, TABLE_PURGES
from storage.engine import Engine
from storage.maintenance import table_gc
from storage.process.identity import is_running
from storage.reports import store_info


def collect_garbage(
    engine: Engine, trust_clock: bool = False, dry_run: bool = False, reason: str | None = None
) -> dict[str, Any]:
    """Free reader slots of dead processes, remains of deleted topics and tables, and versions out of the window.

    Raises:
        BadInput
    """
    audit_trail.check_reason(reason)
    connection = engine.connection
    with connection.view() as view:
        deleted = {"deletedTopics": view.count(PURGES), "deletedTables": view.count(TABLE_PURGES)}
    if dry_run:
        dead = sum(not is_running(each["pid"]) for each in store_info.readers(connection))
        return {
            "readersFreed": dead, **deleted, "purgeSteps": None, **table_gc.forecast(connection, trust_clock),
            "dryRun": True,
        }  # fmt: skip
    freed = connection.environment.check_readers()
    result = {
        "readersFreed": freed, **deleted, "purgeSteps": purge_deleted(connection),
        **table_gc.collect(connection, trust_clock),
    }  # fmt: skip
    if trust_clock or freed or any(deleted.values()) or any(result[each] for each in table_gc.COUNTS):
        connection.write(
            lambda batch: audit_trail.record(
                batch, connection.owner, "store gc", "store", reason, {**result, "trustClock": trust_clock}
            )
        )
    return {**result, "dryRun": False}
