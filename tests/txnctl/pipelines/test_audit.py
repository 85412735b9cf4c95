"""Balances recomputed, held against the table and the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage import Store
from txnctl.demo.generator import generate
from txnctl.demo.request import is_settlement, requests_of
from txnctl.demo.transaction import COLUMNS, BankTransaction
from txnctl.pipelines import audit
from txnctl.pipelines.audit import Day
from txnctl.pipelines.hellers import format_hellers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs_program("java")

MONEY = ("amount", "balance", "delta")


def as_csv(lines: list[BankTransaction], place: Path) -> Path:
    """The bank's lines as the file that they would come in."""
    rows = [
        [
            format_hellers(getattr(line, name)) if name in MONEY else str(getattr(line, name))
            for name in COLUMNS
        ]
        for line in lines
    ]
    place.write_text("\n".join(",".join(row) for row in [list(COLUMNS), *rows]) + "\n")
    return place


def test_a_bank_that_agrees_and_one_that_does_not(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """All accounts of a generated bank agree; one wrong balance, one missing and one too many are found and named."""
    lines = list(generate(6, 7))
    requests = [request for line in lines for request in requests_of(line)]
    store.create_topic("requests")
    with store.create_producer("requests") as producer:
        producer.send_batch(
            [each.value for each in requests],
            keys=[each.key for each in requests],
            event_times=[each.event_time for each in requests],
        )
        producer.send(b"no request", key="9")
        with store.transaction() as txn:
            producer.send(b'{"delta": "1.00"}', key="1", txn=txn)
            txn.abort("never happened")
    store.create_table("accounts")
    accounts = store.table("accounts")
    totals: dict[str, int] = {}
    for each in requests:
        totals[each.key] = totals.get(each.key, 0) + each.delta
    for key, total in totals.items():
        accounts.put(key.encode(), format_hellers(total).encode())
    data = str(as_csv(lines, tmp_path / "bank.csv"))
    topic, table = {"path": path, "topic": "requests"}, {"path": path, "table": "accounts"}

    found = audit.audit_balances(spark, audit.AuditSources(topic, table, data), with_days=True)
    assert (found.accounts, found.differing, found.skipped) == (len(totals), 0, 1)
    customers = sum(total for key, total in totals.items() if not is_settlement(key))
    assert found.days[-1] == Day(lines[-1].date, customers, customers)
    assert all(day.topic == day.data for day in found.days)

    (tmp_path / "data" / "more").mkdir(parents=True)
    as_csv(lines[:50], tmp_path / "data" / "1.csv")
    as_csv(lines[50:], tmp_path / "data" / "more" / "2.csv")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    sources = audit.AuditSources(topic, table, str(tmp_path / "data"))
    again = audit.audit_balances(spark, sources, with_days=True)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (again.differing, again.days) == (0, found.days)

    wrong, missing, *_ = sorted(key for key in totals if not is_settlement(key))
    accounts.put(wrong.encode(), b"0.01")
    accounts.delete(missing.encode())
    accounts.put(b"zz", b"not money")
    found = audit.audit_balances(spark, audit.AuditSources(topic, table, data))
    assert found.differing == 3
    assert [each.account for each in found.differences] == [wrong, missing, "zz"]
    first = found.differences[0]
    assert (first.in_topic, first.in_table, first.in_data) == (
        format_hellers(totals[wrong]), "0.01", format_hellers(totals[wrong]),
    )  # fmt: skip
    assert found.differences[1].in_table is None
