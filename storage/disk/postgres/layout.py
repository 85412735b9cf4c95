"""The tables of a store on a server, and the statements on them. Everything lies in a schema named as the store.

    commits    the number of each commit, and the superblock as that commit left it; the newest row counts
    heads      records that change again and again (HEADS, CURSORS, PRODUCERS, SEQUENCES, CONSUMERS): each change moves
               the row to the commit's number, so that a reader meets the newest row first, however many are dead
    entries    entries of topics, which do not change
    kv         every other record
    reads, read_keys, read_ranges   the read cache; marks: the last message of each consumer, read newest first as in
               heads; counters: events.
               These are UNLOGGED: a crash empties them, and a standby has none

The first byte of a key of `heads` and `kv` is the code of the record's database, so a key is one column.
"""

from __future__ import annotations

from typing import Final

from storage.disk.postgres.session import Statement
from storage.disk.schema import (
    CONSUMERS,
    CURSORS,
    ENTRIES,
    HEADS,
    OPEN_FIRST,
    PRODUCERS,
    SEQUENCES,
    TXN_DEADLINES,
    Database,
)

CODES: Final = {
    name: code
    for code, name in enumerate(
        (
            "store", "heads", "topics", "ledgers", "entries", "producers", "owners", "sequences", "txns", "txn_parts",
            "txn_deadlines", "txn_runs", "open_first", "aborted", "leases", "lease_txns", "subscriptions", "cursors",
            "acks", "deliveries", "awaited", "held", "consumers", "pending", "txn_pending", "audit", "purges", "tables",
            "rows", "versions", "txn_keys", "conflicts", "table_purges", "delayed", "delayed_due", "aborted_blocks",
            "session_index", "compactions", "compacted", "compacted_keys", "tombstones", "marks", "mark_bounds",
            "changes", "timed", "timed_blocks",
        ),
        1,
    )
}  # fmt: skip
"""The code of each database, by name: never changed, and never used again for another one."""

TABLE_KV: Final = "kv"
TABLE_HEADS: Final = "heads"
TABLE_ENTRIES: Final = "entries"

_CHANGING: Final = (HEADS, CURSORS, PRODUCERS, SEQUENCES, CONSUMERS)
_ONCE_IN_KV: Final = (PRODUCERS, SEQUENCES, CONSUMERS)
"""The databases of `heads` that early builds had in `kv`."""


class RecordPlace:
    """The place of a database: its table, and the prefix of its keys there.

    Attributes:
        end: the first key behind the database.
        is_bulky: whether a record may have hundreds of kilobytes, so that few are read ahead.
        is_changing: whether records change, or come and go, all the time, so that a read of one more may pass many dead
            rows.
    """

    __slots__ = (
        "back", "count", "end", "get", "is_bulky", "is_changing", "last", "name", "next", "prefix", "table",
    )  # fmt: skip

    def __init__(self, database: Database) -> None:
        self.name = database.name
        self.table = (
            TABLE_ENTRIES if database is ENTRIES else TABLE_HEADS if database in _CHANGING else TABLE_KV
        )
        self.is_changing = self.table == TABLE_HEADS or database in (TXN_DEADLINES, OPEN_FIRST)
        code = CODES[database.name]
        self.prefix, self.end = bytes([code]), bytes([code + 1])
        self.is_bulky = database is ENTRIES or database.name == "compacted"
        table = self.table
        self.get: Statement = _named(
            f"get_{table}", f"SELECT v FROM {table} WHERE k = $1::bytea" + _newest(table)
        )
        self.next: Statement = _named(
            f"next_{table}",
            f"SELECT k, v FROM {table} WHERE k >= $1::bytea AND k < $2::bytea ORDER BY k LIMIT $3::int8",
        )
        self.back: Statement = _named(
            f"back_{table}",
            f"SELECT k, v FROM {table} WHERE k >= $1::bytea AND k < $2::bytea"
            f" ORDER BY k DESC{', n DESC' if table == TABLE_HEADS else ''} LIMIT $3::int8",
        )
        self.count: Statement = _named(
            f"count_{table}", f"SELECT count(*) FROM {table} WHERE k >= $1::bytea AND k < $2::bytea"
        )


def _newest(table: str) -> str:
    return " ORDER BY n DESC LIMIT 1" if table == TABLE_HEADS else ""


def _named(name: str, text: str) -> Statement:
    return name.encode(), text.encode()


def fetch_of(table: str) -> Statement:
    """The statement that gets the records under several keys of a table."""
    return _named(f"fetch_{table}", f"SELECT k, v FROM {table} WHERE k = ANY($1::bytea[])")


TABLES: Final = """
CREATE TABLE commits (n int8 PRIMARY KEY, superblock bytea NOT NULL);
CREATE TABLE heads (k bytea NOT NULL, n int8 NOT NULL, v bytea NOT NULL, PRIMARY KEY (k, n));
CREATE TABLE kv (k bytea PRIMARY KEY, v bytea NOT NULL) WITH (fillfactor = 85);
CREATE TABLE entries (k bytea PRIMARY KEY, v bytea NOT NULL) WITH (fillfactor = 100);
ALTER TABLE kv ALTER v SET STORAGE EXTERNAL;
ALTER TABLE entries ALTER v SET STORAGE EXTERNAL;
CREATE UNLOGGED TABLE reads (one bool PRIMARY KEY CHECK (one), generation int8 NOT NULL, watermark int8 NOT NULL,
    issued int8 NOT NULL, passes int8 NOT NULL) WITH (fillfactor = 10);
CREATE UNLOGGED TABLE open_timestamps (ts int8 PRIMARY KEY, presence int4 NOT NULL);
CREATE UNLOGGED TABLE read_keys (t int8, k bytea, ts int8 NOT NULL, txn int8 NOT NULL, PRIMARY KEY (t, k));
CREATE INDEX read_keys_ts ON read_keys (ts);
CREATE UNLOGGED TABLE read_ranges (t int8, a bytea NOT NULL, b bytea, ts int8 NOT NULL, txn int8 NOT NULL);
CREATE INDEX read_ranges_ts ON read_ranges (t, ts);
CREATE UNLOGGED TABLE marks (consumer int8, w int8, ledger int8, entry int8, batch int8, quiet int8,
    n int8 NOT NULL DEFAULT 0, PRIMARY KEY (consumer, n));
CREATE UNLOGGED TABLE counters (c int4 PRIMARY KEY, n int8 NOT NULL) WITH (fillfactor = 50);
ALTER TABLE commits SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE heads SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
"""
"""The statements that make the tables, within the schema."""

_PLACES_BEFORE: Final = tuple(RecordPlace(database) for database in _ONCE_IN_KV)
_IS_BEFORE: Final = " OR ".join(
    f"k >= '\\x{place.prefix.hex()}' AND k < '\\x{place.end.hex()}'" for place in _PLACES_BEFORE
)
IS_EARLY: Final[Statement] = (
    b"is_early",
    b"SELECT NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'marks'::regclass AND attname = 'n')",
)
"""Whether an early build made the store, with records in `kv` that belong into `heads`, and marks of another form."""

NUMBER_MARKS: Final[Statement] = (
    b"number_marks",
    (
        b"ALTER TABLE marks ADD IF NOT EXISTS n int8 NOT NULL DEFAULT 0, DROP CONSTRAINT IF EXISTS marks_pkey,"
        b" ADD PRIMARY KEY (consumer, n)"
    ),
)

MOVE_TO_HEADS: Final[Statement] = (
    b"move_to_heads",
    (
        f"WITH moved AS (DELETE FROM kv WHERE {_IS_BEFORE} RETURNING k, v)"
        " INSERT INTO heads SELECT k, (SELECT max(n) FROM commits), v FROM moved"
    ).encode(),
)

LOCK_GATE: Final[Statement] = (b"gate", b"SELECT pg_advisory_xact_lock($1::int4, 0)")
OPEN: Final[Statement] = (
    b"open",
    (
        b"SELECT c.n, c.superblock, (extract(epoch FROM clock_timestamp()) * 1000000)::int8,"
        b" r.generation, r.watermark, r.issued, r.passes"
        b" FROM (SELECT n, superblock FROM commits ORDER BY n DESC LIMIT 1) AS c LEFT JOIN reads AS r ON true"
    ),
)
"""The newest commit with its superblock, the server's clock in microseconds, and the state of the read cache."""

CLOCK: Final[Statement] = (b"clock", b"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8")
LAST: Final[Statement] = (b"last", b"SELECT n FROM commits ORDER BY n DESC LIMIT 1")

APPLY: Final[Statement] = (
    b"apply",
    (
        b"SELECT apply($1::int4, $2::bool, $3::int8, $4::bytea, $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[],"
        b" $9::bytea[], $10::bytea[], $11::bytea[], $12::bytea[], $13::bytea[], $14::int8)"
    ),
)
"""Store the changes of a batch; the parameters are those of the function."""

OVERTAKEN: Final = "TX001"
"""The SQLSTATE of `apply` where another commit came first."""

FUNCTIONS: Final = """
CREATE FUNCTION apply(
    class int4, takes_gate bool, before int8, superblock bytea,
    kv_gone bytea[], kv_keys bytea[], kv_values bytea[],
    entries_gone bytea[], entries_keys bytea[], entries_values bytea[],
    heads_gone bytea[], heads_keys bytea[], heads_values bytea[],
    known_passes int8
) RETURNS int8 LANGUAGE plpgsql AS $body$
BEGIN
    IF takes_gate THEN
        PERFORM pg_advisory_xact_lock(class, 0);
        IF (SELECT n FROM commits ORDER BY n DESC LIMIT 1) IS DISTINCT FROM before
                OR (SELECT passes FROM reads) IS DISTINCT FROM known_passes THEN
            RAISE EXCEPTION 'another commit or read came first' USING ERRCODE = 'TX001';
        END IF;
    END IF;
    IF kv_gone IS NOT NULL THEN
        DELETE FROM kv WHERE k = ANY(kv_gone);
    END IF;
    IF kv_keys IS NOT NULL THEN
        INSERT INTO kv SELECT * FROM unnest(kv_keys, kv_values) ON CONFLICT (k) DO UPDATE SET v = excluded.v;
    END IF;
    IF entries_gone IS NOT NULL THEN
        DELETE FROM entries WHERE k = ANY(entries_gone);
    END IF;
    IF entries_keys IS NOT NULL THEN
        INSERT INTO entries SELECT * FROM unnest(entries_keys, entries_values)
            ON CONFLICT (k) DO UPDATE SET v = excluded.v;
    END IF;
    IF heads_gone IS NOT NULL THEN
        FOR i IN 1 .. cardinality(heads_gone) LOOP
            DELETE FROM heads WHERE k = heads_gone[i]
                AND n = (SELECT h.n FROM heads h WHERE h.k = heads_gone[i] ORDER BY h.n DESC LIMIT 1);
        END LOOP;
    END IF;
    IF heads_keys IS NOT NULL THEN
        FOR i IN 1 .. cardinality(heads_keys) LOOP
            UPDATE heads SET n = before + 1, v = heads_values[i] WHERE k = heads_keys[i]
                AND n = (SELECT h.n FROM heads h WHERE h.k = heads_keys[i] ORDER BY h.n DESC LIMIT 1);
            IF NOT FOUND THEN
                INSERT INTO heads VALUES (heads_keys[i], before + 1, heads_values[i]);
            END IF;
        END LOOP;
    END IF;
    INSERT INTO commits VALUES (before + 1, superblock);
    IF (before + 1) % 64 = 0 THEN
        DELETE FROM commits WHERE n <= before - 16 AND n > before - 272;
    END IF;
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::int8
        * CASE WHEN pg_try_advisory_xact_lock(class, 2) THEN 1 ELSE -1 END;
END
$body$;
"""
"""The function that stores a batch as the commit after `before`.

Old commits are deleted from the last few alone: under a snapshot that a bystander holds, the rows deleted before stay
in the index, and a walk over all of them would take longer with each commit.

It takes the gate itself where asked, and refuses then where another commit, or a change of the read cache, came first:
each of its statements sees what is committed when it starts. It returns the clock of the server in microseconds, below
zero if a process waits for a commit, which holds the lock of the waits.
"""

COUNT_EVENTS: Final[Statement] = (
    b"count_events",
    (
        b"INSERT INTO counters SELECT * FROM unnest($1::int4[], $2::int8[])"
        b" ON CONFLICT (c) DO UPDATE SET n = counters.n + excluded.n"
    ),
)
DURABLE: Final[Statement] = (
    b"durable",
    b"SELECT current_setting('synchronous_standby_names') <> ''",
)
"""Whether commits wait for a standby; asked behind a commit, since an operator may take the standby's name away."""

SIZES: Final[Statement] = (
    b"sizes",
    (
        b"SELECT relname::text, greatest(reltuples::int8, pg_stat_get_live_tuples(oid)),"
        b" pg_total_relation_size(oid) FROM pg_class"
        b" WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname"
    ),
)
"""Name, estimated rows and bytes of each table."""

READS_OF_KEYS: Final[Statement] = (
    b"reads_of_keys",
    (
        b"SELECT p.i, r.ts, r.txn FROM unnest($1::int8[], $2::bytea[]) WITH ORDINALITY AS p (t, k, i)"
        b" JOIN LATERAL (SELECT ts, txn FROM read_keys r WHERE r.t = p.t AND r.k = p.k AND r.ts > $3::int8"
        b" UNION ALL SELECT ts, txn FROM read_ranges r WHERE r.t = p.t AND r.ts > $3::int8 AND r.a <= p.k"
        b" AND (r.b IS NULL OR r.b > p.k) LIMIT 1) r ON true ORDER BY p.i LIMIT 1"
    ),
)
"""The first of several keys that was read later than a timestamp, by its number from 1, and the read."""

RECORD_KEYS: Final[Statement] = (
    b"record_keys",
    (
        b"INSERT INTO read_keys VALUES ($1::int8, $2::bytea, $3::int8, $4::int8) ON CONFLICT (t, k)"
        b" DO UPDATE SET ts = excluded.ts, txn = excluded.txn WHERE read_keys.ts < excluded.ts"
    ),
)
RECORD_RANGE: Final[Statement] = (
    b"record_range",
    (
        b"INSERT INTO read_ranges SELECT $1::int8, $2::bytea, $3::bytea, $4::int8, $5::int8 WHERE NOT EXISTS"
        b" (SELECT 1 FROM read_ranges WHERE t = $1::int8 AND ts >= $4::int8 AND a <= $2::bytea"
        b" AND (b IS NULL OR b >= $3::bytea))"
    ),
)
FORGET_READS: Final = (
    (b"forget_keys", b"DELETE FROM read_keys WHERE ts < $1::int8"),
    (b"forget_ranges", b"DELETE FROM read_ranges WHERE ts < $1::int8"),
    (b"raise_watermark", b"UPDATE reads SET watermark = $1::int8 WHERE watermark < $1::int8"),
)
"""Forget the reads before a timestamp, below which every write is refused from then on."""

CLEAR_READS: Final = (
    (b"clear_keys", b"DELETE FROM read_keys"),
    (b"clear_ranges", b"DELETE FROM read_ranges"),
    (b"clear_reads", b"DELETE FROM reads"),
)
BEGIN_READS: Final[Statement] = (
    b"begin_reads",
    b"INSERT INTO reads VALUES (true, $1::int8, 0, $2::int8, $3::int8)",
)
ISSUED: Final[Statement] = (b"issued", b"SELECT issued FROM reads WHERE generation = $1::int8")
PASSED: Final[Statement] = (b"passed", b"UPDATE reads SET issued = $1::int8, passes = $2::int8")
"""Count a pass of the gate that has recorded reads or issued a timestamp, both without a commit."""

HOLD_TIMESTAMP: Final[Statement] = (
    b"hold_timestamp",
    (
        b"INSERT INTO open_timestamps VALUES ($1::int8, $2::int4)"
        b" ON CONFLICT (ts) DO UPDATE SET presence = excluded.presence"
    ),
)
DROP_TIMESTAMPS: Final[Statement] = (
    b"drop_timestamps",
    b"DELETE FROM open_timestamps WHERE ts = ANY($1::int8[])",
)

NO_FLUSH: Final[Statement] = (b"no_flush", b"SET LOCAL synchronous_commit = off")

_OF_CONSUMER = (
    b" WHERE consumer = $1::int8"
    b" AND n = (SELECT m.n FROM marks m WHERE m.consumer = $1::int8 ORDER BY m.n DESC LIMIT 1)"
)
MARK: Final[Statement] = (
    b"mark",
    (
        b"WITH moved AS (UPDATE marks SET n = n + 1, w = $2::int8, ledger = $3::int8, entry = $4::int8,"
        b" batch = $5::int8" + _OF_CONSUMER + b" RETURNING n)"
        b" INSERT INTO marks SELECT $1::int8, $2::int8, $3::int8, $4::int8, $5::int8"
        b" WHERE NOT EXISTS (SELECT 1 FROM moved) ON CONFLICT (consumer, n)"
        b" DO UPDATE SET w = excluded.w, ledger = excluded.ledger, entry = excluded.entry, batch = excluded.batch"
    ),
)
MARK_QUIET: Final[Statement] = (
    b"mark_quiet",
    (
        b"WITH moved AS (UPDATE marks SET n = n + 1, quiet = $2::int8" + _OF_CONSUMER + b" RETURNING n)"
        b" INSERT INTO marks (consumer, quiet) SELECT $1::int8, $2::int8 WHERE NOT EXISTS (SELECT 1 FROM moved)"
        b" ON CONFLICT (consumer, n) DO UPDATE SET quiet = excluded.quiet"
    ),
)
MARKED: Final[Statement] = (
    b"marked",
    b"SELECT w, ledger, entry, batch, quiet FROM marks WHERE consumer = $1::int8 ORDER BY n DESC LIMIT 1",
)
COUNTED: Final[Statement] = (b"counted", b"SELECT c, n FROM counters")

_HOLDERS = (
    b"SELECT DISTINCT a.pid, a.application_name::text, host(a.client_addr), a.usename::text, a.state::text,"
    b" CASE WHEN a.state LIKE 'idle%' THEN (extract(epoch FROM now() - a.state_change) * 1000)::int8 END,"
    b" l.virtualtransaction"
)
_HELD = (
    b" FROM pg_locks l WHERE locktype = 'advisory' AND granted AND objsubid = 2"
    b" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
HELD_LEASES: Final[Statement] = (
    b"held_leases", b"SELECT objid::int8" + _HELD + b" AND classid = $1::int8::oid"
)  # fmt: skip
LOWEST_TIMESTAMP: Final[Statement] = (
    b"lowest_timestamp",
    b"SELECT min(ts) FROM open_timestamps WHERE ts <= $1::int8 AND presence <> $3::int4"
    b" AND presence IN (SELECT objid::int8" + _HELD + b" AND classid = $2::int8::oid)",
)
"""The lowest open timestamp up to a bound, of processes that live, but for one."""

TRY_LEASE: Final[Statement] = (b"try_lease", b"SELECT pg_try_advisory_lock($1::int4, $2::int4)")
DROP_LEASE: Final[Statement] = (b"drop_lease", b"SELECT pg_advisory_unlock($1::int4, $2::int4)")
SHARE_STORE: Final[Statement] = (b"share_store", b"SELECT pg_try_advisory_lock_shared($1::int4, $2::int4)")
DROP_SHARED: Final[Statement] = (b"drop_shared", b"SELECT pg_advisory_unlock_shared($1::int4, $2::int4)")
_SESSIONS = _HELD.replace(b"pg_locks l", b"pg_locks l JOIN pg_stat_activity a USING (pid)")
GATE_HOLDER: Final[Statement] = (
    b"gate_holder",
    _HOLDERS + _SESSIONS + b" AND classid = $1::int8::oid AND objid = 0",
)
STORE_HOLDERS: Final[Statement] = (
    b"store_holders",
    _HOLDERS + _SESSIONS + b" AND classid = $1::int8::oid AND objid = 1 AND a.pid <> pg_backend_pid()",
)
"""Processes of the server that hold the gate, or have the store open: pid there, name, address, user, state, idle time
in milliseconds, virtual transaction. A role without the rights of `pg_monitor` sees no address, state and idle time of
other roles.
"""

NOTIFY: Final[Statement] = (b"notify", b"SELECT pg_notify(current_schema()::text, '')")
WATCH: Final[Statement] = (b"watch", b"SELECT pg_advisory_lock_shared($1::int4, $2::int4)")
STORE_BYTES: Final[Statement] = (
    b"store_bytes",
    (
        b"SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 FROM pg_class"
        b" WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    ),
)
