"""Transactions: list, show, wait."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from storage.actions import Action, Hint
from storage.disk.schema import PART_TABLE, PART_TOPIC, TXN_DEADLINES, TXNS
from storage.disk.view import ReadView
from storage.engine import Engine
from storage.errors import WaitTimeout, WriterBusy
from storage.json_form import Flat
from storage.limits import DEATH_CHECK_S
from storage.process.clock import nanoseconds
from storage.process.identity import ProcessIdentity
from storage.reports.transaction_filter import TransactionFilter
from storage.table import conflict, report
from storage.table.conflict import Doom
from storage.topic import catalogue as topics
from storage.txn import reaper, record as records
from storage.txn.coordinator import touches
from storage.txn.owner_state import GONE, users_of
from storage.txn.participant import PartDone, SubscriptionWork, TopicWork
from storage.txn.record import TransactionRecord
from storage.values.arguments import check_time_ms
from storage.values.named_tuple import NamedTuple
from storage.values.names import short_topic_name
from storage.values.position import Position
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason, TransactionState

DELETED = "(deleted)"
"""The name shown for a deleted topic."""

KEYS_LISTED = 100
"""Keys of one table that are listed of one transaction."""


class TransactionRow(NamedTuple):
    """One transaction of a list."""

    as_of_at_ms: int
    txn_id: TxnID
    state: TransactionState
    version: int
    labels: dict[str, str]
    owner: ProcessIdentity
    owner_state: str | None
    last_user: ProcessIdentity
    last_user_state: str | None
    orphaned: bool | None
    attached: bool
    begin_at_ms: int
    age_ms: int
    idle_ms: int | None
    timeout_ms: int
    deadline_in_ms: int | None
    overdue: bool | None
    topics: list[str]
    tables: list[str]
    isolation: str
    priority: str
    messages: int
    acknowledgements: int
    ended_at_ms: int | None
    reason: str | None
    reason_text: str | None
    ended_by: ProcessIdentity | None


class ProcessDetails(NamedTuple):
    """A process identity field by field."""

    host: str
    boot_id: str
    pid: int
    user: str
    program: str


class TopicPartRow(NamedTuple):
    """Messages of a transaction on a topic; `positions` are ranges as text."""

    kind: str
    messages: int
    bytes: int
    first_position: Position
    last_position: Position
    positions: list[str]
    topic: str
    name: str


class SubscriptionPartRow(NamedTuple):
    """Acknowledgements of a transaction on a subscription."""

    kind: str
    subscription: str
    messages: int
    cumulative: Position | None
    positions: list[Position]
    topic: str
    name: str


class TablePartRow(NamedTuple):
    """Keys of a transaction in a table."""

    kind: str
    keys: int
    key_list: list[bytes]
    finalized: bool
    table: str


PartRow = TopicPartRow | SubscriptionPartRow | TablePartRow


class TransactionDetails(NamedTuple):
    """One transaction with its parts."""

    row: Flat[TransactionRow]
    check: str | None
    timestamp_ns: int
    conflict: Doom | None
    owner_details: ProcessDetails
    last_used_at_ms: int
    parts: list[PartRow]


def list_transactions(
    engine: Engine, *, ended: bool, chosen: TransactionFilter, limit: int | None = None
) -> list[TransactionRow]:
    """Open transactions, oldest first; or ended transactions, newest first."""
    with engine.connection.view() as view:
        names, in_view = topic_names(view), chosen.in_view(view)
        txns = _ended_txns(view) if ended else iter(open_txns(view))
        matching = filter(in_view.matches, (records.get(view, txn) for txn in txns))
        return [row_of(view, engine, record, names) for record in islice(matching, limit)]


def open_txns(view: ReadView) -> list[int]:
    """Open transactions by age, the oldest first: an attached transaction may get its number long after its begin."""
    numbers = [int.from_bytes(key[8:], "big") for key in view.keys(TXN_DEADLINES)]
    return sorted(numbers, key=lambda txn: (records.get(view, txn).begun_ms, txn))


def _ended_txns(view: ReadView) -> Iterator[int]:
    """Committed and aborted transactions with a record, the one begun last first."""
    for key, _ in view.scan_back(TXNS, b"", b"\xff" * 9):
        txn = int.from_bytes(key, "big")
        if records.state_of(view, txn) is not TransactionState.OPEN:
            yield txn


def list_ended(
    engine: Engine,
    *,
    chosen: TransactionFilter,
    reason: AbortReason | None,
    since_ms: int | None,
    limit: int | None,
) -> list[TransactionRow]:
    """Ended transactions, the one that ended last first.

    Args:
        reason: only transactions aborted for this reason.
        since_ms: only transactions that ended then or later.
        limit: the number of rows, the newest.
    """
    if since_ms is not None:
        check_time_ms("the time since when", since_ms)
    with engine.connection.view() as view:
        names, in_view = topic_names(view), chosen.in_view(view)
        matching = [
            record
            for record in (records.get(view, txn) for txn in _ended_txns(view))
            if (reason is None or record.reason is reason)
            and (since_ms is None or (record.ended_ms or 0) >= since_ms)
            and in_view.matches(record)
        ]
        matching.sort(key=lambda record: record.ended_timestamp or 0, reverse=True)
        return [row_of(view, engine, record, names) for record in matching[:limit]]


def last_ended(view: ReadView, engine: Engine, limit: int) -> list[TransactionRow]:
    """The ended transactions begun last, in a view."""
    names = topic_names(view)
    return [row_of(view, engine, records.get(view, txn), names) for txn in islice(_ended_txns(view), limit)]


def topic_names(view: ReadView) -> dict[int, str]:
    """Full names of all topics by id."""
    return {topic.topic_id: topic.full_name for topic in topics.every(view)}


def row_of(
    view: ReadView, engine: Engine, record: TransactionRecord, names: dict[int, str]
) -> TransactionRow:
    """A transaction as a row."""
    now_ms, is_open = view.clock.wall_ms(), record.state is TransactionState.OPEN
    owner, state, user, user_state = (
        users_of(view, engine.locks, record) if is_open else (record.owner, None, record.user, None)
    )
    return TransactionRow(
        as_of_at_ms=now_ms, txn_id=record.id, state=record.state, version=record.version,
        labels=record.labels, owner=owner, owner_state=state, last_user=user, last_user_state=user_state,
        orphaned=state in GONE if is_open else None, attached=bool(record.lease),
        begin_at_ms=record.begun_ms, age_ms=record.age_ms(now_ms),
        idle_ms=record.idle_ms(view.now_ns) if is_open else None, timeout_ms=record.timeout_ms,
        deadline_in_ms=record.left_ms(view.now_ns) if is_open else None,
        overdue=record.is_overdue(view.now_ns) if is_open else None,
        topics=[names.get(topic_id, DELETED) for topic_id in touches(view, record.txn_id, PART_TOPIC)],
        tables=_table_names(view, record), isolation=record.isolation, priority=record.priority,
        messages=record.messages, acknowledgements=record.acknowledgements,
        ended_at_ms=record.ended_ms, reason=record.reason_code, reason_text=record.reason_text,
        ended_by=record.ended_by,
    )  # fmt: skip


def _table_names(view: ReadView, record: TransactionRecord) -> list[str]:
    """The tables that a transaction wrote."""
    written = {table_id for table_id, _, _ in record.written}
    written.update(touches(view, record.txn_id, PART_TABLE))
    if not written:
        return []
    names = report.table_names(view)
    return sorted(names.get(table_id, f"(deleted, {table_id})") for table_id in written)


def show_transaction(engine: Engine, txn: int) -> TransactionDetails:
    """One transaction with its parts."""
    with engine.connection.view() as view:
        return details_of(view, engine, records.get(view, txn))


def details_of(view: ReadView, engine: Engine, record: TransactionRecord) -> TransactionDetails:
    """A transaction with its parts, in a view."""
    names, owner = topic_names(view), record.owner
    return TransactionDetails(
        row=row_of(view, engine, record, names),
        check=record.check, timestamp_ns=record.timestamp, conflict=conflict.doom_of(record),
        owner_details=ProcessDetails(owner.host, owner.boot_id.hex(), owner.pid, owner.user, owner.program),
        last_used_at_ms=record.used_ms,
        parts=_part_rows(view, record, engine.coordinator.parts(view, record.txn_id), names),
    )  # fmt: skip


def _part_rows(
    view: ReadView, record: TransactionRecord, parts: list[PartDone], names: dict[int, str]
) -> list[PartRow]:
    """The parts with names, and with the keys that a commit wrote without intents."""
    table_names, rows, in_tables = report.table_names(view), list[PartRow](), dict[int, int]()
    for part in parts:
        if isinstance(part, TopicWork):
            topic = names.get(part.topic_id, DELETED)
            rows.append(TopicPartRow(
                "topic", part.messages, part.bytes, part.first_position, part.last_position,
                part.positions, topic, short_topic_name(topic),
            ))  # fmt: skip
        elif isinstance(part, SubscriptionWork):
            topic = names.get(part.topic_id, DELETED)
            rows.append(SubscriptionPartRow(
                "subscription", part.subscription, part.messages,
                part.cumulative, part.positions, topic, short_topic_name(topic),
            ))  # fmt: skip
        else:
            in_tables[part.table_id] = len(rows)
            name = table_names.get(part.table_id, DELETED)
            rows.append(TablePartRow("table", part.keys, part.key_list, part.finalized, name))
    for table_id, count, keys in record.written:
        if table_id not in in_tables:
            in_tables[table_id] = len(rows)
            rows.append(TablePartRow("table", 0, [], True, table_names.get(table_id, DELETED)))
        row = rows[in_tables[table_id]]
        assert isinstance(row, TablePartRow), "the index is of table parts"
        key_list = [*row.key_list, *keys][:KEYS_LISTED]
        rows[in_tables[table_id]] = row._replace(keys=row.keys + count, key_list=key_list)
    return rows


def wait_for_transaction(engine: Engine, txn: int, timeout: float | None) -> TransactionDetails:
    """Wait until a transaction has ended. An overdue or orphaned transaction is ended here, as by any writer."""
    connection = engine.connection
    clock = connection.clock
    until_ns = clock.boot_ns() + nanoseconds(timeout, "a timeout")
    is_last_look = False
    while True:
        with connection.view() as view:
            seen = view.commit
            record = records.get(view, txn)
            if record.state is not TransactionState.OPEN:
                return details_of(view, engine, record)
            deadline_ns = reaper.next_deadline_ns(view)
            left_ns = deadline_ns - view.now_ns if deadline_ns is not None else 0
            # While the store clock stands after a reboot, no deadline comes.
            needs_write = not view.is_clock_running or reaper.is_due(view, connection.environment.locks)
        if is_last_look:
            raise WaitTimeout(
                f"transaction {TxnID(txn)} did not end within {timeout:g} s",
                hint=Hint("`{}` tells who holds it.", Action("store.reports.show_transaction", TxnID(txn))),
                transaction=str(TxnID(txn)),
            )
        if needs_write and not connection.read_only:
            # Every write reaps some transactions; a write that names none may reap the awaited one.
            try:
                connection.write(lambda _: None, timeout_s=connection.gate_s(until_ns))
            except WriterBusy:
                if clock.boot_ns() < until_ns:
                    raise
        now_ns, pause_ns = clock.boot_ns(), int(DEATH_CHECK_S * 1e9)
        is_last_look = now_ns >= until_ns
        if is_last_look:
            continue
        connection.wait_for_commit(
            seen, min(until_ns, now_ns + (min(left_ns, pause_ns) if left_ns > 0 else pause_ns))
        )
