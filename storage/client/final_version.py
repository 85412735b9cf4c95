"""Final versions: a read at a final version has one answer for ever, as nothing that is open can still write there.

A transaction writes at the timestamp of its begin, so the newest final version lies below the timestamp of every open
transaction, and at or below the last timestamp issued: the next transaction may begin with any later one, also after
the clock was set back (docs/decisions/0030).
"""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.disk.connection import Connection
from storage.errors import InvalidValue, RequestTooOld
from storage.table import other_lives
from storage.table.catalogue import TableEntry, check_exists
from storage.txn import record as records
from storage.values.named_tuple import NamedTuple
from storage.values.timestamps import rfc3339
from storage.values.txn_id import TxnID


class FinalVersion(NamedTuple):
    """A version for reads in the past, as `Table.version_at` finds it.

    Attributes:
        version: the timestamp.
        unchanged_until: the latest time up to which nothing was issued after the version.
        waits_for: the open transaction that forbids a later version; 0 for a transaction without a record, None if
            there is no such transaction.
    """

    version: int
    unchanged_until: int
    waits_for: TxnID | int | None


def find_final(connection: Connection, table: TableEntry, at: int | None) -> FinalVersion:
    """The newest final version at or below a timestamp; at None the newest of all.

    Raises:
        InvalidValue: the timestamp is no version, or lies in the future.
        RequestTooOld: the timestamp is of another incarnation of the store, or of a former table of the name.
        TableNotFound: the table was deleted since the handle was made, and a timestamp is given.
        WriterBusy
        StoreInvalid: the handle is open for reading only, and cannot show the commit of a killed process.
    """
    if at is not None and (type(at) is not int or not 0 < at < 1 << 63):
        raise InvalidValue(f"a version is a whole number of nanoseconds since 1970, not {at!r}")
    with connection.view() as view:
        issued, wall_ns = view.superblock.last_timestamp, view.clock.wall_ns()
        if at is not None and at // 1_000_000 > wall_ns // 1_000_000:
            _check_issued(at, connection.environment.read_cache.last_issued(view.superblock), table.name)
        if at is not None:
            if table.table_id > 0:
                check_exists(view, table)
            other_lives.check_version(view, table.name, at)
    newest = issued if at is None else min(at, issued)
    # Locks first, then records: a transaction lets go of its timestamp when its record is committed.
    held = connection.environment.locks.open_timestamps.lowest(newest)
    # A killed process has let go of its timestamps, and its last commit may not show yet.
    connection.await_commits()
    with connection.view() as view:
        record = records.oldest_writer(view, newest)
    if record is not None and (held is None or record.timestamp <= held):
        return FinalVersion(record.timestamp - 1, record.timestamp - 1, record.id)
    if held is not None:
        return FinalVersion(held - 1, held - 1, 0)
    is_newest = newest == issued
    return FinalVersion(newest, max(issued, wall_ns) if is_newest else newest, None)


def _check_issued(at: int, issued: int, table: str) -> None:
    """See that a timestamp later than now, to the millisecond, is issued: a clock may have been set back."""
    if at > issued:
        raise InvalidValue(
            f"{rfc3339(at // 1_000_000) or at} is in the future: what table {table} will hold then is not known",
            hint="Leave out the time to read what is committed now.",
            table=table,
        )


def before_retention(table: str, final: FinalVersion, start: int) -> RequestTooOld:
    """The error of a read at a final version whose rows are not kept any more."""
    time, since = (rfc3339(timestamp // 1_000_000) for timestamp in (final.version, start))
    message = f"what table {table} held at {time or final.version} is not kept any more"
    if final.waits_for is None:
        message += f"; it can be read from {since} on"
        hint = Hint(
            "`{}` says for how long versions are kept.", Action("store.admin.settings.set_table_retention")
        )
    else:
        message += f", and {blocker_text(final)} can still write after that time"
        hint = Hint(
            "Wait for its end: `{}` shows open transactions.", Action("store.reports.list_transactions")
        )
    waits = {} if final.waits_for is None else {"waitsFor": blocker_text(final)}
    return RequestTooOld(message, hint=hint, table=table, keptSince=since, **waits)


def blocker_text(final: FinalVersion) -> str:
    """The open transaction that forbids a later version, in words."""
    return f"transaction {final.waits_for}" if final.waits_for else "a transaction of a running process"
