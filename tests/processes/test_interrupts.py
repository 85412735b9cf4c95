"""Ctrl-C at any moment: the process may go on, nothing is leaked, nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import time

from storage import IsolationLevel, Store
from tests.processes import places
from tests.processes.child import Children
from tests.waiting import moment_of_chance

SECONDS = 2.0
PAUSE_MAX_S = 0.03 if places.is_on_server() else 0.004
"""Between two interrupts: some attempts must come to their end, which take several round trips to a server."""

SEED = int(os.environ.get("CRASH_SEED", "1"))

STUBBORN = """
    store = Store.open(path, lock_timeout=3)
    producer = store.create_producer("t")
    consumer = store.subscribe("t", "s", initial_position=EARLIEST, receiver_queue_size=5)
    interrupts, number, armed = 0, 0, [False]
    acknowledged = open(sys.argv[2], "w", buffering=1)

    def interrupt(*_):
        # Once an attempt: an interrupt of the loop around it would end this program, and prove nothing.
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    say("started")
    while not os.path.exists(sys.argv[3]):
        try:
            armed[0] = True
            number += 1
            producer.send(b"%d" % number)
            acknowledged.write(f"{number}\\n")
            with store.transaction() as txn:
                producer.send(b"in a transaction", txn=txn)
            consumer.acknowledge(consumer.receive(timeout=1))
            list(store.reader("t", start=LATEST))
            armed[0] = False
        except KeyboardInterrupt:
            interrupts += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    producer.send(b"last")
    consumer.close()
    store.close()
    say("interrupts", interrupts)
    hear()
"""


def test_a_process_that_is_interrupted_again_and_again_goes_on(path: str, children: Children):
    """SIGINT every few milliseconds, wherever it lands: the gate is free afterwards and every answer stands."""
    chance, acknowledged, enough = random.Random(SEED), path + ".acknowledged", path + ".enough"
    child = children.run(STUBBORN, acknowledged, enough)
    child.expect("started")
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and child.is_running:
        # Where the signal lands is the point of this test: no handshake can choose it.
        moment_of_chance(chance, 0.0005, PAUSE_MAX_S)
        child.interrupt()
    with open(enough, "w", encoding="ascii"):
        pass
    assert int(child.expect("interrupts")) > 50
    with Store.open(path, lock_timeout=5) as store:
        store.create_producer("t").send(b"of another process, while the first still lives")
        stored = [
            message.value for message in store.reader("t", isolation_level=IsolationLevel.READ_UNCOMMITTED)
        ]
        with open(acknowledged, encoding="ascii") as lines:
            numbers = [line.strip().encode() for line in lines]
        assert numbers
        assert [stored.count(number) for number in numbers] == [1] * len(numbers)
        assert stored[-2] == b"last"
        assert store.maintenance.verify_store(full=True) == []
