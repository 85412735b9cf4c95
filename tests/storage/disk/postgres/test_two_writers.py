"""Two writers of one server at one commit: each change is there once, and none is built on half of another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from storage import Store, Transaction

ROUNDS = 10


def test_two_writers_that_meet_at_every_commit_lose_and_double_nothing(url: str) -> None:
    """A send and an increment in a transaction each, begun together: dense positions, and a sum without a lost update."""
    with Store.open(url) as first, Store.open(url) as second:
        first.create_topic("t")
        first.create_table("sums")
        meets = threading.Barrier(2)

        def work(store: Store, name: bytes) -> None:
            producer, sums = store.create_producer("t", producer_name=name.decode()), store.table("sums")
            for number in range(ROUNDS):
                meets.wait(60)
                producer.send(b"%s %d" % (name, number))

                def add(txn: Transaction, number: int = number) -> None:
                    sums.put(b"n", b"%d" % (int(sums.get(b"n", txn=txn) or 0) + 1), txn=txn)
                    producer.send(b"%s in %d" % (name, number), txn=txn)

                store.run_transaction(add)

        with ThreadPoolExecutor(2) as threads:
            for done in [threads.submit(work, first, b"a"), threads.submit(work, second, b"b")]:
                done.result()
        messages = list(first.reader("t"))
        assert first.table("sums").get(b"n") == b"%d" % (2 * ROUNDS)
    sent = [(message.value or b"").split() for message in messages]
    for name in (b"a", b"b"):
        assert [words[-1] for words in sent if words[0] == name and len(words) == 2] == [
            b"%d" % number for number in range(ROUNDS)
        ]
        assert [words[-1] for words in sent if words[0] == name and len(words) == 3] == [
            b"%d" % number for number in range(ROUNDS)
        ]
    places = [(message.message_id.ledger_id, message.message_id.entry_id) for message in messages]
    assert places == sorted(set(places))
