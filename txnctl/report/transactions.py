"""The transactions of a store: open transactions with evidence and advice; then ended transactions, and conflicts."""

from __future__ import annotations

from storage.reports.transactions import TablePartRow
from storage.values.timestamps import rfc3339
from txnctl.fields.holder import then, waiting
from txnctl.fields.owner import alive, beside_the_lock, deadline, evidence, mode, process_state, who
from txnctl.fields.touched import TOUCHED, short_names, touched_parts
from txnctl.output.column import Column
from txnctl.output.human import count, duration, labels_text, plural
from txnctl.output.shell import line, spell
from txnctl.report import tables
from txnctl.report.markup import Markup, foreign, join, prose, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.conflict_counts import ConflictCount
    from storage.reports.explain import BlockedTopic, Explanation
    from storage.reports.store_report import StoreReport
    from storage.reports.transactions import TransactionDetails, TransactionRow

EXPLANATIONS_BYTES_MAX = 256 << 10
"""After so many bytes of explanations the command is named that shows the others."""


def waiting_messages(explained: Explanation) -> int:
    """Count the messages that wait for a transaction, on all topics."""
    return sum(blocked_topic.frees for blocked_topic in explained.blocks)


def _why(row: TransactionRow) -> str | None:
    return ": ".join([text for text in (row.reason, row.reason_text) if text]) or None


_COLUMNS: tuple[Column[Explanation], ...] = (
    Column("TXN", "id", lambda row: row.details.row.txn_id),
    Column("ALIVE", "text", lambda row: alive(row.details.row)),
    Column("AGE", "duration", lambda row: row.details.row.age_ms),
    Column("IDLE", "duration", lambda row: row.details.row.idle_ms),
    Column("DEADLINE", "text", lambda row: deadline(row.details.row)),
    Column("OWN", "integer", lambda row: row.details.row.messages),
    Column("ACKS", "integer", lambda row: row.details.row.acknowledgements),
    Column("FREES", "integer", waiting_messages),
    Column("TOPICS", "text", lambda row: short_names(row.details.row)),
    Column("TABLES", "text", lambda row: row.details.row.tables),
    Column("OWNER", "text", lambda row: who(row.details.row)),
)
_BLOCKS: tuple[Column[BlockedTopic], ...] = (
    Column("HOLDS BACK", "id", lambda link: link.name),
    Column("FROM", "position", lambda link: link.holds_from),
    Column("PLACE", "integer", lambda link: link.place),
    Column("FREES", "integer", lambda link: link.frees),
    Column("WAITING", "text", lambda link: waiting(link.unblocks) or None),
    Column("THEN", "text", then),
)
_ENDED: tuple[Column[TransactionRow], ...] = (
    Column("TXN", "id", lambda row: row.txn_id),
    Column("STATE", "text", lambda row: row.state),
    Column("ENDED", "time", lambda row: row.ended_at_ms),
    Column("OPEN FOR", "duration", lambda row: row.age_ms),
    Column("MESSAGES", "integer", lambda row: row.messages),
    Column("REASON", "text", _why),
    Column("TOPICS", "text", short_names),
    Column("OWNER", "text", who),
)
_CONFLICTS: tuple[Column[ConflictCount], ...] = (
    Column("TABLE", "id", lambda row: row.table),
    Column("LOST", "integer", lambda row: row.losses),
    Column("KEYS", "integer", lambda row: row.keys),
    Column("LOSER", "text", lambda row: row.loser),
    Column("LOST TO", "text", lambda row: row.winner),
    Column("KIND", "text", lambda row: row.kind),
    Column("FIRST", "time", lambda row: row.first_at_ms),
    Column("LAST", "time", lambda row: row.last_at_ms),
)


class Explanations:
    """The explanations of open transactions, each of which stands on the page once, within a bound of bytes.

    Attributes:
        left: the ids that are not on the page for want of room.
    """

    def __init__(self, report: StoreReport) -> None:
        self._waiting = {str(row.details.row.txn_id): row for row in report.open_transactions}
        self._room = tables.Room(EXPLANATIONS_BYTES_MAX)
        self.left: list[str] = []

    def take(self, txns: Sequence[str]) -> list[Markup]:
        """Return the explanations of some transactions, as far as they are not on the page yet."""
        parts = []
        for txn in txns:
            explained = self._waiting.pop(txn, None)
            if explained is None:
                continue
            part = _explained(explained)
            if self._room.take(part):
                parts.append(part)
            else:
                self.left.append(txn)
        return parts

    def rest(self) -> list[Markup]:
        """Return those that are not on the page yet."""
        return self.take(list(self._waiting))


def section(report: StoreReport, explanations: Explanations) -> Markup | None:
    """Return the part of the page about open transactions; None without one."""
    rows = report.open_transactions
    if not rows:
        return None
    parts = explanations.rest()
    unexplained = set(explanations.left)
    listed = [row for row in rows if str(row.details.row.txn_id) not in unexplained]
    table = tables.table(
        "Open transactions",
        listed,
        _COLUMNS,
        more=line("transactions list"),
        layout=tables.TableLayout(40, anchors="TXN"),
    )
    left = report.open_count - len(listed)
    more = f"{left:,} more, which hold less back: "
    note = tag("p", more, tag("code", line("transactions list")), class_="more") if left else None
    return tables.folded(
        "transactions", "Open transactions", count(report.open_count), table, note, join(parts)
    )


def _explained(explained: Explanation) -> Markup:
    """Explain one transaction: the advice first, then its reasons."""
    row, behind = explained.details.row, waiting_messages(explained)
    return tag(
        "details",
        tag(
            "summary", tag("code", str(row.txn_id)), " ", _owner(row), f", open for {duration(row.age_ms)}; ",
            foreign(who(row)), f"; {plural(behind, 'message')} behind it" if behind else None,
        ),
        _advice(explained),
        tables.facts(list(_facts(explained))),
        join(_holds(explained)),
        _touched(explained.details),
        id=tables.anchor(str(row.txn_id)), class_="evidence",
    )  # fmt: skip


def _owner(row: TransactionRow) -> Markup:
    """Show `OVERDUE`, `ORPHANED`, or the state of the owner."""
    late = "ORPHANED" if row.orphaned else "OVERDUE" if row.overdue else None
    text = late or process_state(row)
    loud = tables.word(text)
    return tag("span", text, class_=f"word {loud}" if loud else None)


def _advice(explained: Explanation) -> Markup:
    advice = explained.advice
    command = None if advice.action is None else tag("p", tag("code", spell(advice.action)), class_="command")
    ways = [tag("p", f"{choice.choice}: ", prose(spell(choice.means))) for choice in explained.choices]
    return tag("div", tag("p", advice.because), command, join(ways), class_="advice")


def _facts(explained: Explanation) -> Iterator[tuple[str, str | Markup]]:
    row = explained.details.row
    yield "owner", foreign(row.owner)
    yield "alive", evidence(row)
    beside = " ".join([line for line in beside_the_lock(explained) if line])
    if beside:
        yield "process", beside
    if row.labels:
        yield "labels", foreign(labels_text(row.labels))
    yield "begun", f"{duration(row.age_ms)} ago, at {rfc3339(row.begin_at_ms)}"
    yield "last used", f"{duration(row.idle_ms)} ago, at {rfc3339(explained.details.last_used_at_ms)}"
    yield "deadline", f"{deadline(row)} (timeout {duration(row.timeout_ms)})"
    yield "isolation", mode(row)
    yield "version", count(row.version)


def _holds(explained: Explanation) -> Iterator[Markup]:
    if explained.blocks:
        txn = explained.details.row.txn_id
        more = line("transactions explain", txn)
        yield tables.table(
            f"What {txn} holds back", explained.blocks, _BLOCKS, more=more, layout=tables.SMALL
        )
    for pending in explained.pending:
        messages = plural(pending.messages, "message")
        yield tag(
            "p", f"{messages} of ", foreign(pending.name), " held back on ", foreign(pending.subscription),
            ": acknowledged in it, they go to nobody until it ends.",
        )  # fmt: skip


def _touched(details: TransactionDetails) -> Markup:
    parts, txn = touched_parts(details), details.row.txn_id
    if not parts:
        return tag("p", "It has touched nothing yet.")
    more = line("transactions show", txn)
    listed = tables.table(f"What {txn} touched", parts, TOUCHED, more=more, layout=tables.SMALL)
    names = [part.table for part in details.parts if isinstance(part, TablePartRow)]
    if not names:
        return listed
    keys = line("tables intents", names[0] if len(names) == 1 else "TABLE")
    return join([listed, tables.keys_elsewhere(keys)])


def ended(rows: Sequence[TransactionRow]) -> Markup | None:
    """List the ended transactions among those begun last."""
    if not rows:
        return None
    return tables.table(
        "Ended transactions, those begun last",
        rows,
        _ENDED,
        more=line("transactions history"),
        layout=tables.TITLED,
    )


def conflicts(rows: Sequence[ConflictCount]) -> Markup | None:
    """Return the part of the page about conflicts over tables, counted by jobs and without keys; None without one."""
    if not rows:
        return None
    more = line("tables history")
    listed = tables.table("Conflicts", rows, _CONFLICTS, more=more)
    losses = sum(row.losses for row in rows)
    gist = f"{plural(losses, 'transaction')} lost"
    return tables.folded("conflicts", "Conflicts over tables", gist, listed, tables.keys_elsewhere(more))
