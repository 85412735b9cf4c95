"""What reading leaves behind: no place in LMDB's reader table, no file, thread or session of a server.

Each call runs 50 times without Python's cycle collector. All that it returns or raises is kept meanwhile, and a scan
is left at its first row.
"""

from __future__ import annotations

import gc
import inspect
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest

from storage import (
    EARLIEST,
    AccessMode,
    Consumer,
    IsolationLevel,
    OnOpen,
    Reader,
    Store,
    SubscriptionType,
    Table,
    Transaction,
    TransactionIsolation,
    TxnID,
)
from storage.admin.admin import Admin
from storage.client.table_changes import TableChanges
from storage.errors import TxnctlError
from storage.maintenance.maintenance import Maintenance
from tests import server_stores

CALLS = 50
Call = Callable[[], object]

CHANGES: dict[type, set[str]] = {
    Store: {
        "admin", "begin_transaction", "close", "commit_transaction", "connection", "copy", "create", "create_producer",
        "create_table", "create_topic", "engine", "maintenance", "open", "open_session", "path", "reports", "restore",
        "session_producer", "subscribe", "transaction",
    },
    Consumer: {
        "acknowledge", "acknowledge_cumulative", "acknowledge_through", "close", "negative_acknowledge", "unsubscribe",
    },
    Reader: {"close"},
    Table: {"delete", "import_rows", "open", "put"},
    Transaction: {"abort", "begin", "commit", "commit_now", "flush"},
    TableChanges: set(),
    Maintenance: {"make_job_directory", "purge_deleted"},
}  # fmt: skip
"""The methods that change something or only make another object: tests of writing have them."""


class Held(NamedTuple):
    """What this process holds."""

    places: int
    files: int
    threads: int
    sessions: int


class World(NamedTuple):
    """A store with something of each kind in it, and arguments for methods by the names of their parameters."""

    store: Store
    txn: TxnID
    arguments: dict[str, object]


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Python's cycle collector does not run within the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def world(store: Store, table: Table, uncollected: None) -> World:
    """Messages plain, keyed, delayed, of an open and an aborted transaction; rows, an intent; a cursor behind."""
    table.import_rows((b"%03d" % number, b"x") for number in range(300))
    version = table.put(b"000", b"y")
    txn, gone = store.begin_transaction(), store.begin_transaction()
    producer = store.create_producer("t", producer_name="p")
    for _ in range(4):
        producer.send_batch([b"x"] * 10, keys=["k0", "k1", "k2", "k3", "k4"] * 2)
    store.create_producer("t").send(b"late", key="k1", deliver_after=3600)
    producer.send(b"open", key="k2", txn=txn)
    producer.send(b"gone", key="k3", txn=gone)
    store.admin.transactions.abort_transaction(gone)
    producer.send_batch([b"behind"] * 20, keys=["k0", "k1", "k2", "k3"] * 5)
    table.put(b"~", b"intent", txn=txn)
    store.subscribe("t", "a", initial_position=EARLIEST).close()
    store.create_topic("held")
    session = store.open_session("held", access_mode=AccessMode.SHARED).session
    extent = store.reports.topic_extents(["t"])[0]
    first, last = extent.before, extent.last_confirmed
    return World(
        store,
        txn,
        {
            "topic": "t", "subscription": "a", "name": "a", "table": "accounts", "txn": txn, "number": 1,
            "session": session, "time_ms": 0, "topics": None, "after": first, "through": last, "end": last,
            "key": b"000", "keys": [b"000"], "parts": 4, "limit": 10, "timeout": 0.01, "at": version, "since": None,
            "until": None, "start": EARLIEST, "max_messages": 10, "count": 3, "retention_ms": 1000, "kept": 1000,
            "size": 0, "policy": "overdue", "position": last, "message_ids": [], "consumer_name": "nobody",
        },
    )  # fmt: skip


def held(store: Store) -> Held:
    """What this process holds now."""
    me = os.getpid()
    places = sum(slot.pid == me for slot in store.connection.environment.reader_slots())
    return Held(places, len(os.listdir("/proc/self/fd")), len(threading.enumerate()), _sessions())


def _sessions() -> int:
    if server_stores.SERVER not in os.environ:
        return 0
    import psycopg

    from storage.disk.postgres.client_name import application

    with psycopg.connect(os.environ[server_stores.SERVER]) as connection:
        rows = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (application()[:63],)
        ).fetchall()
    return int(rows[0][0])


def left_by(store: Store, call: Call) -> str | None:
    """The difference that 50 calls make; None without one."""
    kept: list[object] = []

    def run() -> None:
        try:
            result = call()
            if isinstance(result, Iterator):
                kept.append(next(result, None))
        except TxnctlError as error:
            result = error
        kept.append(result)

    run()  # files that a process opens once
    before = held(store)
    for _ in range(CALLS):
        run()
    after = held(store)
    for _ in range(100):
        if after.sessions <= before.sessions:
            break
        after = held(store)  # a server ends a session a moment after it was closed
    return None if after == before else f"{before} before, {after} afterwards"


def leaks(store: Store, calls: Iterable[tuple[str, Call]]) -> dict[str, str]:
    """The calls that leave something, with the difference."""
    found = {name: left_by(store, call) for name, call in calls}
    assert len(found) > 0
    return {name: difference for name, difference in found.items() if difference is not None}


def public(kind: type) -> set[str]:
    """The names of the public methods and properties of a class."""
    bases = kind.__mro__[:-1]
    names = {name for base in bases for name in vars(base) if not name.startswith("_")}
    return names.difference(*(CHANGES.get(base, ()) for base in bases))


def reads_of(target: Any, world: World, **chosen: Call) -> list[tuple[str, Call]]:
    """Calls of all methods of an object that read: as chosen, or with arguments by the names of parameters."""
    names = sorted(public(type(target)) - {name.partition("__")[0] for name in chosen})
    return [*chosen.items(), *((name, partial(_read, target, name, world)) for name in names)]


def _read(target: object, name: str, world: World) -> object:
    method = getattr(target, name)
    return method(**_given(method, world)) if callable(method) else method


def _given(method: Callable[..., object], world: World) -> dict[str, object]:
    """An argument for each parameter without a default."""
    parameters = inspect.signature(method).parameters.values()
    return {
        parameter.name: world.arguments[parameter.name]
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    }


def test_reports(world: World) -> None:
    """Every report, and a report about an object that is not there, leaves nothing."""
    reports = world.store.reports
    calls = reads_of(
        reports, world, wait_for_transaction=lambda: reports.wait_for_transaction(world.txn, 0.01)
    )
    assert leaks(world.store, calls) == {}
    lost = world._replace(arguments={**world.arguments, "topic": "none", "txn": TxnID(999), "number": 999})
    named = {
        name
        for name in public(type(reports))
        if _given(getattr(reports, name), world).keys() & {"topic", "txn", "number"}
    }
    assert leaks(world.store, [call for call in reads_of(reports, lost) if call[0] in named]) == {}


def test_store(world: World) -> None:
    """Looks of a store, and the readers and tables that it makes, leave nothing."""
    store = world.store
    calls = reads_of(
        store,
        world,
        has_topic=lambda: store.has_topic("t"),
        has_table=lambda: store.has_table("none"),
        table=lambda: store.table("accounts"),
        run_transaction=lambda: store.run_transaction(
            lambda txn: store.table("accounts").get(b"000", txn=txn)
        ),
        run_transaction__group=store.group,
    )
    assert leaks(store, calls) == {}


@pytest.mark.parametrize(
    ("level", "compacted"),
    [
        (IsolationLevel.READ_COMMITTED, False),
        (IsolationLevel.READ_COMMITTED, True),
        (IsolationLevel.READ_UNCOMMITTED, False),
    ],
)
def test_readers(world: World, level: IsolationLevel, compacted: bool) -> None:
    """A reader leaves nothing at the end of the topic, in the middle, or when it waits."""
    store = world.store
    store.admin.topics.compact_topic("t")

    def reader() -> Reader:
        return store.reader("t", isolation_level=level, read_compacted=compacted)

    at_end = reader()
    assert at_end.read_batch(1000)
    assert leaks(store, reads_of(at_end, world, read_next=lambda: at_end.read_next(0))) == {}
    middle = reads_of(
        at_end, world, entries=lambda: reader().entries(), __iter__=lambda: iter(reader()),
        read_batch=lambda: reader().read_batch(3), read_next=lambda: reader().read_next(0),
    )  # fmt: skip
    assert leaks(store, middle) == {}


MODES = [
    (type_, level, on_open)
    for type_ in SubscriptionType
    for level in IsolationLevel
    for on_open in OnOpen
    if on_open is OnOpen.BLOCK
    or (
        level is IsolationLevel.READ_COMMITTED
        and type_ in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
    )
]


@pytest.mark.parametrize(("type_", "level", "on_open"), MODES)
def test_consumers(world: World, type_: SubscriptionType, level: IsolationLevel, on_open: OnOpen) -> None:
    """An idle consumer, beside one that holds messages and one that gives messages back, leaves nothing."""
    store, names = world.store, count()

    def consumer(queue: int) -> Consumer:
        return store.subscribe(
            "t", "c", subscription_type=type_, subscription_isolation_level=level, on_open=on_open,
            initial_position=EARLIEST, receiver_queue_size=queue, consumer_name=f"c{next(names)}",
        )  # fmt: skip

    holder = consumer(8)
    received = holder.receive_batch(4, 0)
    holder.acknowledge(received[0])
    holder.negative_acknowledge(received[1], delay=3600)
    idle = holder if type_ is SubscriptionType.EXCLUSIVE else consumer(100)
    while idle.receive_batch(100, 0):
        pass
    reading = store.transaction()
    store.table("accounts").get(b"000", txn=reading)
    calls = reads_of(
        idle, world, receive=lambda: idle.receive(0.01), receive_batch=lambda: idle.receive_batch(10, 0),
        receive__in_transaction=lambda: idle.receive(0, txn=reading),
        next_is_newer_than=lambda: idle.next_is_newer_than(reading),
        dead_letter_topic_of=lambda: idle.dead_letter_topic_of(received[0]),
    )  # fmt: skip
    assert leaks(store, calls) == {}


@pytest.mark.parametrize("kind", ["plain", "detached", *TransactionIsolation])
def test_tables(world: World, kind: str) -> None:
    """Reads of keys, ranges and changes leave nothing, in every kind of transaction and without one."""
    store = world.store
    table = store.table("accounts")
    txn: Any = None
    if kind == "detached":
        txn = store.begin_transaction()
    elif kind != "plain":
        txn = store.transaction(isolation=TransactionIsolation(kind))
    calls = reads_of(
        table, world, get=lambda: table.get(b"000", txn=txn), get_row=lambda: table.get_row(b"none", txn=txn),
        get__full=lambda: table.get(b"000", check="full"), get__intent=lambda: table.get(b"~", txn=txn),
        get__past=lambda: table.get(b"000", at=table.version_at()), scan=lambda: table.scan(txn=txn),
        scan__back=lambda: table.scan(reverse=True, prefix=b"1", txn=txn),
        changes=lambda: iter(table.changes()),
    )  # fmt: skip
    assert leaks(store, calls) == {}
    changes = table.changes()
    assert changes.count() > 300
    bounds = changes.split(100)
    read = reads_of(
        changes, world, between=lambda: changes.between(bounds[0], bounds[1]), wait=lambda: changes.wait(0)
    )
    assert leaks(store, read) == {}


@pytest.mark.parametrize("isolation", TransactionIsolation)
def test_transactions(world: World, isolation: TransactionIsolation) -> None:
    """Looks at a transaction leave nothing."""
    txn = world.store.transaction(isolation=isolation)
    calls = reads_of(
        txn, world, table_reader=lambda: txn.table_reader(world.store.connection, None),
        work_in=lambda: txn.work_in(world.store.connection),
    )  # fmt: skip
    assert leaks(world.store, calls) == {}


def test_maintenance(world: World, tmp_path: Any) -> None:
    """Verify, copies and rehearsals of maintenance leave nothing."""
    maintenance, names = world.store.maintenance, count()
    calls = reads_of(
        maintenance, world, verify_store=lambda: maintenance.verify_store(full=False),
        backup_store=lambda: maintenance.backup_store(tmp_path / f"b{next(names)}"),
        collect_garbage=lambda: maintenance.collect_garbage(dry_run=True),
        compact_store=lambda: maintenance.compact_store(dry_run=True),
        compact_store__to=lambda: maintenance.compact_store(tmp_path / f"c{next(names)}"),
        upgrade_store=lambda: maintenance.upgrade_store(dry_run=True),
    )  # fmt: skip
    assert leaks(world.store, calls) == {}


def test_dry_runs(world: World) -> None:
    """The rehearsal of every administrative change leaves nothing."""
    calls: list[tuple[str, Call]] = []
    for area in sorted(public(Admin)):
        room, called = getattr(world.store.admin, area), _NAMES.get(area, "a")
        given = world._replace(arguments={**world.arguments, "name": called})
        for name in sorted(public(type(room))):
            method = getattr(room, name)
            if "dry_run" in inspect.signature(method).parameters:
                calls.append((f"{area}.{name}", partial(method, **_given(method, given), dry_run=True)))
    assert len(calls) > 25
    assert leaks(world.store, calls) == {}


_NAMES = {"topics": "t", "tables": "accounts"}
