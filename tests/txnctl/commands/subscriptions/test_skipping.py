"""`--on-open skip` on the command line: consume, create, update, and what reports say of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.report_steps import table, tree
from txnctl.commands.subscriptions import create, lag, update
from txnctl.commands.subscriptions.one_subscription import STATS
from txnctl.commands.topics import last_message_id
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store whose topic `orders` has, with key k, an open message and a plain one behind it, and one with key l.

    It is verified in full when the test is over.
    """
    at = tmp_path / "bank.store"
    Store.create(at)
    with Store.open(at) as store:
        store.create_topic("orders")
        producer = store.create_producer("orders")
        producer.send(b"open", key="k", txn=store.begin_transaction())
        producer.send_batch([b"waits", b"goes"], keys=["k", "l"])
        store.admin.subscriptions.create_subscription("orders", "plain", initial_position=EARLIEST)
    monkeypatch.setenv("TXNCTL_STORE", str(at))
    yield at
    with Store.open(at) as store:
        assert store.maintenance.verify_store(full=True) == []


def consume(run: Any, *more: str) -> Any:
    """`consume` from the beginning, on a Key_Shared subscription that skips."""
    words = ("--subscription-type", "key-shared", "--on-open", "skip", "--from", "earliest", "-o", "value")
    return run("consume", "orders", "-s", "pack", *words, *more)


def test_only_messages_that_wait_for_their_key_are_blocked(run: Any) -> None:
    """Where every subscription passes over open transactions; in status, doctor, check and the report, as in lag."""
    assert run("subscriptions", "delete", "orders", "plain", "--yes").status == 0
    consume(run)
    run("topics", "create", "other")
    for _ in range(20):
        run("produce", "orders", "-m", "more", "-k", "m")
    consume(run)
    (row,) = run("status", "-o", "json").json["topics"][:1]
    lag = run("subscriptions", "lag", "orders", "-o", "json").json[0]
    assert (row["blockedMessages"], row["blockedBy"]) == (lag["blocked"], "0:1") == (1, "0:1")
    (finding,) = [row for row in run("doctor", "-o", "json").json["findings"] if row["code"] == "blocked"]
    assert finding["what"] == "1 committed message of orders waits behind transaction 0:1"
    assert 'txnctl_topic_blocked_messages{topic="persistent://public/default/orders"} 1' in (
        run("check", "--format", "prometheus").out
    )
    assert table(tree(run("report", "--html", "-").out), "All topics")[0]["BLOCKED"] == "1"
    run("subscriptions", "create", "orders", "plain", "--from", "earliest")
    assert run("status", "-o", "json").json["topics"][0]["blockedMessages"] == 22


def test_consume_hands_out_what_nothing_holds(run: Any) -> None:
    """And says at the end what waits behind which transaction; the rest comes when that has ended."""
    first = consume(run)
    assert first.out == "goes\n"
    assert (
        "created subscription pack of orders at earliest (Key_Shared, READ_COMMITTED, on-open skip)"
        in first.err
    )
    assert (
        "stopped before the end of orders: 1 committed message waits behind open transaction 0:1, with 1 uncommitted"
        in first.err
    )
    assert run("transactions", "commit", "0:1").status == 0
    again = run("consume", "orders", "-s", "pack", "-o", "value")
    assert again.out == "open\nwaits\n"
    assert "stopped" not in again.err


def test_consume_says_what_it_changes(run: Any) -> None:
    """One that names block on a subscription that skipped."""
    assert consume(run).status == 0
    changed = run("consume", "orders", "-s", "pack", "--on-open", "BLOCK", "-o", "value")
    assert (
        "was Key_Shared, READ_COMMITTED, on-open skip and now is Key_Shared, READ_COMMITTED;" in changed.err
    )
    assert changed.out == ""


@pytest.mark.parametrize("words", [["--on-open", "skip"], ["-s", "x", "--on-open", "skip"]])
def test_consume_refuses_what_cannot_skip(run: Any, words: list[str]) -> None:
    """A reader, and the default type; nothing is created."""
    refused = run("consume", "orders", *words)
    assert (refused.status, refused.out) == (2, "")
    names = [row["subscription"] for row in run("subscriptions", "list", "-o", "json").json]
    assert names == ["plain"]


def test_create_and_update(run: Any) -> None:
    """The row of one created says it; a change has a dry run, and needs nobody attached."""
    created = run(
        "subscriptions", "create", "orders", "pack", "--subscription-type", "shared", "--on-open", "skip", "-o", "json"
    ).json  # fmt: skip
    assert not undeclared(created, create.CREATED)
    assert created["onOpen"] == "skip"
    tried = run(
        "subscriptions", "update", "orders", "pack", "--on-open", "block", "--dry-run", "-o", "json"
    ).json
    assert not undeclared(tried, update.UPDATED)
    assert (tried["changes"], tried["dryRun"]) == (["onOpen skip -> block"], True)
    done = run("subscriptions", "update", "orders", "pack", "--on-open", "block", "--reason", "in order")
    assert "Changed pack on orders: onOpen skip -> block." in done.out
    refused = run("subscriptions", "update", "orders", "plain", "--on-open", "skip", "-o", "json")
    assert (refused.status, refused.error["code"]) == (2, "invalid-value")


def test_lag_names_who_holds_the_keys(run: Any) -> None:
    """By transaction, its own messages and those behind them; the table says the same, and the next command."""
    consume(run)
    row = run("subscriptions", "lag", "orders", "pack", "-o", "json").json
    assert not undeclared(row, lag.LAG)
    assert (row["onOpen"], row["visible"], row["blocked"], row["uncommitted"], row["verdict"]) == (
        "skip", 0, 1, 1, "blocked"
    )  # fmt: skip
    assert row["heldBy"] == [{"txnId": "0:1", "uncommitted": 1, "blocked": 1}]
    assert row["blockedBy"] is None
    text = run("subscriptions", "lag", "orders").out
    assert "READ_COMMITTED, on-open skip" in text
    assert "pack: 1 of 1 blocked waits for its key behind transaction 0:1." in text
    assert "Next: txnctl transactions explain 0:1" in text


def test_stats_and_show(run: Any) -> None:
    """What each transaction holds back, where each holds back its own."""
    consume(run)
    assert not undeclared(run("subscriptions", "stats", "orders", "pack", "-o", "json").json, STATS)
    text = run("subscriptions", "stats", "orders", "pack").out
    assert "1   committed, waiting for their key" in text
    assert "held by      0:1: 1 uncommitted message, 1 committed message behind" in text
    assert "on open      skip" in run("subscriptions", "show", "orders", "pack").out
    assert "READ_COMMITTED, on-open skip" in run("topics", "stats", "orders").out


def test_a_transaction_that_is_not_the_first_frees_what_waits_for_it(run: Any, path: Path) -> None:
    """`explain` counts it, and does not send to the first one; `abort --dry-run` says the same number."""
    with Store.open(path) as store:
        producer, second = store.create_producer("orders"), store.begin_transaction()
        producer.send(b"open", key="m", txn=second)
        producer.send_batch([b"1", b"2"], keys=["m", "m"])
    consume(run)
    explained = run("transactions", "explain", str(second), "-o", "json").json
    (block,) = explained["blocks"]
    assert (block["place"], block["freesWhereSkipped"], block["unblocks"]["pack"]) == (2, 2, 2)
    assert (
        "ending this one frees only 2 where it is skipped" in run("transactions", "explain", str(second)).out
    )
    (effect,) = run("transactions", "abort", str(second), "--dry-run", "-o", "json").json["effects"]
    assert effect["unblocks"]["pack"]["visibleAfter"] == 2
    assert effect["unblocks"]["plain"]["visibleAfter"] == 0


def test_the_last_message_of_a_subscription(run: Any) -> None:
    """By its own visible set; its level is its own."""
    consume(run)
    row = run("topics", "last-message-id", "orders", "-s", "pack", "-o", "json").json
    assert not undeclared(row, last_message_id.LAST_MESSAGE_ID)
    assert (row["messageId"], row["subscription"]) == ("1:1:1", "pack")
    assert run("topics", "last-message-id", "orders", "-o", "json").json["messageId"] is None
    both = run("topics", "last-message-id", "orders", "-s", "pack", "--isolation-level", "read-committed")
    assert both.status == 2
