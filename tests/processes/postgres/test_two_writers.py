"""Two processes that write to one store on a server at one commit: each change is there once, on the other's whole.

Handles of one process share one writer, so that only processes meet at a commit. A process that has made the last
commits sends a batch without the gate, and makes the batch again where another commit came first; behind a commit of
another process a batch is made inside the gate.
"""

from __future__ import annotations

import pytest

from storage import Store
from tests.processes.child import Child, Children

ROUNDS = 10
WRITER = """
from storage import faults
name = sys.argv[2]
with Store.open(path, lock_timeout=30) as store:
    producer, sums = store.create_producer("t", producer_name=name), store.table("sums")

    def meet():
        faults.disarm()
        say("before")
        hear()

    def add(txn):
        sums.put(b"n", b"%d" % (int(sums.get(b"n", txn=txn) or 0) + 1), txn=txn)
        producer.send(b"%s %d added" % (name.encode(), number), txn=txn)

    number = 0
    say("ready")
    while (asked := hear()) != "end":
        if asked.endswith("and meet"):
            faults.arm("environment.before_commit", meet)
        if asked.startswith("send"):
            producer.send(b"%s %d" % (name.encode(), number))
        else:
            store.run_transaction(add)
        say("done")
        number += 1
"""


@pytest.fixture
def writers(store: Store, children: Children) -> list[Child]:
    """Two processes that send and add as they are told."""
    store.create_table("sums")
    started = [children.run(WRITER, name) for name in "ab"]
    for writer in started:
        writer.expect("ready")
    return started


def told(writer: Child, asked: str, answer: str = "done") -> None:
    writer.say(asked)
    writer.expect(answer)


def check(store: Store, writers: list[Child], counts: tuple[int, int], added: int) -> None:
    """Each change is there once: messages of a writer in order, at dense positions, and a sum without a lost update."""
    for writer in writers:
        writer.say("end")
        writer.succeed()
    messages = list(store.reader("t"))
    sent = [(message.value or b"").split() for message in messages]
    for name, count in zip((b"a", b"b"), counts, strict=True):
        assert [int(words[1]) for words in sent if words[0] == name] == list(range(count))
    assert len(sent) == sum(counts)
    assert int(store.table("sums").get(b"n") or 0) == added == sum(words[-1] == b"added" for words in sent)
    places = [(message.message_id.ledger_id, message.message_id.entry_id) for message in messages]
    assert places == sorted(set(places))


@pytest.mark.parametrize("other", ["send", "add"])
@pytest.mark.parametrize("first", ["send", "add"])
def test_a_batch_that_another_process_overtakes_is_made_again(
    store: Store, writers: list[Child], first: str, other: str
) -> None:
    """A process alone holds no gate between its look and its commit; what the other one commits there is kept."""
    one, two = writers
    for _ in range(3):
        told(one, first)
    told(one, f"{first} and meet", "before")
    told(two, other)
    one.say()
    one.expect("done")
    told(one, first)
    check(store, writers, (5, 1), 5 * (first == "add") + (other == "add"))


@pytest.mark.parametrize("asked", ["send", "add"])
def test_a_batch_behind_another_process_waits_for_that_commit(
    store: Store, writers: list[Child], asked: str
) -> None:
    """A process that knows the commit of another one holds the gate, and the other one follows on its commit."""
    one, two = writers
    told(two, asked)
    told(one, f"{asked} and meet", "before")
    two.say(asked)
    assert not two.has_spoken(0.2)
    one.say()
    one.expect("done")
    two.expect("done")
    check(store, writers, (1, 2), 3 * (asked == "add"))


def test_processes_that_write_at_the_same_time_lose_and_double_nothing(
    store: Store, writers: list[Child]
) -> None:
    """Round by round, both told at once."""
    for number in range(ROUNDS):
        for writer in writers:
            writer.say("send" if number % 3 else "add")
        for writer in writers:
            writer.expect("done")
    check(store, writers, (ROUNDS, ROUNDS), 2 * len(range(0, ROUNDS, 3)))
