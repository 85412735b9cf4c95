"""The topics of a store in a table, and the most interesting of those that no cause has drawn as pictures."""

from __future__ import annotations

from storage.reports.timeline import waiting
from txnctl.output.column import Column
from txnctl.output.human import count, plural
from txnctl.output.shell import line
from txnctl.report import tables
from txnctl.report.figures import Pictures, interest, not_drawn
from txnctl.report.markup import Markup, join, tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.reports.timeline import Timeline
    from storage.values.txn_id import TxnID

DRAWN = 6
"""The most topics drawn here."""


def blocked_by(model: Timeline) -> TxnID | None:
    """Return the transaction in front of the messages that readers wait for."""
    behind = waiting(model).behind
    return behind.holder.txn_id if behind is not None else None


_COLUMNS: tuple[Column[Timeline], ...] = (
    Column("TOPIC", "id", lambda model: model.name),
    Column("MESSAGES", "integer", lambda model: model.msg_count),
    Column("BLOCKED", "integer", lambda model: waiting(model).messages),
    Column("BY", "id", blocked_by),
    Column("UNCOMMITTED", "integer", lambda model: model.uncommitted_messages),
    Column("OPEN", "integer", lambda model: model.ongoing_txn_count),
    Column("ABORTED", "integer", lambda model: model.aborted_messages),
    Column("MAX READ POSITION", "position", lambda model: model.max_read_position),
    Column("LAST CONFIRMED ENTRY", "position", lambda model: model.last_confirmed_entry),
    Column("EPOCH", "integer", lambda model: model.topic_epoch),
    Column("SUBSCRIPTIONS", "integer", lambda model: len(model.subscriptions)),
)


def section(models: Sequence[Timeline], figures: Pictures) -> Markup | None:
    """Return the part of the page about topics, blocked topics first; None without a topic."""
    if not models:
        return None
    ranked = sorted(models, key=interest, reverse=True)
    listed = tables.table("All topics", ranked, _COLUMNS, more=line("topics list"))
    left = [model for model in ranked if model.topic not in figures.drawn]
    pictures = [
        tag("details", tag("summary", "Picture of ", tag("bdi", model.name)), figures.figure(model))
        for model in left[:DRAWN]
    ]
    return tables.folded(
        "topics", "Topics", _gist(models), listed, join(pictures), not_drawn(len(left) - DRAWN)
    )


def _gist(models: Sequence[Timeline]) -> str:
    blocked = sum(bool(waiting(model).messages) for model in models)
    messages = sum(model.msg_count for model in models)
    stuck = f", {count(blocked)} blocked" if blocked else ""
    return f"{count(len(models))}{stuck}; {plural(messages, 'message')}"
