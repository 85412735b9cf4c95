"""The store as a whole: format, sizes, processes with locks, space by database."""

from __future__ import annotations

from storage.disk.codec import missing, unpack, unpack_first
from storage.disk.connection import Connection
from storage.disk.environment import HolderProcess
from storage.disk.schema import FORMAT_KEY, LEASES, STORE, TXN_DEADLINES, TXNS
from storage.disk.server_status import ServerStatus
from storage.disk.superblock import ReapPolicy
from storage.disk.view import ReadView
from storage.limits import READERS_MAX
from storage.process.identity import ProcessIdentity, describe, is_stopped, started
from storage.table import catalogue as tables, other_lives
from storage.topic import catalogue as topics, descent, retention
from storage.values.named_tuple import NamedTuple


class StoreInfo(NamedTuple):
    """Format, identity, sizes and counts of a store.

    `data_bytes` is the size of the file, of which `in_use_bytes` hold something now and `free_bytes` are reused;
    `used_bytes` were ever in use. On a server it is the size of the tables, and there is no file.
    """

    path: str
    format: int
    store_id: str
    created_at_ms: int
    incarnation: int
    commits: int
    topics: int
    tables: int
    open_transactions: int
    transactions: int
    last_timestamp_ns: int
    reap_policy: str
    table_retention_ms: int
    retention_time_ms: int | None
    retention_bytes: int | None
    retention_hard: str
    ttl_ms: int | None
    expire_after_ms: int | None
    data_bytes: int
    used_bytes: int | None
    map_bytes: int | None
    readers_in_use: int | None
    readers_max: int | None
    in_use_bytes: int
    free_bytes: int | None
    server: ServerStatus | None = None


class FormatRecord(NamedTuple):
    """The store's format, its id, and the wall time of its making."""

    format: int
    store_id: bytes
    created_ms: int


class DiskSpace(NamedTuple):
    """Free bytes for the store's user, and all bytes, of the file system of the store; None on a server."""

    disk_free_bytes: int | None
    disk_bytes: int | None


class LockRow(NamedTuple):
    """A lock, and the process that holds it; all behind the state as far as it is known."""

    lock: str
    pid: int | None
    holder: str
    state: str
    host: str | None = None
    program: str | None = None
    session: int | None = None
    user: str | None = None
    address: str | None = None
    activity: str | None = None
    held_ms: int | None = None


class ReaderRow(NamedTuple):
    """A slot of LMDB's reader table: the commit that the reader's view shows, and the commits since.

    On a server a transaction of any client in the database: host, program and age, as far as they are known.
    """

    pid: int | None
    holder: str
    commit: int | None
    behind: int | None
    state: str
    host: str | None = None
    program: str | None = None
    age_ms: int | None = None


class DatabaseRow(NamedTuple):
    """Entries and bytes of pages of one database; on a server of one table, whose entries are estimated."""

    database: str
    entries: int
    bytes: int
    depth: int | None


def store_info(connection: Connection) -> StoreInfo:
    """The figures of a store, from one view."""
    environment = connection.environment
    in_use = len(environment.reader_slots()) if environment.has_directory else None
    with connection.view() as view:
        return info_in(view, connection, in_use)


def info_in(view: ReadView, connection: Connection, readers_in_use: int | None) -> StoreInfo:
    """The figures of a store in a view.

    Args:
        readers_in_use: slots in use before the view was opened, which takes a slot too; None on a server.
    """
    server = connection.environment.server_status()
    space, superblock, kept = connection.environment.space(), view.superblock, retention.of_store(view)
    made = format_record(view)
    in_use_bytes = sum(row.bytes for row in databases_in(view))
    return StoreInfo(
        path=connection.path, format=made.format, store_id=made.store_id.hex(), created_at_ms=made.created_ms,
        incarnation=superblock.incarnation, commits=superblock.commits,
        topics=sum(1 for _ in topics.every(view)), tables=sum(1 for _ in tables.every(view)),
        open_transactions=view.count(TXN_DEADLINES), transactions=view.count(TXNS),
        last_timestamp_ns=connection.environment.read_cache.last_issued(superblock),
        reap_policy=ReapPolicy(superblock.reap_policy).name.lower(),
        table_retention_ms=superblock.table_retention_ms,
        retention_time_ms=kept.time_ms, retention_bytes=kept.bytes,
        retention_hard=kept.hard or retention.OFF, ttl_ms=kept.ttl_ms, expire_after_ms=kept.expire_after_ms,
        data_bytes=space.data_bytes, used_bytes=space.used_bytes, map_bytes=space.map_bytes,
        readers_in_use=readers_in_use, readers_max=READERS_MAX if server is None else None,
        in_use_bytes=in_use_bytes,
        free_bytes=max(0, space.data_bytes - in_use_bytes) if server is None else None, server=server,
    )  # fmt: skip


def format_record(view: ReadView) -> FormatRecord:
    """The format record of the store.

    Raises:
        CorruptStore: the record is missing.
    """
    payload = view.get(STORE, FORMAT_KEY)
    if payload is None:
        raise missing(STORE, FORMAT_KEY)
    return FormatRecord(*unpack_first(payload, 3))


def gate_holder(connection: Connection) -> HolderProcess | None:
    """Return the process in the writer gate, watched for as long as tells a write from a gate that is held."""
    return connection.environment.gate_holder(watched=True)


def disk_space(connection: Connection) -> DiskSpace:
    """The space of the file system of the store."""
    return DiskSpace(*connection.environment.space()[-2:])


def identity(connection: Connection) -> str:
    """Return id and incarnation of a store: positions and ids are valid within one incarnation only."""
    with connection.view() as view:
        return _identity(view, view.superblock.incarnation)


def _identity(view: ReadView, incarnation: int) -> str:
    """The identity in an incarnation; the time of its begin tells two restores of one backup apart."""
    begins, later = other_lives.begins(view), view.superblock.incarnation - incarnation
    begin = f"-{begins[later]}" if later < len(begins) else ""
    return f"{format_record(view).store_id.hex()}-{incarnation}{begin}"


class FormerIdentity(NamedTuple):
    """The identity of a store that this one was restored from.

    Attributes:
        first_own: the first ledger of the topic that may differ there; the ledgers before it are the same.
        last: the last ledger before those of the next incarnation; 0 for none.
    """

    identity: str
    first_own: int
    last: int


def topic_descent(connection: Connection, name: str) -> list[FormerIdentity]:
    """Return the former identities of the store for a topic, the latest first."""
    with connection.view() as view:
        return [
            FormerIdentity(_identity(view, ancestor.incarnation), ancestor.first_own, ancestor.last)
            for ancestor in descent.of_topic(view, topics.get(view, name).topic_id)
        ]


def list_locks(connection: Connection) -> list[LockRow]:
    """Processes that hold the writer gate, leases, or the store open."""
    rows: list[LockRow] = []
    writing = gate_holder(connection)
    if writing is not None:
        rows.append(LockRow("writer gate", *writing))
    locks = connection.environment.locks
    with connection.view() as view:
        for key, payload in view.scan(LEASES):
            owner, lease = ProcessIdentity.of(unpack(payload, 6)), int.from_bytes(key, "big")
            state = locks.leases.state_of(lease, owner, view.clock.boot_id())
            words = f"lease {lease}", owner.pid, str(owner), state, owner.host, owner.program
            rows.append(LockRow(*words, user=owner.user))
    rows += [LockRow("store", *held) for held in connection.environment.open_processes()]
    return rows


def list_readers(connection: Connection) -> list[ReaderRow]:
    """Return LMDB's reader table, or the transactions of a server.

    Pages or rows that an old view shows are not reused until the reader closes the view.
    """
    server = connection.environment.server_status()
    if server is not None:
        return [
            ReaderRow(
                held.pid,
                held.holder,
                None,
                None,
                held.state or "reading",
                held.host,
                held.program,
                held.age_ms,
            )
            for held in server.transactions
        ]
    last, rows = connection.environment.last_commit(), []
    for pid, seen in connection.environment.reader_slots():
        state = "reading" if seen is not None else "idle"
        if is_stopped(pid, started(pid)):
            state = "stopped"
        behind = last - seen if seen is not None else None
        rows.append(ReaderRow(pid, describe(pid, started(pid)), seen, behind, state))
    return rows


def list_databases(connection: Connection) -> list[DatabaseRow]:
    """Entries and bytes by database."""
    with connection.view() as view:
        return databases_in(view)


def databases_in(view: ReadView) -> list[DatabaseRow]:
    """Entries and bytes by database, in a view."""
    return [
        DatabaseRow(
            name, figures["entries"],
            figures["psize"] * (figures["branch_pages"] + figures["leaf_pages"] + figures["overflow_pages"]),
            figures.get("depth"),
        )
        for name, figures in view.database_stats().items()
    ]  # fmt: skip
