"""The server as it runs now: release, standbys, connections, and transactions that hold back VACUUM.

A role without the rights of `pg_monitor` sees neither standbys nor the transactions of other roles: those are unknown.
"""

from __future__ import annotations

from typing import Final

from storage.disk.postgres.binary import as_bool, as_int, as_int_or_none, as_text
from storage.disk.postgres.client_name import ClientName
from storage.disk.postgres.session import Session, Statement
from storage.disk.server_status import ServerStatus, ServerTransaction, Standby

_STATUS: Final[Statement] = (
    b"status",
    (
        b"SELECT split_part(current_setting('server_version'), ' ', 1),"
        b" (extract(epoch FROM pg_postmaster_start_time()) * 1000)::int8,"
        b" current_setting('synchronous_standby_names'), pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),"
        b" (SELECT coalesce(sum(numbackends), 0)::int8 FROM pg_stat_database),"
        b" current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8"
        b" - coalesce(current_setting('reserved_connections', true), '0')::int8,"
        b" coalesce((SELECT string_agg(name, ',') FROM pg_settings WHERE name IN ('fsync', 'full_page_writes')"
        b" AND setting = 'off'), '')"
    ),
)
_STANDBYS: Final[Statement] = (
    b"standbys",
    (
        b"SELECT application_name::text, host(client_addr), state, sync_state,"
        b" pg_wal_lsn_diff(pg_current_wal_flush_lsn(), flush_lsn)::int8,"
        b" (extract(epoch FROM flush_lag) * 1000)::int8"
        b" FROM pg_stat_replication WHERE state IN ('streaming', 'catchup') ORDER BY sync_priority, application_name"
    ),
)
_HOLDING: Final[Statement] = (
    b"holding",
    (
        b"SELECT pid, application_name::text, host(client_addr), usename::text, state,"
        b" (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::int8 AS age"
        b" FROM pg_stat_activity WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"
        b" AND pid <> pg_backend_pid() AND datname = current_database()"
        b" UNION ALL SELECT 0, 'prepared transaction ' || gid, NULL, owner::text, 'prepared',"
        b" (extract(epoch FROM clock_timestamp() - prepared) * 1000)::int8"
        b" FROM pg_prepared_xacts WHERE database = current_database() ORDER BY age DESC NULLS LAST LIMIT 50"
    ),
)


def server_status(session: Session, *, is_replicated: bool) -> ServerStatus:
    """Ask the server of a session.

    Args:
        is_replicated: whether the store was made for commits that wait for a standby.
    """
    ((row,), standbys, holding) = session.run_steps(((_STATUS, ()), (_STANDBYS, ()), (_HOLDING, ())))
    sees_all = as_bool(row[3])
    return ServerStatus(
        version=as_text(row[0]) or "",
        started_at_ms=as_int(row[1]),
        durability="replicated" if is_replicated else "local",
        synchronous_standby_names=as_text(row[2]) or "",
        standbys=[
            Standby(
                as_text(name) or "",
                as_text(host),
                as_text(state),
                as_text(sync),
                as_int_or_none(behind),
                as_int_or_none(lag),
            )
            for name, host, state, sync, behind, lag in standbys
        ]
        if sees_all
        else None,
        unsafe_settings=list(filter(None, (as_text(row[6]) or "").split(","))),
        connections=as_int(row[4]),
        connections_max=as_int(row[5]),
        transactions=[
            _transaction(
                ClientName.parse(name, host), as_int(pid), as_text(user), as_text(state), as_int_or_none(age)
            )
            for pid, name, host, user, state, age in holding
        ],
    )


def _transaction(
    client: ClientName, session: int, user: str | None, state: str | None, age_ms: int | None
) -> ServerTransaction:
    words = client.words(session) if session else client.program or ""
    return ServerTransaction(
        session or None, client.pid, client.host, client.program, user, state, age_ms, words
    )
