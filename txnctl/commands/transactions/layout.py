"""Transactions for people: the lists, and one with all that is known of it.

Rows are those that JSON shows, their texts harmless on a terminal already. What needs somebody's attention (orphaned,
overdue, stopped) is said in words, and in colour where there is any.
"""

from __future__ import annotations

from txnctl.output.field import Field
from txnctl.output.human import UNKNOWN, duration, plural
from txnctl.output.screen import heading, next_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from txnctl.cli.context import Context

    Row = dict[str, Any]

_NAMES_SHOWN = 3
_RUNS_SHOWN = 8
_KEYS_SHOWN = 8

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

_USUAL_PRIORITY = "medium"

_ALARMS = (("ORPHANED", "bold", "red"), ("OVERDUE", "bold", "red"), ("stopped", "yellow"))

EVIDENCE = {
    "alive": "yes: its process holds the kernel lock that proves it",
    "stopped": "stopped (SIGSTOP, a debugger); that counts as alive, its process holds its kernel lock",
    "dead": "ORPHANED: its process is dead, the kernel has released its lock; the next writer aborts it",
    "rebooted": "ORPHANED: the machine was rebooted since; the next writer aborts it",
    "unknown-host": "unknown: it began on another machine, and nobody here holds its lock",
    "detached": "detached: no process holds it, its deadline alone rules",
}
"""What proves that its owner lives, or that it cannot, by its state."""


def alive(row: Row) -> str:
    """One word about the process that owns it."""
    if row["orphaned"]:
        return "ORPHANED"
    state = str(row["ownerState"])
    return {"alive": "yes", "unknown-host": "unknown"}.get(state, state)


def deadline(row: Row) -> str:
    """`in 12m48s`, or `OVERDUE 3s`."""
    if row["overdue"]:
        return f"OVERDUE {duration(-row['deadlineInMs'])}"
    return f"in {duration(row['deadlineInMs'])}"


def open_list(context: Context, rows: Sequence[Row], *, frees: bool = False) -> str:
    """The unfinished ones; with what each of them holds back, where the rows say so."""
    cells = [{**_shortened(row), "deadline": deadline(row), "alive": alive(row)} for row in rows]
    return alarmed(context, context.table_of(cells, _HOLDING if frees else _OPEN))


def alarmed(context: Context, table: str) -> str:
    """A table in which what needs attention is coloured.

    That is done when the columns are in line: within a cell the codes would be escaped.
    """
    for word, *styles in _ALARMS:
        table = table.replace(f"  {word}", f"  {context.style(word, *styles)}")
    return table


def ended_list(context: Context, rows: Sequence[Row]) -> str:
    """The committed and the aborted ones."""
    cells = []
    for row in rows:
        reason = row["reason"] if row["reasonText"] is None else f"{row['reason']}: {row['reasonText']}"
        by = str(row["endedBy"]).partition(" (")[0] if row["endedBy"] else None
        cells.append({**_shortened(row), "ended": row["endedAt"], "reason": reason, "endedBy": by})
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
        "tables": _first([str(each) for each in row["tables"]]),
        "mode": mode(row),
        "labels": labels or UNKNOWN,
    }


def _first(names: Sequence[str]) -> str:
    """Of many names the first few."""
    if len(names) > _NAMES_SHOWN:
        names = [*names[: _NAMES_SHOWN - 1], f"{len(names) - _NAMES_SHOWN + 1} more"]
    return ", ".join(names) or UNKNOWN


def mode(row: Row) -> str:
    """Its isolation, and its priority where that is not the usual one: `SERIALIZABLE, high`."""
    isolation, priority = str(row["isolation"]), str(row["priority"])
    return isolation if priority == _USUAL_PRIORITY else f"{isolation}, {priority}"


def one(context: Context, row: Row) -> Iterator[str]:
    """All that is known of one, and what to do next."""
    yield from told(context, row)
    advice = _advice(row) if row["state"] == "OPEN" else None
    if advice is not None:
        yield ""
        yield next_command(context, advice)


def told(context: Context, row: Row) -> Iterator[str]:
    """Its facts, and what it touched."""
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
    """`0:7, over key B1 of table accounts: it stood in the way of the other`."""
    from txnctl.output.bytes_field import bytes_cell

    if conflict["table"] is None:
        return _LOST[conflict["kind"]]
    winner = conflict["winner"] or "a transaction that is not known any more"
    over = f"key {bytes_cell(conflict, 'key')} of table {conflict['table']}"
    return f"{winner}, over {over}: {_LOST[conflict['kind']]}"


def short_names(row: Row) -> list[str]:
    """Its topics as people write them."""
    from storage.values.names import short_topic_name

    return [short_topic_name(str(each)) for each in row["topics"]]


def _evidence(context: Context, row: Row) -> str:
    text = EVIDENCE.get(str(row["ownerState"]), str(row["ownerState"]))
    return context.style(text, "bold", "red") if row["orphaned"] else text


def touched_parts(row: Row, is_open: bool) -> Iterator[Row]:
    """What it touched, as rows of `what`, `count`, `where`."""
    for part in row["parts"]:
        if part["kind"] == "table":
            yield _table_part(part, str(row["state"]))
            continue
        runs = [str(each) for each in part["positions"]]
        where = ", ".join(runs[:_RUNS_SHOWN]) + (", ..." if len(runs) > _RUNS_SHOWN else "")
        count = plural(part["messages"], "message")
        if part["kind"] == "topic":
            yield {"what": f"produced to {part['name']}", "count": count, "where": where}
            continue
        if part["cumulative"] is not None:
            where = ", ".join([f"through {part['cumulative']}", *([where] if where else [])])
        doing = "acknowledgements pending" if is_open else "acknowledged"
        yield {
            "what": f"{doing} on {part['name']}, {part['subscription']}",
            "count": count,
            "where": where or UNKNOWN,
        }


def _table_part(part: Row, state: str) -> Row:
    """What it wrote in a table, with the first keys."""
    from txnctl.output.bytes_field import bytes_cell

    keys = [bytes_cell(each, "key") for each in part["keyList"][:_KEYS_SHOWN]]
    where = ", ".join(keys) + (", ..." if keys and part["keys"] > len(keys) else "")
    doing = {"OPEN": "holds keys of", "COMMITTED": "wrote", "ABORTED": "held keys of"}[state]
    return {
        "what": f"{doing} table {part['table']}",
        "count": plural(part["keys"], "key"),
        "where": where or UNKNOWN,
    }


def _advice(row: Row) -> str:
    """One command: what an operator who looks at it would want next."""
    if row["orphaned"] or row["overdue"]:
        return "txnctl transactions reap"
    return f"txnctl transactions abort {row['txnId']} --dry-run"


def touched(row: Row) -> str:
    """`3 messages on orders, payments; 2 acknowledgements; 4 keys of accounts`, or `it had touched nothing`."""
    parts = []
    if row["messages"]:
        parts.append(f"{plural(row['messages'], 'message')} on {', '.join(short_names(row))}")
    if row["acknowledgements"]:
        parts.append(plural(row["acknowledgements"], "acknowledgement"))
    parts += [
        f"{plural(part['keys'], 'key')} of {part['table']}"
        for part in row["parts"]
        if part["kind"] == "table"
    ]
    return "; ".join(parts) or "it had touched nothing"
