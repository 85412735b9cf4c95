"""A store with records of every kind, and everything that can be asked of it: the sample that tests damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from storage import EARLIEST, IsolationLevel, Message, OnOpen, Position, Store, SubscriptionType
from storage.errors import TxnctlError
from storage.process.clock import ManualClock
from storage.txn.options import CheckMode
from tests.format import small_store
from tests.row_json import row_json

Questions = dict[str, Callable[[], Any]]

TOPICS = ("letters", "numbers")
ROWS = 300


def build(path: str, *, compacted: bool = True) -> None:
    """Build a store with something of everything: rolled ledgers, large values, transactions of all states, cursors.

    Args:
        compacted: rewrite the file, so that every byte of the file is in use.
    """
    small_store.build(Path(path))
    clock = ManualClock()
    with Store.open(path, clock=clock, program="sample") as store:
        _add_topics(store)
        _add_rows(store)
    if compacted:
        with Store.open(path) as store:
            store.maintenance.compact_store()


def _add_topics(store: Store) -> None:
    for name in TOPICS:
        store.create_topic(name, ledger_entries_max=25)
        store.admin.subscriptions.create_subscription(
            name, "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        store.admin.subscriptions.create_subscription(name, "e", initial_position=EARLIEST)
    letters, numbers = (store.create_producer(name, producer_name="p") for name in TOPICS)
    acknowledging = store.begin_transaction()
    for number in range(60):
        letters.send(b"letter %d " % number + b"x" * (number * 53 % 2000), key=f"k{number % 5}")
        numbers.send_batch(
            [b"number %d.%d" % (number, index) for index in range(4)], properties=[{"n": str(number)}] * 4
        )
        if number % 10 == 3:
            txn = store.begin_transaction()
            letters.send(b"in a transaction", txn=txn)
            numbers.send_batch([b"in a transaction", b"in it too"], txn=txn)
            (store.commit_transaction if number % 20 == 3 else store.admin.transactions.abort_transaction)(
                txn
            )
        if number == 45:
            numbers.send(b"open", txn=store.begin_transaction())
    letters.send(b"large" * 4000)
    for name in TOPICS:
        with store.subscribe(name, "s") as consumer:
            received = list(consumer.receive_batch(20))
            consumer.acknowledge(received[::2])
            consumer.acknowledge(received[1], txn=acknowledging)
        with store.subscribe(name, "e") as consumer:
            consumer.acknowledge_cumulative(consumer.receive_batch(12)[-1])


def _add_rows(store: Store) -> None:
    store.create_table("stock")
    table = store.table("stock")
    for round_number in range(2):
        with store.transaction() as txn:
            for number in range(0, ROWS, 1 + 4 * round_number):
                table.put(b"item %04d" % number, b"%d of round %d" % (number, round_number) * 3, txn=txn)
    for number in range(5):
        table.delete(b"item %04d" % (7 * number + 1))
    table.put(b"large", b"row" * 3000)
    holder = store.begin_transaction()
    for number in range(3):
        table.put(b"item %04d" % (11 * number + 2), b"intent", txn=holder)


def reads(store: Store) -> Questions:
    """Everything that can be read, by name."""
    reports = store.reports
    asked: Questions = {
        "topics": store.topics,
        "tables": store.tables,
        "open transactions": lambda: row_json(reports.list_transactions()),
        "ended transactions": lambda: row_json(reports.list_ended_transactions()),
        "subscriptions": lambda: row_json(reports.list_subscriptions()),
        "producers": lambda: row_json(reports.list_producers()),
        "table counts": lambda: row_json(reports.list_tables()),
        "intents": lambda: row_json(reports.list_intents()),
        "conflicts": lambda: row_json(reports.list_conflicts()),
        "audit": lambda: row_json(reports.list_audit_records()),
        "blocking": lambda: row_json(reports.list_blocking_transactions()),
        "overview": lambda: _settled(row_json(reports.store_overview())),
    }
    for topic in ("letters", "numbers", "orders", "parcels", "accounts"):
        _ask_topic(store, topic, asked)
    for name in ("stock", "accounts"):
        _ask_table(store, name, asked)
    return asked


def _settled(row: Any) -> Any:
    """A report without the figures of the file and of its readers, which differ from copy to copy."""
    if isinstance(row, dict):
        return {
            name: _settled(value)
            for name, value in row.items()
            if not any(word in name.lower() for word in ("path", "bytes", "readers", "store", "disk"))
        }
    return [_settled(value) for value in row] if isinstance(row, list) else row


def _ask_topic(store: Store, topic: str, asked: Questions) -> None:
    reports = store.reports
    asked[f"stats of {topic}"] = lambda: row_json(reports.topic_stats(topic))
    asked[f"internal stats of {topic}"] = lambda: row_json(reports.topic_stats_internal(topic))
    asked[f"log of {topic}"] = lambda: row_json(reports.topic_log(topic))
    asked[f"timeline of {topic}"] = lambda: row_json(reports.topic_timeline(topic))
    asked[f"last message of {topic}"] = lambda: str(reports.last_message_id(topic))
    asked[f"start of {topic}"] = lambda: str(reports.position_at(topic, 0))
    asked[f"owners of {topic}"] = lambda: row_json(reports.ownership_history(topic))
    for level in IsolationLevel:
        asked[f"{topic} {level.value}"] = lambda level=level: list(
            map(_message, store.reader(topic, isolation_level=level))
        )
    asked[f"second half of {topic}"] = lambda: list(
        map(
            _message, store.reader(topic, start=Position(1, 2), isolation_level=IsolationLevel.READ_COMMITTED)
        )
    )
    for name in SUBSCRIPTIONS.get(topic, ()):
        asked[f"stats of {topic}/{name}"] = lambda name=name: row_json(
            reports.subscription_stats(topic, name)
        )
        asked[f"pending of {topic}/{name}"] = lambda name=name: row_json(
            reports.list_pending_acknowledgements(topic, name)
        )
        asked[f"peek at {topic}/{name}"] = lambda name=name: list(
            map(_message, reports.peek_messages(topic, name, 500))
        )


SUBSCRIPTIONS = {"letters": ("s", "e"), "numbers": ("s", "e"), "orders": ("E", "D"), "parcels": ("K",)}


def _message(message: Message) -> tuple[object, ...]:
    return (
        str(message.message_id), message.value, message.key, message.properties, message.sequence_id,
        str(message.txn_id), message.redelivery_count,
    )  # fmt: skip


def _ask_table(store: Store, name: str, asked: Questions) -> None:
    def table() -> Any:
        return store.table(name)

    for check in CheckMode:
        asked[f"scan of {name}, {check.value}"] = lambda check=check: list(
            map(repr, table().scan(check=check))
        )
    asked[f"scan back of {name}"] = lambda: list(map(repr, table().scan(reverse=True)))
    asked[f"range of {name}"] = lambda: list(map(repr, table().scan(start=b"item 0100", end=b"item 0200")))
    asked[f"first rows of {name}"] = lambda: list(map(repr, table().scan(limit=20)))
    asked[f"rows of {name}"] = lambda: [table().get(b"item %04d" % number) for number in range(0, ROWS, 7)]
    asked[f"row of {name}"] = lambda: [repr(table().get_row(key)) for key in (b"B1", b"B2", b"B3", b"large")]
    asked[f"versions of {name}"] = lambda: row_json(table().versions(b"item 0010"))
    asked[f"stats of {name}"] = lambda: row_json(table().stats())
    asked[f"cuts of {name}"] = lambda: table().split(4)


def writes(store: Store) -> Questions:
    """Changes whose answers say what the store held: deliveries, appends, ends of transactions, serializable reads."""
    asked: Questions = {}

    def consume(topic: str, name: str) -> object:
        keyed = (
            {"subscription_type": SubscriptionType.KEY_SHARED, "on_open": OnOpen.SKIP} if name == "K" else {}
        )
        with store.subscribe(topic, name, **keyed) as consumer:
            messages = consumer.receive_batch(500, timeout=0)
            consumer.acknowledge(messages[: len(messages) // 2])
            return list(map(_message, messages))

    for topic, names in SUBSCRIPTIONS.items():
        for name in names:
            asked[f"consume {topic}/{name}"] = lambda topic=topic, name=name: consume(topic, name)
    asked["serializable rows"] = lambda: _read_in_transaction(store)
    asked["import"] = lambda: store.table("stock").import_rows([(b"item 0002", b"x"), (b"item 0003", b"y")])
    for txn in range(1, 16):
        end = store.commit_transaction if txn % 2 else store.admin.transactions.abort_transaction
        asked[f"end of transaction {txn}"] = lambda txn=txn, end=end: row_json(end(f"0:{txn}"))
    for topic in ("letters", "accounts", "left"):
        asked[f"send to {topic}"] = lambda topic=topic: str(store.create_producer(topic).send(b"more"))
        asked[f"take over {topic}"] = lambda topic=topic: str(
            store.create_producer(topic, access_mode="ExclusiveWithFencing").send(b"taken over")
        )
    for topic, names in SUBSCRIPTIONS.items():
        for name in names:
            asked[f"consume the rest of {topic}/{name}"] = lambda topic=topic, name=name: consume(topic, name)
            asked[f"clear {topic}/{name}"] = lambda topic=topic, name=name: row_json(
                store.admin.subscriptions.clear_backlog(topic, name, reason="test")
            )
    asked["gc"] = lambda: row_json(store.maintenance.collect_garbage())
    asked["delete"] = lambda: row_json(store.admin.topics.delete_topic("numbers", force=True, reason="test"))
    asked["delete table"] = lambda: row_json(
        store.admin.tables.delete_table("stock", force=True, reason="test")
    )
    return asked


def _read_in_transaction(store: Store) -> list[str]:
    with store.transaction() as txn:
        return list(map(repr, store.table("stock").scan(txn=txn)))


CHANGES = ("consume", "serializable", "import", "end of", "send", "take over", "clear", "gc", "delete")
"""The first words of the names of changes."""


def is_change(name: str) -> bool:
    """Whether a question of this name changes the store."""
    return name.startswith(CHANGES)


def answer(questions: Questions) -> dict[str, Any]:
    """The answer to each question; an error of ours is the answer, any other exception passes."""
    answers: dict[str, Any] = {}
    for name, ask in questions.items():
        try:
            answers[name] = ask()
        except TxnctlError as error:
            answers[name] = error
    return answers
