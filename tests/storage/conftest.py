"""A real store for every test of the engine, and the full verify at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from storage import EARLIEST, Consumer, OnOpen, Store, SubscriptionType, Table, Transaction, TxnID
from storage.disk.view import WriteBatch
from storage.limits import FINALIZE_INLINE_MAX
from storage.process.clock import ManualClock

T = TypeVar("T")


def check_whole(path: str, clock: ManualClock) -> None:
    """That the store at `path` is sound."""
    with Store.open(path, clock=clock) as store:
        problems = store.maintenance.verify_store(full=True)
    assert problems == []


@pytest.fixture
def clock() -> ManualClock:
    """The clock of `store`, which only the test moves."""
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path, clock: ManualClock) -> Iterator[str]:
    """Where an empty store lies. It is verified at the end, whatever was done to it."""
    place = str(tmp_path / "store")
    Store.create(place, clock=clock)
    yield place
    check_whole(place, clock)


@pytest.fixture
def store(path: str, clock: ManualClock) -> Iterator[Store]:
    """An open store with the topic `t`; closed and verified at the end."""
    with Store.open(path, clock=clock) as opened:
        opened.create_topic("t")
        yield opened


@pytest.fixture
def attach(store: Store) -> Callable[..., Consumer]:
    """Attach a consumer to subscription `a` of topic `t`, from the beginning."""

    def attached(type_: SubscriptionType | None = None, window: int = 1000, **more: Any) -> Consumer:
        return store.subscribe(
            "t",
            "a",
            subscription_type=type_,
            receiver_queue_size=window,
            **{"initial_position": EARLIEST, **more},
        )

    return attached


@pytest.fixture
def attach_skipping(attach: Callable[..., Consumer]) -> Callable[..., Consumer]:
    """Attach a consumer to subscription `a` of topic `t`, from the beginning, with `--on-open skip`."""

    def attached(type_: SubscriptionType | None = SubscriptionType.SHARED, **more: Any) -> Consumer:
        return attach(type_, **{"on_open": OnOpen.SKIP, **more})

    return attached


@pytest.fixture
def known_answer(store: Store) -> Callable[[], tuple[TxnID, TxnID]]:
    """Writes the known answer of semantics section 4 to topic `t`: n n n txn1 n txn2; the two transactions."""

    def write() -> tuple[TxnID, TxnID]:
        producer = store.create_producer("t")
        for number in range(3):
            producer.send(b"n%d" % number)
        first = store.begin_transaction()
        producer.send(b"txn1", txn=first)
        producer.send(b"n3")
        second = store.begin_transaction()
        producer.send(b"txn2", txn=second)
        return first, second

    return write


@pytest.fixture
def table(store: Store) -> Table:
    """The table `accounts` of `store`, empty."""
    store.create_table("accounts")
    return store.table("accounts")


@pytest.fixture
def write_many(table: Table) -> Callable[[TxnID, dict[bytes, bytes]], None]:
    """Writes intents for some keys and so many others that the commit leaves them all unfinalised."""

    def write(txn: TxnID, values: dict[bytes, bytes]) -> None:
        for key, value in values.items():
            table.put(key, value, txn=txn)
        for number in range(FINALIZE_INLINE_MAX):
            table.put(b"~%d:%03d" % (txn.least, number), b"", txn=txn)

    return write


@pytest.fixture(params=["attached", "detached"])
def begin(request: pytest.FixtureRequest, store: Store, table: Table) -> Callable[[], TxnID | Transaction]:
    """Begin a transaction; the test runs with attached and with detached transactions."""
    return store.transaction if request.param == "attached" else store.begin_transaction


@pytest.fixture
def unfinalized(store: Store, table: Table, write_many: Callable[[TxnID, dict[bytes, bytes]], None]) -> TxnID:
    """Write b"old" at `k`, and b"new" in a transaction that is committed and not finalised."""
    table.put(b"k", b"old")
    txn = store.begin_transaction()
    write_many(txn, {b"k": b"new"})
    store.commit_transaction(txn)
    return txn


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """A store for the properties of one module: each example runs in a batch of its own that is dropped."""
    place, clock = str(tmp_path_factory.mktemp("scratch") / "store"), ManualClock()
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as opened:
        yield Scratch(opened)


class Scratch:
    """Runs functions on write batches that leave nothing behind, and so cost no fsync."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.owner = store.connection.identity

    def run(self, change: Callable[[WriteBatch], T]) -> T:
        """The result of `change` on a batch of a store that holds nothing."""
        return self.store.connection.write(change, dry_run=True)
