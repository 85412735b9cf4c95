"""The changes of a table between two versions, for applications: in the order of versions, the serial order.

A transaction writes at the timestamp of its begin, so changes are read up to a final version only: below the timestamps
of all open transactions, where no commit can add a change any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.client.final_version import FinalVersion, find_final
from storage.disk.connection import Connection
from storage.errors import InvalidValue
from storage.limits import PAGE_ENTRIES, SPLIT_KEYS
from storage.table import change_index, changes, other_lives
from storage.table.catalogue import TableEntry, check_exists
from storage.table.changes import Change, ChangeBound
from storage.values.arguments import check_count


class TableChanges:
    """Made by `Table.changes`. Iterating reads a page at a time, and may be repeated.

    Attributes:
        since: the changes of later versions are read; a final version.
        until: the final version up to which changes are read; `since` at the least.
        final: the final version that was found, with the transaction that it waits for.
    """

    def __init__(
        self, connection: Connection, table: TableEntry, since: int | None, until: int | FinalVersion | None
    ) -> None:
        self._connection = connection
        self._table = table
        with connection.view() as view:
            self._seen = view.commit
        self.final = until if isinstance(until, FinalVersion) else find_final(connection, table, until)
        with connection.view() as view:
            check_exists(view, table)
            oldest = change_index.horizon(view, table.table_id)
            if since is not None:
                _check_version(since)
                if since < oldest:
                    raise changes.too_old(table.name, since, oldest)
                other_lives.check_version(view, table.name, since)
        if since is not None and since > self.final.version:
            # An open transaction may still write before it: the changes since then would lack its own.
            since = max(oldest, find_final(connection, table, since).version)
        self.since = oldest if since is None else since
        self.until = max(self.since, self.final.version)

    @property
    def first(self) -> ChangeBound:
        """The place of the first change."""
        return ChangeBound(self.since + 1)

    def __iter__(self) -> Iterator[Change]:
        return self.between(self.first, None)

    def between(self, start: ChangeBound, end: ChangeBound | None) -> Iterator[Change]:
        """Yield the changes from one place on, below another; None for the end.

        Raises:
            RequestTooOld: changes from there on were removed meanwhile.
            TableNotFound: the table was deleted.
        """
        rest: ChangeBound | None = start
        while rest is not None:
            with self._connection.view() as view:
                check_exists(view, self._table)
                page, rest = changes.page(view, self._table, rest, self.until, PAGE_ENTRIES)
            for change in page:
                if end is not None and (change.version_ns, change.key) >= end:
                    return
                yield change

    def whole_until(self, limit: int) -> int:
        """The version up to which there are at most `limit` changes, or those of the first version if they are more.

        Without any change `since`. Changes of one version stay together.

        Raises:
            RequestTooOld, TableNotFound, InvalidValue
        """
        check_count("a limit", limit, 1)
        count, last = 0, self.since
        whole = self.since
        for place in self._places(min(limit + 1, SPLIT_KEYS)):
            if place.version != last:
                whole, last = last, place.version
                if count >= limit:
                    return whole
            count += 1
            if count > limit and whole > self.since:
                return whole
        return self.until if count else self.since

    def count(self) -> int:
        """The number of changes; those of aborted transactions count until gc has removed them.

        Raises:
            RequestTooOld, TableNotFound
        """
        return sum(1 for _ in self._places())

    def has_any(self) -> bool:
        """Whether there is a change.

        Raises:
            RequestTooOld, TableNotFound
        """
        return next(self._places(1), None) is not None

    def wait(self, timeout: float) -> None:
        """Sleep until a process has committed since this object was made, `timeout` seconds at the longest.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        until_ns = self._connection.clock.boot_ns() + int(timeout * 1e9)
        self._connection.wait_for_commit(self._seen, until_ns)

    def split(self, count: int) -> list[ChangeBound]:
        """The places that cut the changes into parts of `count`, but for the last.

        Raises:
            RequestTooOld, TableNotFound, InvalidValue
        """
        check_count("a number of changes", count, 1)
        return [place for number, place in enumerate(self._places()) if number and not number % count]

    def _places(self, step: int = SPLIT_KEYS) -> Iterator[ChangeBound]:
        """Yield the place of every change, from views of bounded length."""
        start = self.first
        while True:
            with self._connection.view() as view:
                check_exists(view, self._table)
                places = changes.places(view, self._table, start, self.until, step)
            yield from places
            if len(places) < step:
                return
            start = ChangeBound(places[-1].version, places[-1].key + b"\0")


def _check_version(since: object) -> None:
    if type(since) is not int or not 0 <= since < 1 << 63:
        raise InvalidValue(f"a version is a whole number of nanoseconds since 1970, not {since!r}")
