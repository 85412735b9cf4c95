"""The checker of histories finds what is planted, calls it by its name, and leaves serializable ones alone."""

from __future__ import annotations

import random

import pytest

from tests.storage.table.history import Get, History, Operation, Put, Recorded, Scan
from tests.storage.table.interleavings import ANOMALIES, START, Interleaving
from tests.storage.table.uncontrolled import Uncontrolled


def kinds(*transactions: Recorded, by_timestamp: bool = True) -> set[str]:
    return {found.kind for found in History(transactions, by_timestamp=by_timestamp).check()}


def done(version: int, *operations: Operation) -> Recorded:
    return Recorded(f"T{version}", version, True, list(operations))


FIRST = done(1, Put("x", "10"), Put("y", "20"))


@pytest.mark.parametrize("planted", ANOMALIES, ids=repr)
def test_every_named_anomaly_is_found(planted: Interleaving) -> None:
    """On a store that controls nothing it happens, and is called by its name."""
    store = Uncontrolled(planted.uncontrolled, planted.transactions)
    store.run(planted.rows)
    found = History(store.recorded(), orders=store.orders, by_timestamp=False).check()
    assert planted.found in {each.kind for each in found}, found


@pytest.mark.parametrize("planted", ANOMALIES, ids=repr)
def test_one_transaction_after_the_other_is_serializable(planted: Interleaving) -> None:
    """The same steps without interleaving are nobody's anomaly, on any of those stores."""
    for kind in ("dirty", "committed"):
        store = Uncontrolled(kind, planted.transactions)
        for name in planted.transactions:
            store.run([row for row in planted.rows if row.txn == name])
        assert History(store.recorded(), orders=store.orders).check() == []


def test_write_skew_is_two_anti_dependencies() -> None:
    """In either order of the versions."""
    for one, other in ((2, 3), (3, 2)):
        first = done(one, Get("x", 1, "10"), Get("y", 1, "20"), Put("x", "11"))
        second = done(other, Get("x", 1, "10"), Get("y", 1, "20"), Put("y", "21"))
        assert kinds(FIRST, first, second, by_timestamp=False) == {"G2-item"}


def test_a_skew_over_three_transactions_is_found() -> None:
    """A reader that has seen the second without the first closes the circle (Fekete's read-only anomaly)."""
    first = done(2, Get("x", 1, "10"), Get("y", 1, "20"), Put("x", "-11"))
    second = done(3, Get("y", 1, "20"), Put("y", "40"))
    reader = done(4, Get("x", 1, "10"), Get("y", 3, "40"))
    assert kinds(FIRST, first, second, by_timestamp=False) == set()
    assert kinds(FIRST, first, second, reader, by_timestamp=False) == {"G2-item"}


@pytest.mark.parametrize(
    ("missed", "is_phantom"),
    [(Put("m", "1"), True), (Put("b", "1"), True), (Put("n", "1"), False), (Put("a", "1"), False)],
    ids=["inside", "its start", "its end", "below"],
)
def test_a_phantom_is_found_inside_the_range_alone(missed: Put, is_phantom: bool) -> None:
    """The reader did not see the key, though it saw something later of the same writer."""
    writer = done(2, missed, Put("x", "11"))
    reader = done(3, Scan("b", "n", []), Get("x", 2, "11"))
    assert kinds(FIRST, writer, reader) == ({"PMP", "snapshot"} if is_phantom else set())


def test_a_deleted_key_that_is_not_seen_is_no_phantom() -> None:
    """And one that was put again is."""
    gone = done(2, Put("x", None))
    again = done(4, Put("x", "11"), Put("y", "21"))
    assert kinds(FIRST, gone, done(3, Scan("", None, [Get("y", 1, "20")])), again) == set()
    assert kinds(FIRST, gone, again, done(5, Scan("", None, [Get("y", 4, "21")]))) == {"PMP", "snapshot"}


def test_a_stale_read_is_not_the_snapshot() -> None:
    """No cycle, and yet not what its timestamp has; a read of the future neither."""
    later = done(2, Put("x", "11"))
    assert kinds(FIRST, later, done(3, Get("x", 1, "10"))) == {"snapshot"}
    assert kinds(FIRST, done(2, Get("x", 3, "11")), done(3, Put("x", "11"))) == {"snapshot"}
    assert kinds(FIRST, done(2, Get("y", 0, None))) == {"snapshot"}


def test_own_writes_are_read() -> None:
    """By key and by range, the last of them, deletions too."""
    good = done(
        2, Put("x", "1"), Put("x", "2"), Get("x", 2, "2"), Put("y", None), Scan("", None, [Get("x", 2, "2")])
    )
    assert kinds(FIRST, good) == set()
    for read in (Get("x", 2, "1"), Get("x", 1, "10"), Get("x", 0, None)):
        assert kinds(FIRST, done(2, Put("x", "1"), Put("x", "2"), read)) == {"own-write"}
    assert kinds(FIRST, done(2, Put("y", None), Get("y", 1, "20"))) == {"own-write"}
    assert kinds(FIRST, done(2, Put("z", "1"), Scan("z", None, []))) == {"own-write"}


def test_what_nobody_wrote_is_noticed() -> None:
    """A version of nobody, a value that its version never had, a timestamp given twice, a row out of the range."""
    assert kinds(FIRST, done(3, Get("x", 2, "11"))) == {"unknown"}
    assert kinds(FIRST, done(3, Get("x", 1, "11"))) == {"unknown"}
    assert "reuse" in kinds(FIRST, done(1, Get("x", 1, "10")))
    assert "range" in kinds(FIRST, done(2, Scan("y", None, [Get("x", 1, "10"), Get("y", 1, "20")])))
    assert "range" in kinds(FIRST, done(2, Scan("y", None, [Get("y", 1, "20"), Get("y", 1, "20")])))


def random_history(chance: random.Random, count: int, is_controlled: bool) -> list[Recorded]:
    """Transactions on snapshots; where they are controlled, one that a later one's read or write forbids aborts."""
    versions: dict[str, list[tuple[int, str | None]]] = {key: [(1, value)] for key, value in START.items()}
    read_by: dict[str, int] = {}
    found = [FIRST]
    waiting: list[tuple[int, list[Operation]]] = []
    names = ["x", "y", "z"]

    def at(key: str, when: int) -> tuple[int, str | None]:
        return max((v for v in versions.get(key, []) if v[0] < when), default=(0, None))

    def read(key: str, when: int) -> Get:
        read_by[key] = max(when, read_by.get(key, 0))
        version, value = at(key, when)
        return Get(key, version if value is not None else 0, value)

    for version in range(2, count + 2):
        operations: list[Operation] = []
        for _ in range(chance.randint(1, 3)):
            if chance.random() < 0.3:
                rows = [read(key, version) for key in names]
                operations.append(Scan("", None, [row for row in rows if row.version]))
            else:
                operations.append(read(chance.choice(names), version))
        waiting.append((version, operations))
        chance.shuffle(waiting)
        while len(waiting) > 3:
            mine, steps = waiting.pop()
            keys = chance.sample(names, chance.randint(1, 2))
            is_late = any(
                read_by.get(k, 0) > mine or versions.get(k, [(0, None)])[-1][0] > mine for k in keys
            )
            puts = [Put(key, None if chance.random() < 0.2 else f"{mine}") for key in keys]
            is_committed = not (is_controlled and is_late)
            found.append(Recorded(f"T{mine}", mine, is_committed, [*steps, *puts]))
            if is_committed:
                for put in puts:
                    versions[put.key] = sorted([*versions.get(put.key, []), (mine, put.value)])
    return found


@pytest.mark.parametrize("seed", range(20))
def test_random_histories_are_told_apart(seed: int) -> None:
    """Timestamp order controlled: nothing is found. The same without control: something is."""
    controlled = random_history(random.Random(seed), 300, is_controlled=True)
    assert sum(each.is_committed for each in controlled) > 60
    assert History(controlled).check() == []
    assert History(random_history(random.Random(seed), 300, is_controlled=False)).check() != []


def test_one_anomaly_in_a_large_history_is_found() -> None:
    """A single write skew among thousands of transactions that are serializable."""
    history = random_history(random.Random(7), 3000, is_controlled=True)
    last = max(each.version for each in history)
    history += [
        done(last + 1, Put("p", "1"), Put("q", "1")),
        done(last + 2, Get("p", last + 1, "1"), Put("q", "2")),
        done(last + 3, Get("q", last + 1, "1"), Put("p", "2")),
    ]
    assert [found.kind for found in History(history, by_timestamp=False).check()] == ["G2-item"]
