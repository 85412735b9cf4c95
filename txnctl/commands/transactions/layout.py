"""Transactions in tables: the lists, and one transaction in full."""

from __future__ import annotations

from txnctl.fields.owner import EVIDENCE, alive, deadline, mode
from txnctl.fields.touched import short_names, touched_parts
from txnctl.output.field import Field
from txnctl.output.human import UNKNOWN, duration
from txnctl.output.screen import heading, next_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_NAMES_SHOWN = 3

_WHO = (
    Field("owner", "text", "Who."),
    Field("program", "text", "What."),
)
_WHAT = (
    Field("messages", "integer", "Messages."),
    Field("acknowledgements", "integer", "Acknowledgements.", heading="ACKS"),
    Field("topics", "text", "Topics."),
    Field("tables", "text", "Tables."),
    Field("mode", "text", "Isolation, and priority.", heading="ISOLATION"),
    Field("labels", "text", "Labels."),
)
_OPEN = (
    Field("txnId", "id", "Id.", heading="TXN"),
    Field("ageMs", "duration", "Age.", heading="AGE"),
    Field("idleMs", "duration", "Idle.", heading="IDLE"),
    Field("deadline", "text", "Deadline.", heading="DEADLINE"),
    Field("alive", "text", "Alive."),
    *_WHO,
    *_WHAT,
)
_HOLDING = (*_OPEN[:5], Field("frees", "integer", "What it holds back.", heading="FREES"), *_OPEN[5:])
_ENDED = (
    Field("txnId", "id", "Id.", heading="TXN"),
    Field("state", "text", "State."),
    Field("ended", "text", "When."),
    Field("ageMs", "duration", "Open for.", heading="OPEN FOR"),
    Field("reason", "text", "Why."),
    Field("endedBy", "text", "By whom.", heading="BY"),
    *_WHAT,
)
_PARTS = (
    Field("what", "text", "What.", heading="TOUCHED"),
    Field("count", "text", "How much."),
    Field("where", "text", "Where.", heading="WHERE"),
)

_ALARMS = (("ORPHANED", "bold", "red"), ("OVERDUE", "bold", "red"), ("stopped", "yellow"))


def open_list(context: Context, rows: Sequence[Row], *, frees: bool = False) -> str:
    """Unfinished transactions; with the number of messages held back, where the rows have one."""
    cells = [{**_shortened(row), "deadline": deadline(row), "alive": alive(row)} for row in rows]
    return alarmed(context, context.table_of(cells, _HOLDING if frees else _OPEN))


def alarmed(context: Context, table: str) -> str:
    """The table with alarming words in colour.

    Colours come after the layout: escape codes inside a cell would be escaped.
    """
    for word, *styles in _ALARMS:
        table = table.replace(f"  {word}", f"  {context.style(word, *styles)}")
    return table


def ended_list(context: Context, rows: Sequence[Row]) -> str:
    """Committed and aborted transactions."""
    cells = []
    for row in rows:
        reason = row["reason"] if row["reasonText"] is None else f"{row['reason']}: {row['reasonText']}"
        author = str(row["endedBy"]).partition(" (")[0] if row["endedBy"] else None
        cells.append({**_shortened(row), "ended": row["endedAt"], "reason": reason, "endedBy": author})
    return context.table_of(cells, _ENDED)


def _shortened(row: Row) -> Row:
    """The row with owner and program apart, and of many topics the first few."""
    owner, _, program = str(row["owner"]).partition(" (")
    labels = " ".join([f"{name}={value}" for name, value in row["labels"].items()])
    return {
        **row,
        "owner": owner,
        "program": program.removesuffix(")"),
        "topics": _first(short_names(row)),
        "tables": _first([str(table) for table in row["tables"]]),
        "mode": mode(row),
        "labels": labels or UNKNOWN,
    }


def _first(names: Sequence[str]) -> str:
    """Of many names the first few."""
    if len(names) > _NAMES_SHOWN:
        names = [*names[: _NAMES_SHOWN - 1], f"{len(names) - _NAMES_SHOWN + 1} more"]
    return ", ".join(names) or UNKNOWN


def one(context: Context, row: Row) -> Iterator[str]:
    """One transaction in full, and the next command."""
    yield from told(context, row)
    advice = _advice(row) if row["state"] == "OPEN" else None
    if advice is not None:
        yield ""
        yield next_command(context, advice)


def told(context: Context, row: Row) -> Iterator[str]:
    """Facts about the transaction, and the objects touched."""
    is_open = row["state"] == "OPEN"
    yield heading(context, str(row["txnId"]), f"{row['state']}, version {row['version']}", row["asOfMs"])
    for name, text in _facts(context, row, is_open):
        yield f"  {name:11} {text}"
    yield ""
    parts = list(touched_parts(row, is_open))
    if parts:
        yield from [f"  {line}" for line in context.table_of(parts, _PARTS, indent=2).splitlines()]
    else:
        yield "  It has touched nothing yet." if is_open else "  It touched nothing."


def _facts(context: Context, row: Row, is_open: bool) -> Iterator[tuple[str, str]]:
    owner, _, program = str(row["owner"]).partition(" (")
    if is_open:
        yield "begun", f"{duration(row['ageMs'])} ago, at {row['beginAt']}"
        yield "last used", f"{duration(row['idleMs'])} ago, at {row['lastUsedAt']}"
        until = context.style(deadline(row), "bold", "red") if row["overdue"] else deadline(row)
        yield "deadline", f"{until} (timeout {duration(row['timeoutMs'])})"
    else:
        yield "begun", f"at {row['beginAt']}"
        yield "ended", f"at {row['endedAt']}, after {duration(row['ageMs'])}"
        yield "ended by", str(row["endedBy"] or UNKNOWN)
        if row["reason"] is not None:
            yield (
                "reason",
                f"{row['reason']}: {row['reasonText']}" if row["reasonText"] else str(row["reason"]),
            )
        if row["conflict"] is not None:
            yield "lost to", _lost(row["conflict"])
    yield "owner", f"{owner}, {program.removesuffix(')')}"
    if is_open:
        yield "alive", _evidence(context, row)
    if row["labels"]:
        yield "labels", " ".join([f"{name}={value}" for name, value in row["labels"].items()])
    check = "" if row["check"] is None else f", check {row['check']}"
    yield "isolation", f"{row['isolation']}{check}, priority {row['priority']}, timestamp {row['timestamp']}"


_LOST = {
    "push": "this one held it, and was in the way of the other",
    "held": "the other held it, and this one wanted it",
    "read": "which had read it, and is younger",
    "version": "which had written it, and is younger",
    "too-old": "this one was too old",
}


def _lost(conflict: Row) -> str:
    """`0:7, over key B1 of table accounts: …`."""
    from txnctl.output.bytes_field import bytes_cell

    if conflict["table"] is None:
        return _LOST[conflict["kind"]]
    winner = conflict["winner"] or "a transaction that is not known any more"
    over = f"key {bytes_cell(conflict, 'key')} of table {conflict['table']}"
    return f"{winner}, over {over}: {_LOST[conflict['kind']]}"


def _evidence(context: Context, row: Row) -> str:
    text = EVIDENCE.get(str(row["ownerState"]), str(row["ownerState"]))
    return context.style(text, "bold", "red") if row["orphaned"] else text


def _advice(row: Row) -> str:
    """The next command for an operator."""
    if row["orphaned"] or row["overdue"]:
        return "txnctl transactions reap"
    return f"txnctl transactions abort {row['txnId']} --dry-run"
