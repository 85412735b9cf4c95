"""The topics of a store: the most interesting topics drawn, and all topics in a table."""

from __future__ import annotations

from storage.reports.timeline import waiting
from txnctl.output.column import Column
from txnctl.output.human import plural
from txnctl.output.shell import line
from txnctl.report import tables
from txnctl.report.markup import Markup, join, tag
from txnctl.report.shapes import Shape
from txnctl.report.svg import sample, svg
from txnctl.report.timeline_layout import NARROW, WIDE, draw
from txnctl.report.words import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.timeline import Timeline
    from storage.values.txn_id import TxnID

DRAWN = 24
"""The most topics drawn."""
_OPEN = 6
"""The most drawings expanded although nothing is blocked."""


def _blocked_by(model: Timeline) -> TxnID | None:
    """The transaction in front of the messages that readers wait for."""
    behind = waiting(model).behind
    return behind.holder.txn_id if behind is not None else None


_COLUMNS: tuple[Column[Timeline], ...] = (
    Column("TOPIC", "id", lambda model: model.name),
    Column("MESSAGES", "integer", lambda model: model.msg_count),
    Column("BLOCKED", "integer", lambda model: waiting(model).messages),
    Column("BY", "id", _blocked_by),
    Column("UNCOMMITTED", "integer", lambda model: model.uncommitted_messages),
    Column("OPEN", "integer", lambda model: model.ongoing_txn_count),
    Column("ABORTED", "integer", lambda model: model.aborted_messages),
    Column("MAX READ POSITION", "position", lambda model: model.max_read_position),
    Column("LAST CONFIRMED ENTRY", "position", lambda model: model.last_confirmed_entry),
    Column("EPOCH", "integer", lambda model: model.topic_epoch),
    Column("SUBSCRIPTIONS", "integer", lambda model: len(model.subscriptions)),
)


def section(models: Sequence[Timeline]) -> Markup:
    """Return the part of the page about topics, blocked topics first."""
    if not models:
        return tables.section("topics", "Topics", tag("p", "There are no topics."))
    ranked = sorted(models, key=_interest, reverse=True)
    listed = tables.table("All topics", ranked, _COLUMNS, more=line("topics list"), layout=tables.TITLED)
    return tables.section("topics", "Topics", join(_drawn(ranked)), listed)


def _interest(model: Timeline) -> tuple[int, ...]:
    lag = max((stats.visible for stats in model.subscriptions.values()), default=0)
    return waiting(model).messages, model.ongoing_txn_count, lag, model.msg_count


def _drawn(ranked: Sequence[Timeline]) -> Iterator[Markup]:
    yield legend()
    for number, model in enumerate(ranked[:DRAWN]):
        heading = join([tag("h3", tag("bdi", model.name)), tag("p", facts(model), class_="facts")])
        pictures = [
            svg(draw(model, width), f"topic-{number}-{name}", name)
            for name, width in (("wide", WIDE), ("narrow", NARROW))
        ]
        body = tag("figure", pictures)
        if number < _OPEN or model.open_transactions:
            yield tag("article", heading, body)
        else:
            yield tag("article", tag("details", tag("summary", heading), body))
    if len(ranked) > DRAWN:
        left = plural(len(ranked) - DRAWN, "more topic is", "more topics are")
        yield tag(
            "p",
            f"{left} not drawn here: ",
            tag("code", line("transactions timeline", "TOPIC")),
            class_="more",
        )


def legend() -> Markup:
    """Return the legend of all drawings."""
    return tag(
        "ul",
        [tag("li", sample(*shapes), text) for text, shapes in _LEGEND],
        class_="legend",
        aria_label="Legend",
    )


def _bar(form: str, kind: str, height: int) -> Shape:
    return Shape(form, kind, 1, 7 - height / 2, 22, height)


def _own(kind: str) -> Shape:
    return Shape("rect", kind, 3, 2, 12, 10)


_LEGEND = (
    (
        "ledgers, one beside the other",
        (_bar("rect", "ledger", 12), Shape("rect", "ledger odd", 12, 1, 11, 12)),
    ),
    ("readable", (_bar("rect", "readable", 12),)),
    ("blocked", (_bar("stripes", "blocked", 12),)),
    ("maxReadPosition", (Shape("line", "bound", 12, 0, 0, 14),)),
    ("a transaction's messages, first to last", (_bar("rect", "extent", 2), _own("own"))),
    ("the same: overdue, or its owner stopped or gone", (_bar("rect", "extent", 2), _own("own alarming"))),
    ("what waits for it", (_bar("rect", "stretch", 14),)),
    ("acknowledged", (_bar("rect", "acknowledged", 4),)),
    ("in flight", (_bar("stripes", "flight", 10),)),
    ("acknowledged in an open transaction", (_bar("rect", "pending", 10),)),
    ("ready to be handed out", (_bar("rect", "visible", 10),)),
    ("before its delivery time", (_bar("stripes", "delayed", 10),)),
    ("cursor, READ_COMMITTED", (Shape("down", "cursor", 7, 2, 10, 10),)),
    ("cursor, READ_UNCOMMITTED", (Shape("diamond", "cursor", 7, 2, 10, 10),)),
    ("smaller scale before", (_bar("rect", "ledger", 12), Shape("break", "break", 8, 0, 8, 14))),
)
