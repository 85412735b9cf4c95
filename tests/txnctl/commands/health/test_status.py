"""`txnctl status`."""

from __future__ import annotations

import os
import pty
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.an_hour_ago import an_hour_ago
from txnctl.fields.overview import OVERVIEW
from txnctl.output.field import undeclared


@pytest.fixture
def path(hour_old: Path) -> Path:
    """A store with the topic `orders`, to which `billing` subscribes, and the table `balances`."""
    return hour_old


@pytest.fixture
def stuck(path: Path) -> None:
    """0:1 holds a key and two messages, three wait behind them; 0:2 is past its deadline. All an hour ago."""
    with Store.open(path, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders", producer_name="loader")
        txn = store.begin_transaction(timeout=7200)
        producer.send_batch([b"half"] * 2, txn=txn)
        store.table("balances").put(b"B1", b"100", txn=txn)
        producer.send_batch([b"whole"] * 3)
        producer.close()
        store.begin_transaction(timeout=60)


def test_a_new_store_is_ok(run: Callable[..., Any], path: Path) -> None:
    """No finding, no next command; every field is declared; nothing is written."""
    before = (path / "data.mdb").read_bytes()
    row = run("status", "-o", "json").json
    assert (row["verdict"], row["findings"]) == ("ok", [])
    assert not undeclared(row, OVERVIEW)
    lines = run("status").out.splitlines()
    assert lines[0].split()[:2] == ["bank.store", "ok"]
    assert not any(line.startswith(("Next:", "  !")) for line in lines)
    assert run("status", "-o", "name").out == "ok\n"
    assert (path / "data.mdb").read_bytes() == before


@pytest.mark.usefixtures("stuck")
def test_what_is_wrong_comes_first(run: Callable[..., Any]) -> None:
    """Then the next command, then the parts of the store."""
    lines = run("status").out.splitlines()
    assert " ".join(lines[0].split()[:4]) == "bank.store WARNING: 3 findings"
    assert lines[2] == "  ! 1 open transaction is late: 0:2"
    assert lines[3].endswith(
        "3 committed messages of orders wait behind transaction 0:1; billing cannot read on"
    )
    assert lines[4] == "  ! 1 key of table balances (B1) is held by transaction 0:1"
    assert lines[6] == "Next: txnctl doctor"
    squeezed = [" ".join(line.split()) for line in lines]
    assert "orders 5 3 0:1 2 1 0 0" in squeezed
    assert "balances 0 0 1 0:1" in squeezed
    assert any(line.startswith("transactions 2 open; 1 late; the oldest 0:1 for 1h00m") for line in squeezed)


@pytest.mark.usefixtures("stuck")
def test_the_numbers_are_those_of_the_other_reports(run: Callable[..., Any], path: Path) -> None:
    """Each command says the same of the same thing."""
    row = run("status", "-o", "json").json
    (topic,), (subscription,) = row["topics"], row["subscriptions"]
    with Store.open(path, read_only=True) as store:
        stats = row_json(store.reports.topic_stats("orders"))
        assert topic["blockedMessages"] == stats["blockedMessages"] == 3
        assert topic["oldestBlockedMs"] == stats["oldestBlockedMs"]
        assert topic["blockedBy"] == stats["blockedBy"]["txnId"]
        expected = stats["subscriptions"]["billing"]
        assert {name: expected[name] for name in ("visible", "blocked", "uncommitted", "verdict")} == {
            name: subscription[name] for name in ("visible", "blocked", "uncommitted", "verdict")
        }
        assert row["transactions"]["open"] == len(row_json(store.reports.list_transactions()))
        assert row["tables"][0]["intents"] == len(row_json(store.reports.list_intents()))


def test_it_fits_one_screen_whatever_there_is(run: Callable[..., Any], path: Path) -> None:
    """Of many topics those with something to tell come first, and it is said where the others are."""
    with Store.open(path) as store:
        for number in range(20):
            store.create_topic(f"topic-{number}")
        store.create_producer("topic-19").send(b"1", txn=store.begin_transaction())
    lines = run("status").out.splitlines()
    assert len(lines) <= 40
    first = next(index for index, line in enumerate(lines) if line.split()[:1] == ["TOPIC"])
    assert lines[first + 1].split()[0] == "topic-19"
    assert "  and 9 more: txnctl topics list" in lines


def test_elsewhere_than_on_a_terminal_it_is_drawn_once(run: Callable[..., Any], path: Path) -> None:
    """No escape sequence leaves; a note says why it ended."""
    assert path.exists()
    for words in ((), ("-o", "json")):
        outcome = run("status", "--watch", *words)
        assert outcome.status == 0
        assert "\x1b" not in outcome.out
        assert "on a terminal only" in outcome.err


def test_watching_draws_anew_until_ctrl_c(start: Callable[..., Any], path: Path) -> None:
    """What happens meanwhile shows, no view is held between two looks, and Ctrl-C ends it quietly with 130."""
    ours, theirs = pty.openpty()
    process = start("status", "--watch", "100ms", stdout=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = b""
    while seen.count(b"\x1b[H\x1b[2J") < 2:
        seen += os.read(ours, 65536)
    with Store.open(path) as store:
        store.create_topic("fresh")
        until = time.monotonic() + 30
        while any(
            row["pid"] == process.pid and row["state"] == "reading"
            for row in row_json(store.reports.list_readers())
        ):
            assert time.monotonic() < until
    while b"fresh" not in seen:
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")
    os.close(ours)
