"""A queue by hand in PostgreSQL: a table, prepared statements, and the calls of libpq that the store itself makes.

One session, in pipeline mode with binary parameters, commits by itself after each statement: the least that a durable
message costs on the server, and the usual way to take messages from a table (`FOR UPDATE SKIP LOCKED`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from storage.disk.postgres.binary import bytea_array, int4
from storage.disk.postgres.session import Session, Statement
from storage.disk.postgres.url import StoreUrl
from storage.process.clock import SYSTEM_CLOCK

_INSERT: Final[Statement] = (b"insert", b"INSERT INTO message (value) VALUES ($1::bytea)")
_INSERT_ALL: Final[Statement] = (b"insert_all", b"INSERT INTO message (value) SELECT unnest($1::bytea[])")
_TAKE: Final[Statement] = (
    b"take",
    (
        b"DELETE FROM message WHERE id IN (SELECT id FROM message ORDER BY id LIMIT $1::int4 FOR UPDATE SKIP LOCKED)"
        b" RETURNING id, value"
    ),
)
_SETTINGS: Final = (
    "server_version", "fsync", "synchronous_commit", "synchronous_standby_names", "wal_sync_method", "shared_buffers",
)  # fmt: skip


class PostgresTable:
    """A `Queue` in a schema of its own, which `close` removes."""

    def __init__(self, url: StoreUrl) -> None:
        self._schema = f"{url.store}_by_hand"
        self._session = Session.connect(
            url._replace(store=self._schema), SYSTEM_CLOCK, application="txnctl benchmark"
        )
        self._session.execute(
            f'CREATE SCHEMA "{self._schema}"; '
            "CREATE TABLE message (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value bytea NOT NULL)"
        )

    def append(self, values: Sequence[bytes]) -> None:
        if len(values) == 1:
            self._session.run_steps(((_INSERT, (values[0],)),))
        else:
            self._session.run_steps(((_INSERT_ALL, (bytea_array(values),)),))

    def take(self, count: int) -> int:
        (rows,) = self._session.run_steps(((_TAKE, (int4(count),)),))
        return len(rows)

    def settings(self) -> dict[str, str]:
        """The settings of the server by which figures differ."""
        return {name: (self._session.execute(f"SHOW {name}")[0][0] or b"").decode() for name in _SETTINGS}

    def close(self) -> None:
        """Remove the schema, and the store's own."""
        self._session.execute(f'DROP SCHEMA "{self._schema}" CASCADE')
        self._session.close()


class Bystander:
    """A session that holds a snapshot, as a long query or a forgotten transaction does."""

    def __init__(self, url: StoreUrl) -> None:
        self._session = Session.connect(url, SYSTEM_CLOCK, application="txnctl bystander")
        self._session.execute(
            "SET idle_in_transaction_session_timeout = 0; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1"
        )

    def close(self) -> None:
        self._session.close()


def remove_store(url: StoreUrl) -> None:
    """Remove the schema of a store that was made for a run."""
    session = Session.connect(url, SYSTEM_CLOCK, application="txnctl benchmark")
    session.execute(f'DROP SCHEMA IF EXISTS "{url.store}" CASCADE')
    session.close()
