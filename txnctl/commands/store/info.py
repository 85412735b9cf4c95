"""`txnctl store info`: format, age, size and content of a store."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.fields.server import SERVER, server_facts
from txnctl.fields.store import CREATED
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.store_info import StoreInfo
    from txnctl.cli.context import Context

INFO = fields_of(
    "storage.reports.store_info:StoreInfo",
    {
        **CREATED,
        "created_at_ms": Help("When it was created.", heading="CREATED"),
        "incarnation": "Raised whenever a backup is restored.",
        "commits": "Durable commits since it was created.",
        "topics": "Topics.",
        "open_transactions": "Transactions that are open.",
        "transactions": "Transactions remembered, open ones included.",
        "last_timestamp_ns": Help("The last timestamp issued, in nanoseconds.", heading=""),
        "tables": "Tables.",
        "retention_time_ms": Help(
            "How long acknowledged messages are kept; null for no limit.", kind="keptTime"
        ),
        "retention_bytes": Help(
            "How much of what is acknowledged is kept; null for no limit.", kind="keptSize"
        ),
        "retention_hard": "What both do to messages not acknowledged: off, trim, or refuse.",
        "ttl_ms": "The age at which messages are acknowledged for every subscription; null for none.",
        "expire_after_ms": "The time without a consumer after which a subscription is deleted; null for none.",
        "table_retention_ms": "How long superseded versions of rows are kept.",
        "reap_policy": "What the next writer aborts: all, overdue, or nothing (manual).",
        "data_bytes": Help(
            "The size of data.mdb; on a server of the tables.", heading="FILE SIZE", kind="size"
        ),
        "in_use_bytes": Help("How much of it holds something now.", heading="IN USE", kind="size"),
        "free_bytes": Help(
            "How much of it is free, and will be reused.", heading="FREE IN FILE", kind="size"
        ),
        "used_bytes": Help("How much of it was ever in use.", heading="EVER IN USE", kind="size"),
        "map_bytes": Help("Address space it may grow into.", heading="MAP", kind="size"),
        "readers_in_use": Help("Slots of the reader table that are taken.", heading="READERS"),
        "readers_max": "Slots that it has.",
        "server": Help(SERVER, heading=""),
    },
)
_OF_FILES = ("dataBytes", "inUseBytes", "freeBytes", "usedBytes", "mapBytes", "readersInUse", "readersMax")
"""Fields of a store in a directory, whose place on a server `server_facts` take."""


@reads_store
@output(INFO, name_field="path")
@example("txnctl store info")
def info(context: Context) -> None:
    """Show the facts about a store: format, age, size and counts of objects.

    Of a store on a server also the server: release, durability, standbys, connections. Standbys are shown to roles with
    the rights of pg_monitor.
    """
    row = context.store.reports.store_info()
    width = context.table_width()
    context.show(row, table=None if row.server is None else lambda shown: _on_server(shown, width))


def _on_server(row: StoreInfo, width: int | None) -> Iterator[str]:
    """A line a field, then the lines of the server, and the standbys and transactions that it has."""
    from storage.json_form import to_json
    from storage.process.clock import SYSTEM_CLOCK
    from txnctl.output.shell import spell
    from txnctl.output.table import object_table

    assert row.server is not None, "only a store on a server is laid out here"
    fields = [field for field in INFO if field.name not in _OF_FILES]
    lines = list(object_table(to_json(row, spell), fields, width))
    facts = list(server_facts(row, row.server, SYSTEM_CLOCK.wall_ms()))
    facts += [("readers", f"{plural(len(row.server.transactions), 'transaction')} open in the database")]
    label = len(lines[0]) - len(lines[0].split("  ", 1)[1].lstrip())
    return iter([*lines, *[f"{name:{label}}{text}" for name, text in facts]])
