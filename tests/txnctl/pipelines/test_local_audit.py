"""Auditing without Spark: `txnctl/pipelines/local_audit.py`. tests/txnctl/pipelines/test_engines.py compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from storage.errors import BadInput, TopicNotFound
from tests.txnctl.pipelines.engine_steps import Sent, send
from tests.txnctl.pipelines.test_audit import as_csv
from txnctl.demo.generator import generate
from txnctl.demo.request import is_settlement, requests_of
from txnctl.pipelines import bank_data
from txnctl.pipelines.audit import AuditSources, Day, Difference
from txnctl.pipelines.hellers import format_hellers
from txnctl.pipelines.local_audit import audit_locally, messages_in


def sources(path: str, data: str | None = None, topics: str = "requests") -> AuditSources:
    return AuditSources({"path": path, "topics": topics}, {"path": path, "table": "accounts"}, data)


@pytest.fixture
def bank(store: Store) -> Store:
    """A topic and a table, both empty."""
    store.create_topic("requests")
    store.create_table("accounts")
    return store


def test_a_bank_that_agrees_and_one_that_does_not(bank: Store, path: str, tmp_path: Path) -> None:
    """All accounts of a generated bank agree; one wrong balance, one missing and two too many are found and named."""
    lines = list(generate(6, 7))
    requests = [request for line in lines for request in requests_of(line)]
    with bank.create_producer("requests") as producer:
        producer.send_batch(
            [each.value for each in requests],
            keys=[each.key for each in requests],
            event_times=[each.event_time for each in requests],
        )
    send(bank, [Sent([(b"9", b"no request")], "alone"), Sent([(b"1", b'{"delta": "1.00"}')], "abort")])
    accounts = bank.table("accounts")
    totals: dict[str, int] = {}
    for each in requests:
        totals[each.key] = totals.get(each.key, 0) + each.delta
    for key, total in totals.items():
        accounts.put(key.encode(), format_hellers(total).encode())
    data = str(as_csv(lines, tmp_path / "bank.csv"))
    found = audit_locally(bank, sources(path, data), with_days=True)
    assert (found.accounts, found.differing, found.skipped) == (len(totals), 0, 1)
    assert found.sum_in_topic == found.sum_in_table == sum(totals.values())
    customers = sum(total for key, total in totals.items() if not is_settlement(key))
    assert found.days[-1] == Day(lines[-1].date, customers, customers)
    assert all(day.topic == day.data for day in found.days)
    wrong, missing, *_ = sorted(key for key in totals if not is_settlement(key))
    accounts.put(wrong.encode(), b"0.01")
    accounts.delete(missing.encode())
    accounts.put(b"zz", b"not money")
    accounts.put(b"\xff", b"1")
    found = audit_locally(bank, sources(path, data))
    money = {key: format_hellers(totals[key]) for key in (wrong, missing)}
    assert found.differences == [
        Difference(wrong, money[wrong], "0.01", money[wrong]),
        Difference(missing, money[missing], None, money[missing]),
        Difference("zz", None, None, None),
        Difference("\ufffd", None, "1.00", None),
    ]
    assert found.differing == 4


def test_several_topics_are_added_up(bank: Store, path: str) -> None:
    """Each is read to its own end."""
    bank.create_topic("more")
    for topic in ("requests", "more"):
        with bank.create_producer(topic) as producer:
            producer.send(b'{"delta": 2}', key="B1")
    found = audit_locally(bank, sources(path, topics="requests,more"))
    assert found.sum_in_topic == 400
    assert (
        messages_in(bank, ["persistent://public/default/requests", "persistent://public/default/more"]) == 2
    )
    with pytest.raises(TopicNotFound):
        audit_locally(bank, sources(path, topics="requests,nowhere"))


def test_bank_data_with_gaps(tmp_path: Path) -> None:
    """Of each account the line of the highest number counts; a line without one never does."""
    place = tmp_path / "bank.csv"
    place.write_text(
        'extra,ACCOUNT_ID,acct_seq,date,balance\n\n"a,""b",7,2,2024-01-02,5.00\n,7,10,2024-01-03,6\n,7,x,,9\n,8,1,,\n'
    )
    lines = list(bank_data.read_lines(str(place)))
    assert bank_data.last_balances(lines) == {b"7": 600, b"8": None}
    assert bank_data.changes_by_day(lines) == {"": 900, "2024-01-02": -400, "2024-01-03": 100}
    place.write_text("account_id,acct_seq,date\n")
    with pytest.raises(BadInput, match="has no column balance"):
        bank_data.check_columns(str(place))
    place.write_text("")
    with pytest.raises(BadInput, match="is empty, without even a header"):
        bank_data.check_columns(str(place))
    place.write_text("account_id,acct_seq,date,balance\n7,1,2024-01-02,5.00\n7,2\n")
    with pytest.raises(BadInput, match=r"bank\.csv: line 3: 2 columns, where the header has 4"):
        list(bank_data.read_lines(str(place)))
