"""The process that reads damaged copies of a store: `python -m tests.processes.damage STORE FIRST STEP COUNT SEED`.

For each flip it says a line: its number, the offset, and whether what it read was right, an error, or wrong. A flip
inside LMDB's own pages may kill the process; the test then starts another one behind it.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from typing import Any

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from storage.errors import TxnctlError
from storage.process.clock import ManualClock
from tests.processes.parent import say
from tests.row_json import row_json

TOPICS = ("letters", "numbers")


def build(path: str) -> None:
    """A store with something of everything: rolled ledgers, large values, transactions of all states, cursors."""
    Store.create(path, clock=ManualClock())
    with Store.open(path, clock=ManualClock()) as store:
        for name in TOPICS:
            store.create_topic(name, ledger_entries_max=25)
            store.admin.subscriptions.create_subscription(
                name, "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
            )
            store.admin.subscriptions.create_subscription(name, "e", initial_position=EARLIEST)
        letters, numbers = (store.create_producer(name, producer_name="p") for name in TOPICS)
        open_txn, acknowledging = None, store.begin_transaction()
        for number in range(60):
            letters.send(b"letter %d " % number + b"x" * (number * 53 % 2000), key=f"k{number % 5}")
            numbers.send_batch(
                [b"number %d.%d" % (number, index) for index in range(4)], properties=[{"n": str(number)}] * 4
            )
            if number % 10 == 3:
                txn = store.begin_transaction()
                letters.send(b"in a transaction", txn=txn)
                numbers.send_batch([b"in a transaction", b"in it too"], txn=txn)
                (
                    store.commit_transaction
                    if number % 20 == 3
                    else store.admin.transactions.abort_transaction
                )(txn)
            if number == 45:
                open_txn = store.begin_transaction()
                numbers.send(b"open", txn=open_txn)
        letters.send(b"large" * 4000)
        for name in TOPICS:
            with store.subscribe(name, "s") as consumer:
                found = list(consumer.receive_batch(20))
                consumer.acknowledge(found[::2])
                consumer.acknowledge(found[1], txn=acknowledging)
            with store.subscribe(name, "e") as consumer:
                consumer.acknowledge_cumulative(consumer.receive_batch(12)[-1])
    with Store.open(path) as store:
        store.maintenance.compact_store()  # so that every byte of the file is in use


def questions(store: Store) -> dict[str, Callable[[], Any]]:
    """Everything that can be read, by name."""
    asked: dict[str, Callable[[], Any]] = {
        "topics": store.topics,
        "transactions": lambda: (
            row_json(store.reports.list_transactions(ended=True))
            + row_json(store.reports.list_transactions())
        ),
        "subscriptions": store.reports.list_subscriptions,
    }
    for topic in TOPICS:
        asked[f"stats of {topic}"] = lambda topic=topic: row_json(store.reports.topic_stats(topic))
        asked[f"log of {topic}"] = lambda topic=topic: list(row_json(store.reports.topic_log(topic)))
        asked[f"peek at {topic}"] = lambda topic=topic: [
            repr(each) for each in store.reports.peek_messages(topic, "s", 500)
        ]
        for level in IsolationLevel:
            asked[f"{topic} {level.value}"] = lambda topic=topic, level=level: [
                (
                    str(each.message_id),
                    each.value,
                    each.key,
                    each.properties,
                    each.sequence_id,
                    str(each.txn_id),
                )
                for each in store.reader(topic, isolation_level=level)
            ]
    return asked


def answers(path: str) -> dict[str, Any]:
    """What a store answers to each question; an error is an instance of TxnctlError."""
    try:
        store = Store.open(path, read_only=True, clock=ManualClock())
    except TxnctlError as error:
        return {"open": error}
    found: dict[str, Any] = {}
    with store:
        for name, ask in questions(store).items():
            try:
                found[name] = ask()
            except TxnctlError as error:
                found[name] = error
        try:
            problems = store.maintenance.verify_store(full=True)
            found["verify"] = problems[0].message if problems else None
        except TxnctlError as error:
            found["verify"] = error.message
    return found


def judge(truth: dict[str, Any], found: dict[str, Any]) -> str:
    """`right`, `error`, `report` (only a report is wrong, and verify says so) or `WRONG`, with what is wrong."""
    if "open" in found:
        return "error"
    wrong = [
        name
        for name, answer in found.items()
        if name != "verify" and not isinstance(answer, TxnctlError) and answer != truth[name]
    ]
    if wrong:
        noticed = "noticed" if found["verify"] else "unnoticed"
        is_report = found["verify"] and not any("READ_" in name or "log" in name for name in wrong)
        return f"{'report' if is_report else 'WRONG'} {noticed}: {', '.join(wrong)}"
    is_error = found["verify"] or any(isinstance(each, TxnctlError) for each in found.values())
    return "error" if is_error else "right"


def main(path: str, first: str, step: str, count: str, seed: str) -> None:
    """See the module."""
    truth = answers(path)
    assert judge(truth, truth) == "right", truth
    data = os.path.join(path, "data.mdb")
    size = os.path.getsize(data)
    for number in range(int(first), int(count), int(step)):
        chance = random.Random(f"{seed} {number}")
        # Every fourth flip goes into the first two pages, where LMDB keeps the roots of everything.
        offset = (
            chance.randrange(200) + 4096 * chance.randrange(2) if number % 4 == 0 else chance.randrange(size)
        )
        flip(data, offset, bit := chance.randrange(8))
        say(number, offset, bit)
        try:
            verdict = judge(truth, answers(path))
        except Exception as error:  # noqa: BLE001 - the very question is whether any other exception comes out
            verdict = f"TRACEBACK {error!r} at {_where(error)}"
        flip(data, offset, bit)
        say("verdict", verdict)
    say("end")


def flip(file: str, offset: int, bit: int) -> None:
    """Flip one bit of a file."""
    with open(file, "r+b") as opened:
        opened.seek(offset)
        byte = opened.read(1)[0]
        opened.seek(offset)
        opened.write(bytes([byte ^ 1 << bit]))


def _where(error: Exception) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    assert frame is not None
    return f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"


if __name__ == "__main__":
    main(*sys.argv[1:])
