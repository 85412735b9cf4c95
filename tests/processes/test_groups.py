"""Processes that write in groups, and are killed: every flush is whole, and what was acknowledged is there."""

from __future__ import annotations

from storage import Store
from tests.processes.child import Children

PROCESSES, ROUNDS = 3, 4

GROUPS = """
    name = sys.argv[2]
    with Store.open(path) as store:
        producer, counters = store.create_producer("t"), store.table("counters")
        number = 0
        while True:
            with store.group():
                for _ in range(5):
                    with store.transaction() as txn:
                        for part in "ab":
                            producer.send(f"{name} {number} {part}".encode(), txn=txn)
                        counters.put(name.encode(), b"%d" % number, txn=txn)
                    producer.send(f"{name} {number} c".encode())
                    number += 1
            say("durable", number)
"""


def test_killed_groups_leave_whole_ends_in_order(store: Store, children: Children) -> None:
    """Of each process the first ends without a gap, each whole, and at least as many as it was told."""
    store.create_table("counters")
    durable: dict[str, int] = {}
    for turn in range(ROUNDS):
        names = [f"{turn}-{index}" for index in range(PROCESSES)]
        processes = {name: children.run(GROUPS, name) for name in names}
        for process in processes.values():
            for _ in range(3):
                process.expect("durable")
        for name, process in processes.items():
            process.kill()
            while (line := process.line()) is not None:
                durable[name] = int(line.partition(" ")[2])
    found: dict[str, list[str]] = {}
    for message in store.reader("t"):
        name, rest = (message.value or b"").decode().split(" ", 1)
        found.setdefault(name, []).append(rest)
    for name, ends in found.items():
        count = len(ends) // 3
        # The send comes behind its transaction, and each flush is a run of ends.
        whole = [f"{number} {part}" for number in range(count + 1) for part in "abc"]
        assert ends == whole[: len(ends)]
        assert len(ends) % 3 != 1, "half of a transaction is stored"
        assert count >= durable.get(name, 0)
        assert store.table("counters").get(name.encode()) == b"%d" % (-(-len(ends) // 3) - 1)
    assert store.maintenance.verify_store(full=True) == []


SENDS = """
    name = sys.argv[2]
    with Store.open(path) as store:
        producer = store.create_producer("t", producer_name=name)
        futures = [producer.send_async(b"%d" % number, sequence_id=number) for number in range(3000)]
        for number, future in enumerate(futures):
            future.result()
            if number % 100 == 0:
                say("durable", number)
"""


def test_killed_senders_go_on_exactly_once(store: Store, children: Children) -> None:
    """A successor sends everything again, under the same sequence ids."""
    first = children.run(SENDS, "p")
    durable = int(first.expect("durable"))
    first.kill()
    first.line()
    stored = [message.value for message in store.reader("t")]
    assert stored == [b"%d" % number for number in range(len(stored))]
    assert len(stored) > durable
    second = children.run(SENDS, "p")
    while second.line(120) is not None:
        pass
    assert [message.value for message in store.reader("t")] == [b"%d" % number for number in range(3000)]
