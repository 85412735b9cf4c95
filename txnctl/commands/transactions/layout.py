"""Transactions in tables: the lists, and one transaction in full."""

from __future__ import annotations

from typing import TypeVar

from storage.values.timestamps import rfc3339
from storage.values.txn_state import TransactionState
from txnctl.fields.owner import about, alive, deadline, evidence, mode, other_user, process_state
from txnctl.fields.touched import TOUCHED, short_names, touched_parts
from txnctl.output import screen
from txnctl.output.column import Column
from txnctl.output.human import UNKNOWN, duration, labels_text
from txnctl.output.screen import heading, next_command
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.reports.slow_and_orphaned import AttentionRow
    from storage.reports.transactions import TransactionDetails, TransactionRow
    from storage.table.conflict import Doom
    from txnctl.cli.context import Context
    from txnctl.output.table_layout import TextTable

R = TypeVar("R")

_NAMES_SHOWN = 3


def _state_columns(transaction: Callable[[R], TransactionRow]) -> tuple[Column[R], ...]:
    """Id, age and state of the owner of an open transaction."""
    return (
        Column("TXN", "id", lambda row: transaction(row).txn_id),
        Column("AGE", "duration", lambda row: transaction(row).age_ms),
        Column("IDLE", "duration", lambda row: transaction(row).idle_ms, rank=3),
        Column("DEADLINE", "list", lambda row: deadline(transaction(row)), rank=5),
        Column("ALIVE", "text", lambda row: alive(transaction(row))),
    )


def _owner_columns(transaction: Callable[[R], TransactionRow]) -> tuple[Column[R], ...]:
    return (
        Column("OWNER", "list", lambda row: transaction(row).owner.address),
        Column("PROGRAM", "text", lambda row: transaction(row).owner.program, rank=8),
        Column("LAST USER", "list", lambda row: other_user(transaction(row)), rank=3),
    )


def _content_columns(transaction: Callable[[R], TransactionRow]) -> tuple[Column[R], ...]:
    """The effects of a transaction, its isolation and its labels."""
    return (
        Column("MESSAGES", "integer", lambda row: transaction(row).messages, rank=4),
        Column("ACKS", "integer", lambda row: transaction(row).acknowledgements, rank=7),
        Column("TOPICS", "list", lambda row: _first(short_names(transaction(row))), rank=2),
        Column("TABLES", "list", lambda row: _first(transaction(row).tables), rank=6),
        Column("ISOLATION", "text", lambda row: mode(transaction(row)), rank=9),
        Column("LABELS", "text", lambda row: labels_text(transaction(row).labels) or None, rank=1),
    )


def _itself(row: TransactionRow) -> TransactionRow:
    return row


def _of_attention(row: AttentionRow) -> TransactionRow:
    return row.row


def _reason(row: TransactionRow) -> str | None:
    return row.reason if row.reason_text is None else f"{row.reason}: {row.reason_text}"


_OPEN = (*_state_columns(_itself), *_owner_columns(_itself), *_content_columns(_itself))
_DUE = (
    *_state_columns(_itself),
    Column("REASON", "text", _reason),
    *_owner_columns(_itself),
    *_content_columns(_itself),
)
_HOLDING: tuple[Column[AttentionRow], ...] = (
    *_state_columns(_of_attention),
    Column("FREES", "integer", lambda row: row.frees),
    *_owner_columns(_of_attention),
    *_content_columns(_of_attention),
)
_ENDED: tuple[Column[TransactionRow], ...] = (
    Column("TXN", "id", lambda row: row.txn_id),
    Column("STATE", "text", lambda row: row.state),
    Column("ENDED", "time", lambda row: rfc3339(row.ended_at_ms)),
    Column("OPEN FOR", "duration", lambda row: row.age_ms, rank=5),
    Column("REASON", "text", _reason),
    Column("BY", "list", lambda row: row.ended_by.address if row.ended_by is not None else None, rank=3),
    *_content_columns(_itself),
)

_ALARMS = (("ORPHANED", "bold", "red"), ("OVERDUE", "bold", "red"), ("stopped", "yellow"))


def open_list(context: Context, rows: Sequence[TransactionRow]) -> TextTable:
    """Unfinished transactions."""
    return alarmed(context, context.table_of(rows, _OPEN))


def due_list(context: Context, rows: Sequence[TransactionRow]) -> TextTable:
    """Unfinished transactions that a reap would abort, with the reason."""
    return alarmed(context, context.table_of(rows, _DUE))


def holding_list(context: Context, rows: Sequence[AttentionRow]) -> TextTable:
    """Unfinished transactions with the number of messages held back."""
    return alarmed(context, context.table_of(rows, _HOLDING))


def alarmed(context: Context, table: TextTable) -> TextTable:
    """The table with alarming words in colour."""
    return screen.alarmed(context, table, _ALARMS)


def problem(context: Context, row: TransactionRow) -> str | None:
    """`0:7 ORPHANED, open for 46m, anna@db-2:48211`; None where the owner works and the deadline is ahead."""
    word = "ORPHANED" if row.orphaned else "OVERDUE" if row.overdue else process_state(row)
    styles = {word: styles for word, *styles in _ALARMS}.get(word)
    if styles is None:
        return None
    return f"{row.txn_id} {context.style(word, *styles)}, open for {duration(row.age_ms)}, {about(row)}"


def ended_list(context: Context, rows: Sequence[TransactionRow]) -> TextTable:
    """Committed and aborted transactions."""
    return context.table_of(rows, _ENDED)


def _first(names: Sequence[str]) -> str:
    """Of many names the first few."""
    if len(names) > _NAMES_SHOWN:
        names = [*names[: _NAMES_SHOWN - 1], f"{len(names) - _NAMES_SHOWN + 1} more"]
    return ", ".join(names) or UNKNOWN


def one(context: Context, details: TransactionDetails) -> Iterator[str]:
    """One transaction in full, and the next command."""
    yield from told(context, details)
    if details.row.state is TransactionState.OPEN:
        yield ""
        yield next_command(context, _advice(details.row))


def told(context: Context, details: TransactionDetails) -> Iterator[str]:
    """Facts about the transaction, and the objects touched."""
    row = details.row
    is_open = row.state is TransactionState.OPEN
    yield heading(context, str(row.txn_id), f"{row.state.value}, version {row.version}", row.as_of_at_ms)
    for name, text in (*_course(context, details), *_setting(context, details)):
        yield f"  {name:11} {text}"
    yield ""
    parts = touched_parts(details)
    if parts:
        yield from context.table_of(parts, TOUCHED, indent=2).changed(str, indent=2)
    else:
        yield "  It has touched nothing yet." if is_open else "  It touched nothing."


def _course(context: Context, details: TransactionDetails) -> Iterator[tuple[str, str]]:
    """The begin, and the deadline or the end."""
    row = details.row
    begun = rfc3339(row.begin_at_ms)
    if row.state is TransactionState.OPEN:
        yield "begun", f"{duration(row.age_ms)} ago, at {begun}"
        yield "last used", f"{duration(row.idle_ms)} ago, at {rfc3339(details.last_used_at_ms)}"
        until = context.style(deadline(row), "bold", "red") if row.overdue else deadline(row)
        yield "deadline", f"{until} (timeout {duration(row.timeout_ms)})"
        return
    yield "begun", f"at {begun}"
    yield "ended", f"at {rfc3339(row.ended_at_ms)}, after {duration(row.age_ms)}"
    yield "ended by", str(row.ended_by or UNKNOWN)
    if row.reason is not None:
        yield "reason", f"{row.reason}: {row.reason_text}" if row.reason_text else row.reason
    if details.conflict is not None:
        yield "lost to", _lost(details.conflict)


def _setting(context: Context, details: TransactionDetails) -> Iterator[tuple[str, str]]:
    """The owner, the labels and the isolation."""
    row = details.row
    yield "owner", f"{row.owner.address}, {row.owner.program}"
    if row.state is TransactionState.OPEN:
        yield "alive", context.style(evidence(row), "bold", "red") if row.orphaned else evidence(row)
    if row.labels:
        yield "labels", labels_text(row.labels)
    check = "" if details.check is None else f", check {details.check}"
    yield (
        "isolation",
        f"{row.isolation}{check}, priority {row.priority}, timestamp {details.timestamp_ns}",
    )


_LOST = {
    "push": "this one held it, and was in the way of the other",
    "held": "the other held it, and this one wanted it",
    "read": "which had read it, and is younger",
    "version": "which had written it, and is younger",
    "too-old": "this one was too old",
}


def _lost(conflict: Doom) -> str:
    """`0:7, over key B1 of table accounts: …`."""
    from txnctl.output.bytes_field import bytes_cell

    if conflict.table is None:
        return _LOST[conflict.kind]
    if conflict.kind == "read" and conflict.winner_version_ns is None:
        key = f"key {bytes_cell(conflict.key)} of table {conflict.table}"
        return f"a younger transaction may have read {key}: reads that long ago are forgotten"
    winner = conflict.winner or "a transaction that is not known any more"
    return f"{winner}, over key {bytes_cell(conflict.key)} of table {conflict.table}: {_LOST[conflict.kind]}"


def _advice(row: TransactionRow) -> str:
    """The next command for an operator."""
    if row.orphaned or row.overdue:
        return line("transactions reap")
    return line("transactions abort", row.txn_id, dry_run=True)
