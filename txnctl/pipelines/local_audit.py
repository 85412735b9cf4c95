"""The audit job without Spark: the same rule and the same findings, in this process.

Neither PySpark nor PyArrow is imported. Memory grows with the accounts, not with the messages.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from storage import IsolationLevel
from storage.values.names import short_topic_name
from txnctl.pipelines import bank_data
from txnctl.pipelines.audit import LIST_MAX, AuditSources, Difference, Findings, running_days
from txnctl.pipelines.hellers import format_hellers, parse_hellers
from txnctl.pipelines.local_settle import messages_of
from txnctl.pipelines.request import KEYED, PARTNER_PREFIX, RequestForm, is_customer, legs_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storage import Store
    from txnctl.spark.source.partition import Partition

_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()

Balances = dict[bytes | None, int | None]
"""Hundredths by account, UTF-8; None for a balance that is no amount."""


def audit_locally(
    store: Store, sources: AuditSources, *, form: RequestForm = KEYED, with_days: bool = False
) -> Findings:
    """Compare the balances of all sources.

    Args:
        sources: options as for Spark; `data` is a plain file.

    Raises:
        TopicNotFound, TableNotFound
        BadInput: the data lack a column.
    """
    by_topic = _requests(store, _ranges(store, sources.topic), form)
    in_table = _balances_of_table(store, sources.table["table"])
    lines = None if sources.data is None else list(bank_data.read_lines(sources.data))
    in_data = None if lines is None else bank_data.last_balances(lines)
    accounts = sorted(by_topic.balances.keys() | in_table.keys() | (in_data or {}).keys(), key=_order)
    differing = [
        account for account in accounts if not _agrees(account, by_topic.balances, in_table, in_data)
    ]
    days = []
    if with_days:
        days = running_days(by_topic.days, None if lines is None else bank_data.changes_by_day(lines))
    return Findings(
        len(accounts),
        len(differing),
        by_topic.skipped,
        sum(by_topic.balances.values()),
        sum(balance for balance in in_table.values() if balance is not None),
        [
            Difference(
                "" if account is None else account.decode(errors="replace"),
                _text(by_topic.balances, account),
                _text(in_table, account),
                None if in_data is None else _text(in_data, account),
            )
            for account in differing[:LIST_MAX]
        ],
        days,
    )


def messages_in(store: Store, topics: Sequence[str]) -> int:
    """Count the messages of topics (full names) that an audit reads."""
    return sum(
        store.reports.count_messages_between(
            short_topic_name(extent.topic), extent.before, extent.max_read, IsolationLevel.READ_COMMITTED
        )
        for extent in store.reports.topic_extents([short_topic_name(name) for name in topics])
    )


class _Requests(NamedTuple):
    balances: dict[bytes | None, int]
    days: Mapping[str, int]
    skipped: int


def _ranges(store: Store, options: Mapping[str, str]) -> Sequence[Partition]:
    from txnctl.spark.options import topic_read
    from txnctl.spark.source import topic_plan
    from txnctl.spark.source.local_store import LocalStore

    read = topic_read(options)
    extents = topic_plan.select_extents(
        store.reports.topic_extents([short_topic_name(name) for name in read.topics.names]), read.topics
    )
    return topic_plan.ranges(LocalStore.of_open_store(store), extents, read, store.reports.position_at, 1)


def _requests(store: Store, ranges: Sequence[Partition], form: RequestForm) -> _Requests:
    """Add up the requests by account, and those of customers by day."""
    balances: dict[str, int] = {}
    days: Counter[int] = Counter()
    skipped = 0
    for _, key, value, time_ms in messages_of(store, ranges):
        legs = legs_of(key, value, form)
        if legs is None:
            skipped += 1
            continue
        for account, hellers in legs:
            balances[account] = balances.get(account, 0) + hellers
            if is_customer(account):
                days[time_ms // _DAY_MS] += hellers
    return _Requests(
        {account.encode(): hellers for account, hellers in balances.items()},
        {_day(number): hellers for number, hellers in days.items()},
        skipped,
    )


def _day(number: int) -> str:
    """Return the day, counted from 1970, in ISO 8601; a day outside the years 1 to 9999 as the nearest one in them."""
    return date.fromordinal(max(1, min(_EPOCH + number, date.max.toordinal()))).isoformat()


def _balances_of_table(store: Store, table: str) -> Balances:
    return {row.key: _hellers(row.value) for row in store.table(table).scan()}


def _hellers(value: bytes | None) -> int | None:
    try:
        return parse_hellers((value or b"").decode())
    except ValueError:
        return None


def _agrees(
    account: bytes | None, in_topic: Mapping[bytes | None, int], in_table: Balances, in_data: Balances | None
) -> bool:
    """Report whether all sources have the same amount; settlement accounts of partner banks are not in the data."""
    balance = in_topic.get(account)
    if balance is None or in_table.get(account) != balance:
        return False
    if in_data is None or (account or b"").startswith(PARTNER_PREFIX.encode()):
        return True
    return in_data.get(account) == balance


def _text(balances: Mapping[bytes | None, int | None], account: bytes | None) -> str | None:
    hellers = balances.get(account)
    return None if hellers is None else format_hellers(hellers)


def _order(account: bytes | None) -> tuple[bool, bytes]:
    return account is not None, account or b""
