"""A doomed transaction is over for everything it touched, at once and for ever (invariants 6, 17, semantics section 3).

For each way to be doomed: it had sent a message, acknowledged another and written keys; nothing of it ever shows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import (
    EARLIEST,
    AccessMode,
    Consumer,
    Message,
    Store,
    Table,
    Transaction,
    TransactionState,
    TxnID,
)
from storage.errors import ProducerFenced, RequestTooOld, TransactionNotOpen, TxnctlError, WriteTooOld
from storage.process.clock import ManualClock
from tests.row_json import row_json

Txn = Transaction | TxnID


def test_a_deleted_key_that_is_written_again_counts_once(store: Store) -> None:
    """Each write commits at once, over what the one before has left."""
    store.create_table("accounts")
    table = store.table("accounts")
    counts = []
    for value in (b"1", None, b"2", b"3", None):
        table.delete(b"k") if value is None else table.put(b"k", value)
        counts.append(row_json(store.reports.list_tables()[0])["keys"])
    assert counts == [1, 0, 1, 1, 0]


class Scene:
    """A transaction with work in a topic, a subscription and a table, and the means to doom it."""

    def __init__(self, store: Store, clock: ManualClock, kind: str) -> None:
        self.store, self.clock = store, clock
        store.create_topic("in")
        store.create_table("accounts")
        self.table = store.table("accounts")
        self.input = store.create_producer("in", connected=False)
        self.input.send(b"request")
        self.consumer: Consumer = store.subscribe("in", "s", initial_position=EARLIEST)
        self.request: Message = self.consumer.receive(timeout=0)
        self.is_attached = kind == "attached"
        self.txn: Txn = (
            store.transaction(timeout=36_000) if self.is_attached else store.begin_transaction(timeout=36_000)
        )

    def work(self) -> None:
        """Send, acknowledge, write; an attached one keeps its put until it is flushed."""
        self.store.create_producer("t", connected=False).send(b"result", txn=self.txn)
        self.consumer.acknowledge(self.request, txn=self.txn)
        self.table.put(b"mine", b"v", txn=self.txn)
        self.flush()

    def flush(self) -> None:
        if isinstance(self.txn, Transaction):
            self.txn.flush()

    def put(self, key: bytes) -> None:
        self.table.put(key, b"v", txn=self.txn)
        self.flush()


def by_a_later_read(scene: Scene) -> None:
    assert scene.table.get(b"k", txn=scene.store.begin_transaction()) is None
    with pytest.raises(WriteTooOld):
        scene.put(b"k")


def by_a_later_range(scene: Scene) -> None:
    assert list(scene.table.scan(prefix=b"k", txn=scene.store.begin_transaction())) == []
    with pytest.raises(WriteTooOld):
        scene.put(b"k5")


def by_a_later_version(scene: Scene) -> None:
    scene.table.put(b"k", b"later")
    with pytest.raises(WriteTooOld):
        scene.put(b"k")
    scene.table.delete(b"k")


def by_a_newer_intent(scene: Scene) -> None:
    winner = scene.store.begin_transaction()
    scene.table.put(b"k", b"later", txn=winner)
    with pytest.raises(TransactionNotOpen):
        scene.put(b"k")
    scene.store.admin.transactions.abort_transaction(winner)


def by_a_newer_reader(scene: Scene) -> None:
    assert scene.table.get(b"mine", txn=scene.store.begin_transaction()) is None


def by_a_higher_priority(scene: Scene) -> None:
    winner = scene.store.begin_transaction(priority="highest")
    scene.table.put(b"mine", b"theirs", txn=winner)
    scene.store.admin.transactions.abort_transaction(winner)


def by_age(scene: Scene) -> None:
    scene.store.admin.settings.set_table_retention(30_000)
    scene.clock.advance(31)
    with pytest.raises(RequestTooOld):
        scene.table.get(b"k", txn=scene.txn)


def by_age_at_its_commit(scene: Scene) -> None:
    scene.store.admin.settings.set_table_retention(30_000)
    scene.clock.advance(31)
    with pytest.raises(RequestTooOld):
        scene.store.commit_transaction(scene.txn)


def by_its_successor(scene: Scene) -> None:
    scene.store.create_producer("t", access_mode=AccessMode.EXCLUSIVE_WITH_FENCING).close()


CAUSES = [
    by_a_later_read, by_a_later_range, by_a_later_version, by_a_newer_intent, by_a_newer_reader, by_a_higher_priority,
    by_age, by_age_at_its_commit, by_its_successor,
]  # fmt: skip
LATER: dict[str, Callable[[Scene], object]] = {
    "get": lambda scene: scene.table.get(b"k", txn=scene.txn),
    "get_row": lambda scene: scene.table.get_row(b"mine", txn=scene.txn),
    "scan": lambda scene: list(scene.table.scan(txn=scene.txn)),
    "put": lambda scene: scene.put(b"elsewhere"),
    "delete": lambda scene: (scene.table.delete(b"elsewhere", txn=scene.txn), scene.flush()),
    "condition": lambda scene: scene.table.put(b"elsewhere", b"", txn=scene.txn, if_version=3),
    "send": lambda scene: scene.store.create_producer("t", connected=False).send(b"more", txn=scene.txn),
    "acknowledge": lambda scene: scene.consumer.acknowledge(scene.request, txn=scene.txn),
    "commit": lambda scene: scene.store.commit_transaction(scene.txn),
}


@pytest.fixture(params=["attached", "detached"])
def scene(request: pytest.FixtureRequest, store: Store, clock: ManualClock) -> Scene:
    """With a transaction of either kind."""
    return Scene(store, clock, request.param)


def shown(store: Store, table: Table) -> tuple[list[bytes | None], list[bytes], int, int]:
    """What everybody sees: the topic, the table, and how many requests are to be handed out and pending."""
    stats = row_json(store.reports.subscription_stats("in", "s"))
    values = [message.value for message in store.reader("t")]
    return values, [row.key for row in table.scan()], stats["visible"], stats["pending"]


@pytest.mark.parametrize("doom", CAUSES)
def test_nothing_of_a_doomed_transaction_shows_and_nothing_can_be_done_in_it(
    scene: Scene, doom: Callable[[Scene], None], path: str
) -> None:
    """Whatever doomed it: messages, acknowledgements and keys are gone at once, also when all is opened again."""
    scene.work()
    assert shown(scene.store, scene.table) == ([], [], 0, 1)
    doom(scene)
    assert shown(scene.store, scene.table) == ([], [], 1, 0)
    record = row_json(scene.store.reports.show_transaction(scene.txn))
    assert record["state"] == TransactionState.ABORTED.value
    for name, later in LATER.items():
        with pytest.raises((TransactionNotOpen, ProducerFenced)):
            later(scene)
        assert shown(scene.store, scene.table) == ([], [], 1, 0), name
    assert (
        row_json(scene.store.admin.transactions.abort_transaction(scene.txn))["stateBefore"] == "ABORTED"
    ), "aborting it again succeeds"
    number = record["txnId"]
    scene.store.close()
    with Store.open(path, clock=scene.clock) as again:
        assert shown(again, again.table("accounts")) == ([], [], 1, 0)
        with pytest.raises(TransactionNotOpen):
            again.commit_transaction(number)
        assert row_json(again.reports.show_transaction(number))["reason"] == record["reason"]


def test_what_it_consumed_dooms_it_when_it_comes_to_a_table(scene: Scene) -> None:
    """It began before the message was sent: begin after receiving."""
    scene.input.send(b"newer")
    scene.consumer.acknowledge(scene.consumer.receive(timeout=0), txn=scene.txn)
    scene.store.create_producer("t", connected=False).send(b"result", txn=scene.txn)
    with pytest.raises(RequestTooOld):
        scene.put(b"k")
    assert shown(scene.store, scene.table) == ([], [], 2, 0)
    for later in LATER.values():
        with pytest.raises(TransactionNotOpen):
            later(scene)


@pytest.mark.parametrize(
    "bad",
    [
        lambda scene: scene.table.put(b"", b"v", txn=scene.txn),
        lambda scene: scene.table.put(b"k" * 401, b"v", txn=scene.txn),
        lambda scene: scene.table.put(b"k", "text", txn=scene.txn),
        lambda scene: scene.table.put(b"k", b"v" * (5 * 1024 * 1024 + 1), txn=scene.txn),
        lambda scene: scene.table.get(b"k", txn=scene.txn, at=5),
        lambda scene: scene.table.put(b"mine", b"v", txn=scene.txn, if_absent=True),
        lambda scene: scene.consumer.acknowledge(scene.request, txn=scene.txn),
        lambda scene: scene.store.table("nowhere").get(b"k", txn=scene.txn),
        lambda scene: list(scene.table.scan(limit=-1, txn=scene.txn)),
    ],
)
def test_bad_input_and_refusals_of_that_kind_doom_nobody(
    scene: Scene, bad: Callable[[Scene], object]
) -> None:
    """Bad input, a failed condition, a conflicting acknowledgement: the transaction goes on and commits."""
    scene.work()
    with pytest.raises(TxnctlError):
        bad(scene)
    scene.put(b"after")
    scene.store.commit_transaction(scene.txn)
    assert shown(scene.store, scene.table) == ([b"result"], [b"after", b"mine"], 0, 0)


def test_an_attached_transaction_that_keeps_everything_is_doomed_by_its_commit(
    store: Store, table: Table
) -> None:
    """Nobody could push it, as nobody saw it; judged at its commit, nothing of it is left."""
    txn = store.transaction()
    store.create_producer("t", connected=False).send(b"result", txn=txn)
    for number in range(10):
        table.put(b"k%d" % number, b"v", txn=txn)
    table.put(b"k7", b"later")
    with pytest.raises(WriteTooOld):
        txn.commit()
    assert txn.state is TransactionState.ABORTED
    assert [message.value for message in store.reader("t")] == []
    assert [(row.key, row.value) for row in table.scan()] == [(b"k7", b"later")]
    assert row_json(table.intents()) == []
