"""A partition of the changes of a table: those between two places, in the order of versions."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from storage.errors import RequestTooOld, TableNotFound
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.source.change_columns import record_batch
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.partition import Partition

if TYPE_CHECKING:
    import pyarrow as pa

    from storage import Store, Table
    from storage.client.table_changes import TableChanges
    from storage.table.changes import Change, ChangeBound

BATCH_CHANGES: Final = 10_000
_LOG = logging.getLogger("txnctl.spark")


@dataclass(frozen=True)
class ChangeRange(Partition):
    """Changes from `start` on, below `end`; None for those of the version `until` at the last.

    Attributes:
        table_id: the id at planning time; another id means that the table was deleted and created again.
        fails: whether changes that were removed since the plan are an error.
    """

    local_store: LocalStore
    table: str
    table_id: int
    start: ChangeBound
    end: ChangeBound | None
    until: int
    fails: bool

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the changes as Arrow batches of this schema.

        Raises:
            StoreNotFound, StoreInvalid, TableNotFound: store or table differs from the planned one.
            RequestTooOld: changes were removed since the plan.
        """
        with hints_as_notes(), self.local_store.open_read_only() as store:
            changes = self._changes(same_table(store, self.table, self.table_id))
            while page := list(islice(changes, BATCH_CHANGES)):
                yield record_batch(page, schema)

    def _changes(self, table: Table) -> Iterator[Change]:
        start = self.start
        while True:
            try:
                changes = table.changes(since=start.version - 1, until=self.until)
                for change in changes.between(start, self.end):
                    start = type(start)(change.version_ns, change.key + b"\0")
                    yield change
            except RequestTooOld as error:
                start = type(start)(go_on_after(error, self.fails) + 1)
                if (self.end is None and start.version > self.until) or (self.end and start >= self.end):
                    return
            else:
                return


def same_table(store: Store, name: str, table_id: int) -> Table:
    """Open a table that a plan or a checkpoint names.

    Raises:
        TableNotFound: the table is not there, or was created again.
    """
    table = store.table(name)
    if table.table_id != table_id:
        raise TableNotFound(
            f"table {name} was deleted and created again",
            hint="Run the read again; a stream needs a new checkpoint.",
            table=name,
        )
    return table


def kept_changes(table: Table, since: int | None, until: int | None, *, fails: bool) -> TableChanges:
    """The changes after a version; where some were removed, an error or those that are kept, by `failOnDataLoss`.

    Raises:
        RequestTooOld
    """
    try:
        return table.changes(since=since, until=until)
    except RequestTooOld as error:
        return table.changes(since=go_on_after(error, fails), until=until)


def go_on_after(error: RequestTooOld, fails: bool) -> int:
    """The oldest start that an error names, with a warning.

    Raises:
        RequestTooOld: missing changes are an error, or the error names no start.
    """
    oldest = error.details.get("oldestVersion")
    if fails or oldest is None:
        error.hint = (
            "Read the whole table with asOf, then the changes since that version, a stream with a new checkpoint; or "
            "set failOnDataLoss to false, which goes on at the oldest start. `store config table-retention` keeps more."
        )
        raise error
    _LOG.warning("%s; the read goes on there", error.message)
    return int(oldest)
