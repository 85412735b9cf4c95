"""Pictures of topics: each topic drawn for two widths, within a bound of bytes, and the legend of what was drawn."""

from __future__ import annotations

from storage.reports.timeline import waiting
from txnctl.output.human import plural
from txnctl.output.shell import line
from txnctl.report.markup import Markup, tag
from txnctl.report.shapes import Shape
from txnctl.report.svg import sample, svg
from txnctl.report.timeline_layout import NARROW, TRANSACTIONS_DRAWN, WIDE, draw
from txnctl.report.words import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.timeline import Timeline

FIGURE_BYTES_MAX = 96 << 10
"""A larger picture is drawn with fewer rows."""
FIGURES_BYTES_MAX = 384 << 10
"""After so many bytes of pictures no further topic is drawn."""
_FEW_ROWS = 2


class Pictures:
    """The pictures of a page.

    Attributes:
        drawn: names of the topics with a picture.
        kinds: form and kind of every shape in the pictures.
    """

    def __init__(self) -> None:
        self.drawn: set[str] = set()
        self.kinds: set[tuple[str, str]] = set()
        self._bytes = 0

    def figure(self, model: Timeline) -> Markup:
        """Return the picture of a topic with a caption, or the command that draws the topic, where there is no room."""
        name = tag("p", tag("b", tag("bdi", model.name)), class_="topic")
        caption = tag("figcaption", facts(model))
        pictures = self._pictures(model, TRANSACTIONS_DRAWN)
        if sum(map(len, pictures)) > FIGURE_BYTES_MAX:
            pictures = self._pictures(model, _FEW_ROWS)
        size = sum(map(len, pictures))
        if size > FIGURE_BYTES_MAX or self._bytes + size > FIGURES_BYTES_MAX:
            command = tag("code", line("transactions timeline", model.name))
            return tag("figure", name, caption, tag("p", "Not drawn here: ", command, class_="more"))
        self._bytes += size
        self.drawn.add(model.topic)
        return tag("figure", name, pictures, caption)

    def _pictures(self, model: Timeline, rows_max: int) -> list[Markup]:
        pictures = []
        for name, width in (("wide", WIDE), ("narrow", NARROW)):
            drawing = draw(model, width, rows_max=rows_max)
            self.kinds.update((shape.form, shape.kind) for shape in drawing.shapes())
            pictures.append(svg(drawing, f"topic-{len(self.drawn)}-{name}", name))
        return pictures

    def legend(self) -> Markup | None:
        """Return the legend of the shapes that were drawn; None without a picture."""
        if not self.drawn:
            return None
        rows = [
            (text, shapes) for text, shapes in _LEGEND if (shapes[-1].form, shapes[-1].kind) in self.kinds
        ]
        return tag(
            "ul",
            [tag("li", sample(*shapes), text) for text, shapes in rows],
            class_="legend",
            aria_label="Legend",
        )


def interest(model: Timeline) -> tuple[int, ...]:
    """Return the rank of a topic: blocked messages, open transactions, lag, messages."""
    lag = max((stats.visible for stats in model.subscriptions.values()), default=0)
    return waiting(model).messages, model.ongoing_txn_count, lag, model.msg_count


def not_drawn(number: int) -> Markup | None:
    """Return the command for topics without a picture; None for no topic."""
    if number <= 0:
        return None
    left = plural(number, "more topic is", "more topics are")
    command = tag("code", line("transactions timeline", "TOPIC"))
    return tag("p", f"{left} not drawn here: ", command, class_="more")


def _bar(form: str, kind: str, height: int) -> Shape:
    return Shape(form, kind, 1, 7 - height / 2, 22, height)


def _own(kind: str) -> Shape:
    return Shape("rect", kind, 3, 2, 12, 10)


_LEGEND = (
    ("ledgers", (_bar("rect", "ledger", 12), Shape("rect", "ledger odd", 12, 1, 11, 12))),
    ("readable", (_bar("rect", "readable", 12),)),
    ("blocked", (_bar("stripes", "blocked", 12),)),
    ("maxReadPosition", (Shape("line", "bound", 12, 0, 0, 14),)),
    ("messages of a transaction", (_bar("rect", "extent", 2), _own("own"))),
    (
        "messages of an overdue, orphaned or stopped one",
        (_bar("rect", "extent", 2), _own("own alarming")),
    ),
    ("waits for it", (_bar("rect", "stretch", 14),)),
    ("acknowledged", (_bar("rect", "acknowledged", 4),)),
    ("in flight", (_bar("stripes", "flight", 10),)),
    ("acknowledged in an open transaction", (_bar("rect", "pending", 10),)),
    ("ready to be handed out", (_bar("rect", "visible", 10),)),
    ("before its delivery time", (_bar("stripes", "delayed", 10),)),
    ("cursor, READ_COMMITTED", (Shape("down", "cursor", 7, 2, 10, 10),)),
    ("cursor, READ_UNCOMMITTED", (Shape("diamond", "cursor", 7, 2, 10, 10),)),
    ("smaller scale before", (_bar("rect", "readable", 12), Shape("break", "break", 8, 0, 8, 14))),
)
