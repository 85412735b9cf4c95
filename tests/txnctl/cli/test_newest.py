"""`--tail N`: where the newest entries, and the newest visible messages, begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, LATEST, IsolationLevel, MessageId, Position, Store
from txnctl.cli.newest import newest_entries, newest_messages

COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


@pytest.fixture
def filled(told: Path) -> Path:
    """Six messages in four entries, thirty aborted ones, and two behind an open transaction; three ledgers."""
    Store.create(told)
    with Store.open(told) as store:
        store.create_topic("orders", ledger_entries_max=15)
        with store.create_producer("orders") as producer:
            producer.send_batch([b"0", b"1", b"2"])
            for value in (b"3", b"4", b"5"):
                producer.send(value)
            dropped = store.begin_transaction()
            for _ in range(30):
                producer.send(b"dropped", txn=dropped)
            store.admin.transactions.abort_transaction(dropped)
            producer.send(b"6", txn=store.begin_transaction())
            producer.send(b"7")
    return told


def test_entries_are_counted_over_ledgers(filled: Path) -> None:
    """Markers too; more than there are is from the beginning on."""
    with Store.open(filled, read_only=True) as store:
        assert newest_entries(store, "orders", 2) == Position(3, 5)
        assert newest_entries(store, "orders", 20) == Position(2, 2)
        assert newest_entries(store, "orders", 1000) is EARLIEST


def test_only_visible_messages_are_counted(filled: Path) -> None:
    """Aborted ones and those behind an open transaction are not, and a batch may be cut."""
    with Store.open(filled, read_only=True) as store:
        assert newest_messages(store, "orders", COMMITTED, 1) == MessageId(1, 3, 0)
        assert newest_messages(store, "orders", COMMITTED, 4) == MessageId(1, 0, 2)
        assert newest_messages(store, "orders", UNCOMMITTED, 1) == MessageId(3, 6, 0)
        assert newest_messages(store, "orders", COMMITTED, 7) is EARLIEST
        assert newest_messages(store, "orders", COMMITTED, 0) is LATEST


@pytest.mark.usefixtures("filled")
def test_the_last_messages_are_printed(run: Any) -> None:
    """By `consume`, `topics peek` under both names, and by `topics log` as entries."""
    for words in (
        ("consume", "orders", "--tail"),
        ("topics", "peek", "orders", "--tail"),
        ("topics", "peek", "orders", "--last"),
    ):
        assert run(*words, "4", "-o", "value").out == "2\n3\n4\n5\n", words
        assert run(*words, "100", "-o", "value").out == "0\n1\n2\n3\n4\n5\n"
        assert run(*words, "0", "-o", "value").out == ""
    assert run("consume", "orders", "--tail", "4", "-n", "2", "-o", "value").out == "2\n3\n"
    assert run("consume", "orders", "--last", "4", "-n", "2", "-o", "value").out == "2\n3\n"
    entries = run("topics", "log", "orders", "--range", "-3", "-o", "name").out
    assert run("topics", "log", "orders", "--tail", "3", "-o", "name").out == entries
    assert run("topics", "log", "orders", "--last", "3", "-o", "name").out == entries


@pytest.mark.usefixtures("filled")
def test_a_follower_goes_on_from_there(start: Any, filled: Path) -> None:
    """`--tail 1 -f` shows the last message, and those that come later."""
    with Store.open(filled) as store:
        store.create_topic("other")
        with store.create_producer("other") as producer:
            producer.send_batch([b"a", b"b"])
            process = start("consume", "other", "--tail", "1", "-f", "-o", "value")
            assert process.stdout.readline() == b"b\n"
            producer.send(b"c")
            assert process.stdout.readline() == b"c\n"


@pytest.mark.parametrize("form", ["table", "name"])
def test_the_log_is_followed(start: Any, filled: Path, form: str) -> None:
    """`topics log --tail 1 -f`: the last entry, and those that come later, in a further ledger too."""
    with Store.open(filled) as store, store.create_producer("orders") as producer:
        process = start("topics", "log", "orders", "--tail", "1", "-f", "-o", form)
        if form == "table":
            assert process.stdout.readline().startswith(b"POSITION")
        assert process.stdout.readline().split()[0] == b"3:6"
        for _ in range(10):
            producer.send(b"more")
        seen = [process.stdout.readline().split()[0].decode() for _ in range(10)]
        assert seen == [f"3:{entry}" for entry in range(7, 15)] + ["4:0", "4:1"]


@pytest.mark.usefixtures("filled")
def test_what_has_an_end_is_not_followed(run: Any) -> None:
    """JSON, and a range."""
    for words in (("-o", "json"), ("--range", "1:0..1:2")):
        assert run("topics", "log", "orders", "-f", *words).status == 2


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "words",
    [
        ("consume", "orders", "-s", "billing", "--tail", "1"),
        ("consume", "orders", "--from", "earliest", "--tail", "1"),
        ("consume", "orders", "--read-compacted", "--tail", "1"),
        ("topics", "peek", "orders", "-n", "1", "--tail", "1"),
        ("topics", "peek", "orders", "--from", "earliest", "--tail", "1"),
        ("topics", "log", "orders", "--range", "-5", "--tail", "1"),
    ],
)
def test_two_beginnings_are_refused(run: Any, words: tuple[str, ...]) -> None:
    """With the names of both."""
    outcome = run(*words)
    assert outcome.status == 2
    assert "--tail" in outcome.err
