"""Requests -> balances, exactly once: whatever comes again, from whom, and after what."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage import MessageId, Store
from storage.errors import BadInput, InvalidValue, TableNotFound
from txnctl.pipelines import settle
from txnctl.pipelines.conservation import Conservation, sums_by_version
from txnctl.pipelines.request import RequestForm
from txnctl.pipelines.settle import Settler, settled_through
from txnctl.spark.sink.progress import SINKS, make_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.needs_program("java")

TOPIC = "persistent://public/default/requests"


@pytest.fixture
def bank(store: Store) -> Store:
    """A topic and a table, both empty."""
    store.create_topic("requests")
    store.create_table("accounts")
    return store


def send(store: Store, *requests: tuple[str | None, str], txn: object = None) -> None:
    with store.create_producer("requests", connected=False) as producer:
        values = [text.encode() for _, text in requests]
        producer.send_batch(values, keys=[key for key, _ in requests], txn=txn)  # type: ignore[arg-type]


def delta(amount: str) -> str:
    return f'{{"delta": "{amount}"}}'


def balances(store: Store) -> dict[str, str]:
    return {row.key.decode(): row.value.decode() for row in store.table("accounts").scan()}


def options(path: str) -> dict[str, str]:
    return {"path": path, "topic": "requests", "subscription": "settle", "startingPosition": "earliest"}


def messages(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("txnctl").options(path=path, topic="requests").load()


def settle_once(spark: SparkSession, settler: Settler, path: str, checkpoint: Path) -> None:
    settle.start_settling(spark, settler, options(path), str(checkpoint)).wait()


def test_committed_requests_are_applied_and_open_ones_wait(
    spark: SparkSession, bank: Store, path: str, tmp_path: Path
) -> None:
    """Behind an open transaction nothing is applied; after its commit all is; an aborted one never."""
    send(bank, ("B1", delta("500.00")), ("B2", delta("-20.5")))
    settler = Settler(bank, TOPIC, "accounts")
    settle_once(spark, settler, path, tmp_path / "c1")
    assert balances(bank) == {"B1": "500.00", "B2": "-20.50"}
    txn = bank.transaction()
    send(bank, ("B1", delta("-100.00")), txn=txn)
    txn.flush()
    send(bank, ("B2", delta("0.50")))
    settle_once(spark, settler, path, tmp_path / "c1")
    assert balances(bank) == {"B1": "500.00", "B2": "-20.50"}
    txn.commit()
    with bank.transaction() as other:
        send(bank, ("B1", delta("-400.00")), txn=other)
        other.abort("recalled")
    settle_once(spark, settler, path, tmp_path / "c1")
    assert balances(bank) == {"B1": "400.00", "B2": "-20.00"}
    assert settler.total.requests == 4


def test_a_lost_checkpoint_applies_nothing_twice(
    spark: SparkSession, bank: Store, path: str, tmp_path: Path
) -> None:
    """A new query reads from the cursor, which lags, and even from the beginning: the note in the store decides."""
    send(bank, ("B1", delta("1")), ("B1", delta("2")))
    settle_once(spark, Settler(bank, TOPIC, "accounts"), path, tmp_path / "c1")
    bank.admin.subscriptions.delete_subscription("requests", "settle", force=True)
    send(bank, ("B1", delta("4")))
    again = Settler(bank, TOPIC, "accounts")
    settle_once(spark, again, path, tmp_path / "c2")
    assert balances(bank) == {"B1": "7.00"}
    assert again.total.requests == 1


def test_a_batch_that_comes_again_changes_nothing(spark: SparkSession, bank: Store, path: str) -> None:
    """From the same driver, from one that was taken for dead, and where it overlaps what is new."""
    send(bank, ("B1", delta("1")))
    old = messages(spark, path)
    first, second = Settler(bank, TOPIC, "accounts"), Settler(bank, TOPIC, "accounts")
    first.settle_batch(old, 0)
    first.settle_batch(old, 0)
    second.settle_batch(old, 0)
    send(bank, ("B1", delta("2")), ("B2", delta("3")))
    second.settle_batch(messages(spark, path), 1)
    first.settle_batch(messages(spark, path), 1)
    assert balances(bank) == {"B1": "3.00", "B2": "3.00"}
    assert (first.total.requests, second.total.requests) == (1, 2)
    assert first.settled_through() == MessageId(1, 1, 1)


def test_two_drivers_at_once_apply_a_batch_once(spark: SparkSession, bank: Store, path: str) -> None:
    """The one that loses looks again and finds nothing to do."""
    send(bank, ("B1", delta("1")))
    rival = Settler(bank, TOPIC, "accounts")

    class Overtaken(Settler):
        """Whose rival settles between its look at the note and its transaction."""

        overtaken = False

        def _apply(self, *arguments: object) -> settle.Settlement:
            if not self.overtaken:
                self.overtaken = True
                rival.settle_batch(messages(spark, path), 0)
            return super()._apply(*arguments)  # type: ignore[arg-type]

    slow = Overtaken(bank, TOPIC, "accounts")
    slow.settle_batch(messages(spark, path), 0)
    assert balances(bank) == {"B1": "1.00"}
    assert (rival.total.requests, slow.total.requests) == (1, 0)


def test_a_table_that_was_created_again_is_not_taken_for_the_settled_one(bank: Store) -> None:
    """Its balances would lack all that the note says is in them. The error says how to begin anew, and that works."""
    send(bank, ("B1", delta("1")))
    note = {"through": "1:0", "tableId": bank.table("accounts").table_id}
    make_table(bank)
    bank.table(SINKS).put(f"settle {TOPIC} accounts".encode(), json.dumps(note).encode())
    assert Settler(bank, TOPIC, "accounts").settled_through() == MessageId(1, 0)
    bank.admin.tables.delete_table("accounts")
    with pytest.raises(TableNotFound):
        settled_through(bank, TOPIC, "accounts")
    bank.create_table("accounts")
    with pytest.raises(
        TableNotFound, match="created again since topic requests was settled into it"
    ) as found:
        Settler(bank, TOPIC, "accounts")
    key = re.findall(r"txnctl tables rm txnctl-sinks '(.+)'", found.value.hint or "")[0]
    bank.table(SINKS).delete(key.encode())
    assert Settler(bank, TOPIC, "accounts").settled_through() is None


@pytest.mark.parametrize(
    "bad",
    [
        ("B1", "{}"),
        ("B1", "no JSON"),
        ("B1", delta("1.005")),
        ("B1", delta("")),
        (None, delta("1")),
        ("B1", "[]"),
    ],
    ids=str,
)
def test_what_is_no_request_ends_it_or_is_left_out(
    spark: SparkSession, bank: Store, path: str, bad: tuple[str | None, str]
) -> None:
    """It is named by its position, and nothing of its batch is applied."""
    send(bank, ("B1", delta("1")))
    send(bank, bad)
    with pytest.raises(BadInput, match="message 1:1 is not a request"):
        Settler(bank, TOPIC, "accounts").settle_batch(messages(spark, path), 0)
    assert balances(bank) == {}
    lenient = Settler(bank, TOPIC, "accounts", settle.SettleOptions(skip=True))
    lenient.settle_batch(messages(spark, path), 0)
    assert balances(bank) == {"B1": "1.00"}
    assert (lenient.total.requests, lenient.total.skipped) == (1, 1)


def test_the_error_of_a_streaming_batch_arrives_as_it_was_raised(
    spark: SparkSession, bank: Store, path: str, tmp_path: Path
) -> None:
    """Not as the text that the JVM makes of it: the hint is there."""
    send(bank, ("B1", "no request"))
    with pytest.raises(BadInput, match="message 1:0 is not a request") as caught:
        settle_once(spark, Settler(bank, TOPIC, "accounts"), path, tmp_path / "c")
    assert "--on-error skip" in (caught.value.hint or "")


def transfer(debit: str, credit: str, amount: str) -> str:
    return json.dumps({"from": debit, "to": credit, "amount": amount})


@pytest.mark.parametrize(
    ("form", "values", "bad"),
    [
        (
            RequestForm("amount", debit="from", credit="to"),
            [transfer("B1", "B2", "1.50"), transfer("B2", "B3", "-2")],
            [
                transfer("B1", "B2", "x"),
                '{"from": "B1", "amount": "1"}',
                "7",
                '{"to": "B1", "from": null, "amount": 1}',
            ],
        ),
        (
            RequestForm("sum", legs="legs"),
            [
                '{"legs": [{"account": "B1", "sum": "-1.50"}, {"account": "B2", "sum": 1.50}]}',
                '{"legs": [{"account": "B2", "sum": 2}, {"account": "B3", "sum": -2.0, "text": "x"}]}',
            ],
            [
                '{"legs": [{"account": "B1", "sum": "1"}, {"account": "B2"}]}',
                '{"legs": []}',
                '{"legs": {"account": "B1", "sum": "1"}}',
                '{"legs": [{"account": "B1", "sum": "1"}, 7]}',
                "{}",
            ],
        ),
    ],
)
def test_all_legs_of_a_posting_apply_or_none(
    spark: SparkSession, bank: Store, path: str, form: RequestForm, values: list[str], bad: list[str]
) -> None:
    """From one account to another, or a list; a posting with one bad leg is no request, and no leg of it applies."""
    send(bank, *[(None, value) for value in values])
    settler = Settler(bank, TOPIC, "accounts", settle.SettleOptions(form))
    settler.settle_batch(messages(spark, path), 0)
    assert balances(bank) == {"B1": "-1.50", "B2": "3.50", "B3": "-2.00"}
    assert (settler.total.requests, settler.total.accounts) == (2, 3)
    for value in bad:
        send(bank, (None, value))
    with pytest.raises(BadInput, match=re.escape(form.wanted)):
        settler.settle_batch(messages(spark, path), 1)
    lenient = Settler(bank, TOPIC, "accounts", settle.SettleOptions(form, skip=True))
    lenient.settle_batch(messages(spark, path), 1)
    assert (lenient.total.requests, lenient.total.skipped) == (0, len(bad))
    assert balances(bank) == {"B1": "-1.50", "B2": "3.50", "B3": "-2.00"}


def test_the_two_messages_of_a_transfer_apply_together(
    spark: SparkSession, bank: Store, path: str, tmp_path: Path
) -> None:
    """However small the micro-batches: the sum of all balances is the same at every version of the table."""
    for number in range(4):
        with bank.transaction() as txn:
            send(bank, (f"B{number}", delta("-10")), txn=txn)
            txn.flush()
            send(bank, ("C1", delta("0")))
            send(bank, (f"B{number + 1}", delta("10")), txn=txn)
    small = {**options(path), "maxMessagesPerTrigger": "1"}
    settler = Settler(bank, TOPIC, "accounts")
    settle.start_settling(spark, settler, small, str(tmp_path / "c1")).wait()
    assert balances(bank) == {
        "B0": "-10.00",
        "B1": "0.00",
        "B2": "0.00",
        "B3": "0.00",
        "B4": "10.00",
        "C1": "0.00",
    }
    assert settler.batches > 1
    found = sums_by_version(bank, "accounts")
    assert found == Conservation(settler.batches, [])


def test_a_cut_transfer_shows_in_the_versions(bank: Store) -> None:
    """At the end the sum is right again."""
    accounts = bank.table("accounts")
    accounts.put(b"B1", b"-196.24")
    accounts.put(b"B2", b"196.24")
    first, second = sums_by_version(bank, "accounts").changes
    assert (first.before, first.after, second.before, second.after) == (0, -19624, -19624, 0)
    assert first.version < second.version


@pytest.mark.parametrize(
    "given", [{"debit": "a"}, {"credit": "a"}, {"debit": "a", "credit": "b", "legs": "c"}]
)
def test_forms_that_say_two_things(given: dict[str, str]) -> None:
    """Or half of one."""
    with pytest.raises(InvalidValue):
        RequestForm(**given)
