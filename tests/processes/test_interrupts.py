"""Ctrl-C at any moment: the process may go on, nothing is leaked, nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import time

from storage import IsolationLevel, Store
from tests.processes import places
from tests.processes.child import Children
from tests.row_json import row_json
from tests.waiting import moment_of_chance

SECONDS = 2.0
PAUSE_MAX_S = 0.03 if places.is_on_server() else 0.004
"""Between two interrupts: some attempts must come to their end, which take several round trips to a server."""

SEED = int(os.environ.get("CRASH_SEED", "1"))

STUBBORN = """
    store = Store.open(path, lock_timeout=3)
    producer = store.create_producer("t")
    second = store.create_producer("t")
    consumer, beside = (
        store.subscribe("t", "s", subscription_type="Shared", initial_position=EARLIEST, receiver_queue_size=5)
        for _ in range(2)
    )
    taken, interrupts, number, armed = set(), 0, 0, [False]
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
            message = consumer.receive(timeout=1)
            consumer.acknowledge(message)
            taken.add(message.message_id)
            list(store.reader("t", start=LATEST))
            armed[0] = False
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts == 51:
                say("enough")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    behind = [each.send_async(b"behind") for each in (producer, second)]
    with store.transaction() as txn:
        for each in (producer, second):
            each.send(b"together", txn=txn)
        message = consumer.receive(timeout=30)
        consumer.acknowledge(message, txn=txn)
    again = taken & {message.message_id}
    with store.group():
        second.send(b"in a group")
        producer.send(b"last")
    for future in behind:
        future.result(30)
    for each in (consumer, beside):
        # What an interrupt cut off from the first consumer on its way is free when that consumer is closed.
        while messages := each.receive_batch(500, timeout=0):
            for message in messages:
                again |= taken & {message.message_id}
                taken.add(message.message_id)
                each.acknowledge(message)
        each.close()
    store.close()
    say("again", len(again))
    hear()
"""


def test_a_process_that_is_interrupted_again_and_again_goes_on(path: str, children: Children):
    """SIGINT every few milliseconds, wherever it lands: every answer stands, and all objects of the process go on."""
    chance, acknowledged, enough = random.Random(SEED), path + ".acknowledged", path + ".enough"
    child = children.run(STUBBORN, acknowledged, enough)
    child.expect("started")
    until = time.monotonic() + SECONDS
    while (time.monotonic() < until or not child.has_spoken(0)) and child.is_running:
        # Where the signal lands is the point of this test: no handshake can choose it.
        moment_of_chance(chance, 0.0005, PAUSE_MAX_S)
        child.interrupt()
    with open(enough, "w", encoding="ascii"):
        pass
    child.expect("enough")
    assert child.expect("again") == "0"
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
        behind = [value for value in stored if value in (b"behind", b"together", b"in a group")]
        assert sorted(behind) == [b"behind", b"behind", b"in a group", b"together", b"together"]
        with store.subscribe("t", "s", subscription_type="Shared") as consumer:
            (message,) = consumer.receive_batch(9, timeout=0)
            assert message.value == b"of another process, while the first still lives"
            consumer.acknowledge(message)
        assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0
        assert store.maintenance.verify_store(full=True) == []
