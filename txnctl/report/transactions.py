"""The transactions of a store: open transactions with evidence and advice; then ended transactions, and conflicts."""

from __future__ import annotations

from txnctl.fields.holder import then, waiting, who
from txnctl.fields.owner import EVIDENCE, alive, beside_the_lock, deadline, mode
from txnctl.fields.touched import short_names, touched_parts
from txnctl.output.field import Field
from txnctl.output.human import UNKNOWN, count, duration, plural
from txnctl.report import tables
from txnctl.report.markup import Markup, foreign, join, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.output.row import Row

_OPEN = 3
"""How many explanations are expanded, of transactions that are late or block messages."""

_COLUMNS = (
    Field("txnId", "id", "The transaction.", heading="TXN"),
    Field("alive", "text", "Its owner.", heading="ALIVE"),
    Field("ageMs", "duration", "Since its begin.", heading="AGE"),
    Field("idleMs", "duration", "Since its last use.", heading="IDLE"),
    Field("deadline", "text", "Its deadline."),
    Field("messages", "integer", "Its messages.", heading="OWN"),
    Field("acknowledgements", "integer", "Its acknowledgements.", heading="ACKS"),
    Field("frees", "integer", "What waits for it.", heading="FREES"),
    Field("topics", "text", "Topics."),
    Field("tables", "text", "Tables."),
    Field("who", "text", "Labels and owner.", heading="OWNER"),
)
_BLOCKS = (
    Field("name", "id", "The topic.", heading="HOLDS BACK"),
    Field("holdsFrom", "position", "Its first message there.", heading="FROM"),
    Field("place", "integer", "Its place in the chain.", heading="PLACE"),
    Field("frees", "integer", "What waits for it."),
    Field("waiting", "text", "Where."),
    Field("then", "text", "And then."),
)
_TOUCHED = (
    Field("what", "text", "What.", heading="TOUCHED"),
    Field("count", "text", "How much."),
    Field("where", "text", "Where.", heading="WHERE"),
)
_ENDED = (
    Field("txnId", "id", "The transaction.", heading="TXN"),
    Field("state", "text", "How it ended."),
    Field("endedAt", "time", "When.", heading="ENDED"),
    Field("ageMs", "duration", "How long it was open.", heading="OPEN FOR"),
    Field("messages", "integer", "Its messages."),
    Field("why", "text", "Why, where it was aborted.", heading="REASON"),
    Field("topics", "text", "Topics."),
    Field("who", "text", "Labels and owner.", heading="OWNER"),
)
_CONFLICTS = (
    Field("happenedAt", "time", "When.", heading="WHEN"),
    Field("kind", "text", "To what it lost."),
    Field("table", "id", "Over which table."),
    Field("loser", "id", "The aborted one."),
    Field("winner", "id", "The other one.", heading="LOST TO"),
)


def section(report: Row) -> Markup:
    """Return the part of the page about open transactions."""
    rows = report["openTransactions"]
    if not rows:
        return tables.section("transactions", "Open transactions", tag("p", "No transaction is open."))
    cells = [_cells(row) for row in rows]
    parts = [
        tables.table(
            "Open transactions",
            cells,
            _COLUMNS,
            more="txnctl transactions list",
            layout=tables.TableLayout(40, anchors="TXN"),
        )
    ]
    left = report["openCount"] - len(rows)
    if left:
        parts.append(
            tag(
                "p",
                f"{left:,} more, which hold less back: ",
                tag("code", "txnctl transactions list"),
                class_="more",
            )
        )
    parts += [_explained(number, row) for number, row in enumerate(rows)]
    return tables.section("transactions", "Open transactions", join(parts))


def _cells(row: Row) -> Row:
    return {
        **row,
        "alive": alive(row),
        "deadline": deadline(row),
        "who": who(row),
        "frees": waiting_messages(row),
        "topics": ", ".join(short_names(row)) or None,
    }


def waiting_messages(row: Row) -> int:
    """Count the messages that wait for a transaction, on all topics."""
    return sum(blocked_topic["frees"] for blocked_topic in row["blocks"])


def _explained(number: int, row: Row) -> Markup:
    """Explain one transaction: the advice first, then its reasons."""
    late, behind = row["orphaned"] or row["overdue"], waiting_messages(row)
    return tag(
        "details",
        tag(
            "summary", tag("code", row["txnId"]), " ", _owner(row), f", open for {duration(row['ageMs'])}; ",
            foreign(who(row)), f"; {plural(behind, 'message')} behind it" if behind else None,
        ),
        _advice(row),
        tables.facts(list(_facts(row))),
        join(_holds(row)),
        _touched(row),
        id=tables.anchor(row["txnId"]), open=number < _OPEN and bool(late or behind),
    )  # fmt: skip


def _owner(row: Row) -> Markup:
    """Show `OVERDUE`, `ORPHANED`, or the state of the owner."""
    late = "ORPHANED" if row["orphaned"] else "OVERDUE" if row["overdue"] else None
    text = late or str(row["ownerState"])
    loud = tables.word(text)
    return tag("span", text, class_=f"word {loud}" if loud else None)


def _advice(row: Row) -> Markup:
    command = None if row["command"] is None else tag("p", tag("code", row["command"]), class_="command")
    return tag("div", tag("p", row["because"]), command, class_="advice")


def _facts(row: Row) -> Iterator[tuple[str, str | Markup]]:
    yield "owner", foreign(row["owner"])
    yield "alive", EVIDENCE.get(str(row["ownerState"]), str(row["ownerState"]))
    beside = " ".join([line for line in beside_the_lock(row) if line])
    if beside:
        yield "process", beside
    if row["labels"]:
        yield "labels", foreign(" ".join([f"{name}={value}" for name, value in row["labels"].items()]))
    yield "begun", f"{duration(row['ageMs'])} ago, at {row['beginAt']}"
    yield "last used", f"{duration(row['idleMs'])} ago, at {row['lastUsedAt']}"
    yield "deadline", f"{deadline(row)} (timeout {duration(row['timeoutMs'])})"
    yield "isolation", mode(row)
    yield "version", count(row["version"])


def _holds(row: Row) -> Iterator[Markup]:
    cells = [
        {
            **blocked_topic,
            "waiting": waiting(blocked_topic["unblocks"]) or UNKNOWN,
            "then": then(blocked_topic),
        }
        for blocked_topic in row["blocks"]
    ]
    if cells:
        more = f"txnctl transactions explain {row['txnId']}"
        yield tables.table(f"What {row['txnId']} holds back", cells, _BLOCKS, more=more, layout=tables.TITLED)
    for pending in row["pending"]:
        messages = plural(pending["messages"], "message")
        yield tag(
            "p", f"{messages} of ", foreign(pending["name"]), " held back on ", foreign(pending["subscription"]),
            ": acknowledged in it, they go to nobody until it ends.",
        )  # fmt: skip


def _touched(row: Row) -> Markup:
    parts = list(touched_parts(row, is_open=True))
    if not parts:
        return tag("p", "It has touched nothing yet.")
    more = f"txnctl transactions show {row['txnId']}"
    listed = tables.table(f"What {row['txnId']} touched", parts, _TOUCHED, more=more, layout=tables.TITLED)
    waiting_messages = [part["table"] for part in row["parts"] if "table" in part]
    if not waiting_messages:
        return listed
    keys = f"txnctl tables intents {waiting_messages[0] if len(waiting_messages) == 1 else 'TABLE'}"
    return join([listed, tables.keys_elsewhere(keys)])


def ended(rows: Sequence[Row]) -> Markup | None:
    """List the ended transactions among those begun last."""
    cells = [
        {**row, "why": _why(row), "who": who(row), "topics": ", ".join(short_names(row)) or None}
        for row in rows
    ]
    if not cells:
        return None
    return tables.table(
        "Ended transactions, those begun last",
        cells,
        _ENDED,
        more="txnctl transactions history",
        layout=tables.TITLED,
    )


def _why(row: Row) -> str:
    return ": ".join([str(reason) for reason in (row["reason"], row["reasonText"]) if reason]) or UNKNOWN


def conflicts(rows: Sequence[Row]) -> Markup | None:
    """List the last conflicts over tables, without their keys."""
    if not rows:
        return None
    listed = tables.table(
        "Last conflicts", rows, _CONFLICTS, more="txnctl tables history", layout=tables.TITLED
    )
    return join([listed, tables.keys_elsewhere("txnctl tables history")])
