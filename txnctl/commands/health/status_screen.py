"""How `txnctl status` is laid out: problems, then a line for each part of the store, then topics and tables."""

from __future__ import annotations

from os.path import basename

from txnctl.fields.overview import verdict_text
from txnctl.output.field import Field
from txnctl.output.human import duration, plural, size
from txnctl.output.screen import heading, next_command, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

VERDICT_STYLES = {
    "ok": ("green",),
    "warning": ("bold", "yellow"),
    "critical": ("bold", "red"),
    "info": ("cyan",),
}

FINDINGS_SHOWN = 6
TOPICS_SHOWN = 12
TABLES_SHOWN = 6
"""So that all fits one screen; those with something to tell come first."""

_TOPICS = (
    Field("name", "text", "The topic.", heading="TOPIC"),
    Field("msgCount", "integer", "Stored messages.", heading="MESSAGES"),
    Field("blockedMessages", "integer", "Committed, behind an open transaction.", heading="BLOCKED"),
    Field("blockedBy", "id", "That transaction.", heading="BY"),
    Field("uncommittedMessages", "integer", "Of open transactions.", heading="UNCOMMITTED"),
    Field("subscriptions", "integer", "How many there are."),
    Field("visible", "integer", "The most that one of them could be handed now.", heading="LAG"),
    Field("waiting", "integer", "Producers that wait for their turn."),
)
_TABLES = (
    Field("table", "text", "The table."),
    Field("keys", "integer", "Its keys."),
    Field("versions", "integer", "Superseded versions that are kept."),
    Field("intents", "integer", "Writes that are not decided, or not finalised."),
    Field("holders", "list", "The open transactions that hold keys.", heading="HELD BY"),
)


def lines(context: Context, row: Row) -> Iterator[str]:
    """The screen."""
    yield headline(context, row["store"]["path"], row)
    yield from _findings(context, row["findings"])
    yield ""
    for name, fact in _facts(row):
        yield f"  {name:<13} {fact}"
    waiting = {queue["topic"]: queue["waiting"] for queue in row["producers"]}
    topics = [{**topic, "waiting": waiting.get(topic["topic"], 0)} for topic in row["topics"]]
    topics.sort(key=_interest, reverse=True)
    yield from _section(context, topics, _TOPICS, TOPICS_SHOWN, "txnctl topics list")
    tables = [{**table, "holders": [held["txnId"] for held in table["heldBy"]]} for table in row["tables"]]
    tables.sort(key=lambda table: int(table["intents"]), reverse=True)
    yield from _section(context, tables, _TABLES, TABLES_SHOWN, "txnctl tables list")


def headline(context: Context, path: str, row: Row) -> str:
    """Store, verdict and time."""
    text = verdict_text(row)
    line = heading(context, basename(path) or path, text, row["asOfMs"])
    before, _, after = line.rpartition(text)
    return f"{before}{context.style(text, *VERDICT_STYLES[row['verdict']])}{after}"


def _findings(context: Context, findings: Sequence[Row]) -> Iterator[str]:
    if not findings:
        return
    yield ""
    for finding in findings[:FINDINGS_SHOWN]:
        mark = "i" if finding["severity"] == "info" else "!"
        yield f"  {context.style(mark, *VERDICT_STYLES[finding['severity']])} {finding['what']}"
    if len(findings) > FINDINGS_SHOWN:
        yield f"    and {len(findings) - FINDINGS_SHOWN} more"
    yield ""
    yield next_command(context, "txnctl doctor")


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    store, gate, readers = row["store"], row["writerGate"], row["readers"]
    used, file, free = (size(store[name]) for name in ("usedBytes", "dataBytes", "diskFreeBytes"))
    yield "space", f"{used} used in a file of {file}; the disk has {free} left"
    held = "nobody at this moment" if gate is None else f"{gate['holder']} ({gate['state']})"
    yield "writing", held
    oldest = readers["oldest"]
    behind = f"; the oldest view is {plural(oldest['behind'], 'commit')} old" if oldest is not None else ""
    yield "readers", f"{readers['inUse']} of {readers['max']} places taken{behind}"
    yield "transactions", _transactions(row["transactions"])
    verdicts = [subscription["verdict"] for subscription in row["subscriptions"]]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in _VERDICTS if verdict in verdicts]
    yield "subscriptions", ", ".join(counts) or "none"


_VERDICTS = ("blocked", "mixed", "no-consumer", "behind", "ok")


def _transactions(transactions: Row) -> str:
    oldest = transactions["oldest"]
    if oldest is None:
        return "none open"
    late = f"; {len(transactions['late'])} late" if transactions["late"] else ""
    owner = oldest["owner"].partition(" (")[0]
    return (
        f"{transactions['open']} open{late}; the oldest {oldest['txnId']} for {duration(oldest['ageMs'])}, "
        f"{owner} ({oldest['ownerState']})"
    )


def _interest(topic: Row) -> tuple[int, ...]:
    return (
        topic["blockedMessages"], topic["waiting"], topic["uncommittedMessages"], topic["visible"], topic["msgCount"]
    )  # fmt: skip


def _section(
    context: Context, rows: Sequence[Row], fields: Sequence[Field], limit: int, command: str
) -> Iterator[str]:
    """A table of the first rows, and the command for the rest."""
    if not rows:
        return
    yield ""
    yield from section(context, context.table_of(rows[:limit], fields, indent=2))
    if len(rows) > limit:
        yield f"  and {len(rows) - limit:,} more: {command}"
