"""Processes that change one key: together they get on about as fast as one alone."""

from __future__ import annotations

from storage import Store
from tests.processes.child import Children

PROCESSES, INCREMENTS = 3, 15

INCREMENT = """
    tries = 0
    with Store.open(path) as store:
        counters = store.table("counters")

        def increment(txn):
            global tries
            tries += 1
            count = int(counters.get(b"n", txn=txn) or 0)
            let_pass(0.05, "transactions overlap while each one works")
            counters.put(b"n", b"%d" % (count + 1), txn=txn)

        say("ready")
        hear()
        for _ in range(int(sys.argv[2])):
            store.run_transaction(increment)
    say("tries", tries)
"""


def test_fewer_tries_are_lost_than_won(store: Store, children: Children) -> None:
    """Run again at once, the same three processes lose fifty tries for each that one of them commits."""
    store.create_table("counters")
    processes = [children.run(INCREMENT, INCREMENTS) for _ in range(PROCESSES)]
    for process in processes:
        process.expect("ready")
    for process in processes:
        process.say("go")
    tries = sum(int(process.expect("tries", timeout=120)) for process in processes)
    assert store.table("counters").get(b"n") == b"%d" % (PROCESSES * INCREMENTS)
    assert tries <= 2 * PROCESSES * INCREMENTS
