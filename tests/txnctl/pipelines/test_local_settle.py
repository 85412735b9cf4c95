"""Settling without Spark: `txnctl/pipelines/local_settle.py`. tests/txnctl/pipelines/test_engines.py compares."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage import IsolationLevel, MessageId, Store
from storage.errors import BadInput, InvalidValue, TableNotFound
from storage.process.clock import SYSTEM_CLOCK
from storage.process.identity import this_process
from storage.reports import extents
from tests.model_runs import examples
from tests.txnctl.pipelines.engine_steps import (
    FORMS,
    TOPIC,
    Sent,
    backlogs,
    copied,
    left,
    options,
    send,
    settle_locally,
)
from tests.txnctl.pipelines.killed_settlement import MESSAGES, POINTS
from txnctl.pipelines.conservation import sums_by_version
from txnctl.pipelines.local_settle import backlog, parse_options, settle_backlog
from txnctl.pipelines.request import RequestForm
from txnctl.pipelines.settler import BatchSettler, SettleOptions, settled_through

ROOT = Path(__file__).parents[3]


@pytest.fixture
def bank(store: Store) -> Store:
    """A topic and a table, both empty."""
    store.create_topic("requests")
    store.create_table("accounts")
    return store


def request(account: str, amount: str) -> tuple[bytes | None, bytes | None]:
    return account.encode(), f'{{"delta": "{amount}"}}'.encode()


def balances(store: Store) -> dict[str, str]:
    return {row.key.decode(): row.value.decode() for row in store.table("accounts").scan()}


def test_the_hold_names_this_program_and_no_stream_of_spark(
    bank: Store, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator who is refused sees which program to end."""
    programs: list[str] = []
    settle = BatchSettler.settle

    def note_holder(settler: BatchSettler, *arguments: Any) -> None:
        (consumer,) = bank.reports.subscription_stats("requests", "settle").row.stats.consumers
        programs.append(consumer.owner.program)
        settle(settler, *arguments)

    monkeypatch.setattr(BatchSettler, "settle", note_holder)
    send(bank, [Sent([request("B1", "5")], "alone")])
    settle_locally(path, SettleOptions(), 10)
    assert programs == [this_process(SYSTEM_CLOCK).program]


def test_open_transactions_stop_it_and_aborted_ones_never_get_in(bank: Store, path: str) -> None:
    """A second run settles what came since, and counts that alone."""
    send(bank, [Sent([request("B1", "500.00"), request("B2", "-20.5")], "alone")])
    txn = bank.begin_transaction(timeout=3600)
    with bank.create_producer("requests", connected=False) as producer:
        producer.send(b'{"delta": -100}', key="B1", txn=txn)
    send(bank, [Sent([request("B2", "0.50")], "alone"), Sent([request("B1", "7")], "abort")])
    assert settle_locally(path, SettleOptions(), 10).total.requests == 2
    assert balances(bank) == {"B1": "500.00", "B2": "-20.50"}
    bank.commit_transaction(txn)
    settler = settle_locally(path, SettleOptions(), 10)
    assert (settler.total.requests, settler.total.accounts, settler.batches) == (2, 2, 1)
    assert balances(bank) == {"B1": "400.00", "B2": "-20.00"}
    again = settle_locally(path, SettleOptions(), 10)
    assert (again.total.requests, again.batches) == (0, 0)
    assert again.total.through == settler.total.through


def test_a_lost_subscription_applies_nothing_twice(bank: Store, path: str) -> None:
    """The new one begins at the beginning; the note in the store decides."""
    send(bank, [Sent([request("B1", "1"), request("B1", "2")], "alone")])
    settle_locally(path, SettleOptions(), 1)
    bank.admin.subscriptions.delete_subscription("requests", "settle", force=True)
    send(bank, [Sent([request("B1", "4")], "alone")])
    assert settle_locally(path, SettleOptions(), 1).total.requests == 1
    assert balances(bank) == {"B1": "7.00"}


def test_what_is_no_request_ends_it_or_is_left_out(bank: Store, path: str) -> None:
    """It is named by its position, and nothing of its batch is applied."""
    send(bank, [Sent([request("B1", "1")], "alone"), Sent([request("B1", "1"), (None, b"")], "alone")])
    with pytest.raises(BadInput, match="message 1:1:1 is not a request: a request has a key") as found:
        settle_locally(path, SettleOptions(), 10)
    assert "--on-error skip" in (found.value.hint or "")
    assert balances(bank) == {}
    lenient = settle_locally(path, SettleOptions(skip=True), 10)
    assert (lenient.total.requests, lenient.total.skipped) == (2, 1)
    assert lenient.total.through == MessageId(1, 1, 1)


@pytest.mark.parametrize(
    ("stored", "amount", "says"),
    [
        (b"not money", "1", "the balance of account B1 in table accounts is no amount: b'not money'"),
        (b"\xff", "1", "is no amount"),
        (b"999999999999999.99", "0.01", "would be 1000000000000000.00, of more than 15 digits"),
    ],
)
def test_a_balance_that_cannot_be_added_to(
    bank: Store, path: str, stored: bytes, amount: str, says: str
) -> None:
    """It is named, and stays as it is; written, such a balance could never be read again."""
    bank.table("accounts").put(b"B1", stored)
    send(bank, [Sent([request("B1", amount)], "alone")])
    with pytest.raises(BadInput) as found:
        settle_locally(path, SettleOptions(), 10)
    assert says in found.value.message
    assert bank.table("accounts").get(b"B1") == stored
    assert settled_through(bank, TOPIC, "accounts") is None


def test_a_table_that_was_created_again(bank: Store, path: str) -> None:
    """It is refused, as its balances lack what the note says is in them."""
    send(bank, [Sent([request("B1", "1")], "alone")])
    settle_locally(path, SettleOptions(), 10)
    bank.admin.tables.delete_table("accounts")
    bank.create_table("accounts")
    with pytest.raises(TableNotFound, match="created again since topic requests was settled into it"):
        settle_locally(path, SettleOptions(), 10)


def test_a_subscription_of_another_level_is_refused(bank: Store, path: str) -> None:
    """As on Spark, and nothing is settled."""
    bank.admin.subscriptions.create_subscription(
        "requests", "settle", subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED
    )
    send(bank, [Sent([request("B1", "1")], "alone")])
    with pytest.raises(InvalidValue, match="is READ_UNCOMMITTED, and the stream reads READ_COMMITTED"):
        settle_locally(path, SettleOptions(), 10)
    assert balances(bank) == {}


def test_the_backlog_is_counted_without_a_trace(bank: Store, path: str) -> None:
    """Before the subscription is there, and behind its cursor."""
    parsed = parse_options(options(path, 2))
    assert backlog(parsed) == 0
    send(bank, [Sent([request("B1", "1")] * 3, "alone"), Sent([request("B1", "1")] * 2, "abort")])
    assert backlog(parsed) == 3
    assert [*bank.reports.list_subscriptions("requests")] == []
    settle_locally(path, SettleOptions(), 2)
    send(bank, [Sent([request("B1", "1")], "alone")])
    assert backlog(parsed) == 1


def test_no_batch_begins_after_the_time_is_up(bank: Store, path: str) -> None:
    """The next run goes on."""
    send(bank, [Sent([request("B1", "1")], "alone")] * 3)
    settler = BatchSettler(bank, TOPIC, "accounts")
    settle_backlog(settler, bank, parse_options(options(path, 1)), seconds=0.0)
    assert settler.batches == 0
    settle_backlog(settler, bank, parse_options(options(path, 1)), seconds=3600.0)
    assert settler.batches == 3


def test_a_long_transaction_is_cut_as_the_limit_says(
    bank: Store, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shorter one is not, however small the batches."""
    monkeypatch.setattr(extents, "TOGETHER_ENTRIES_MAX", 100)
    with bank.create_producer("requests", connected=False) as producer:
        short, long = (bank.begin_transaction(timeout=3600) for _ in range(2))
        for txn, between in ((short, 50), (long, 101)):
            producer.send(b'{"delta": "-5"}', key="B1", txn=txn)
            with bank.transaction() as other:
                for _ in range(between):
                    producer.send(b'{"delta": "0"}', key="B3", txn=other)
                    producer.flush()
            producer.send(b'{"delta": "5"}', key="B2", txn=txn)
            bank.commit_transaction(txn)
    settle_locally(path, SettleOptions(), 1)
    assert balances(bank) == {"B1": "-10.00", "B2": "10.00", "B3": "0.00"}
    assert len(sums_by_version(bank, "accounts").changes) == 2


@given(
    st.sampled_from(FORMS).flatmap(lambda form: st.tuples(st.just(form), backlogs(form, 12))),
    st.integers(1, 7),
)
@settings(max_examples=examples(16))
def test_batches_of_any_size_give_the_same_balances(
    drawn: tuple[RequestForm, list[Sent]], max_messages: int
) -> None:
    """And no transaction of the topic is cut: at each version of the table a whole number of them is applied."""
    form, sent = drawn
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "store")
        Store.create(str(place))
        with Store.open(str(place)) as store:
            store.create_topic("requests")
            store.create_table("accounts")
            send(store, sent)
        other = copied(place, "other")
        small = settle_locally(str(place), SettleOptions(form, skip=True), max_messages)
        large = settle_locally(other, SettleOptions(form, skip=True), 10_000)
        assert left(str(place)).balances == left(other).balances
        assert left(str(place)).cursor == left(other).cursor
        assert (small.total.requests, small.total.skipped, small.total.through) == (
            large.total.requests, large.total.skipped, large.total.through,
        )  # fmt: skip
        assert large.batches <= 1
        if form.debit is not None:
            with Store.open(str(place)) as store:
                assert sums_by_version(store, "accounts").changes == []


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_settlement_that_is_killed_everywhere_counts_each_request_once(
    bank: Store, path: str, point: str
) -> None:
    """Killed at the first time that a point is reached, at the second, and so on, until a run comes to its end."""
    transfers = [
        Sent(
            [request(f"B{number % 4}", f"-{number}"), request(f"B{(number + 1) % 4}", f"{number}")], "commit"
        )
        for number in range(1, 2 * MESSAGES + 1)
    ]
    send(bank, transfers)
    for count in range(1, 100):
        words = [sys.executable, "-m", "tests.txnctl.pipelines.killed_settlement", path, point, str(count)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        if done.returncode == 0:
            break
    assert count > 2
    expected = dict.fromkeys(range(4), 0)
    for number in range(1, 2 * MESSAGES + 1):
        expected[number % 4] -= number
        expected[(number + 1) % 4] += number
    assert balances(bank) == {f"B{account}": f"{crowns}.00" for account, crowns in expected.items()}
    assert sums_by_version(bank, "accounts").changes == []
