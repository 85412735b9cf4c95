"""The drawing of a topic's positions: ledgers, transactions and cursors on a picture of a given width.

Draws the model of `Store.timeline`, as the drawing for terminals does (`txnctl/output/timeline.py`), on the same axis.
Pure: a model in, shapes out. On a wide picture names are left of the tracks, on a narrow picture above.
"""

from __future__ import annotations

from txnctl.output.axis import Axis, run_of
from txnctl.output.human import count, duration, labels_text, plural
from txnctl.output.timeline import columns_of, facts, stretches_of
from txnctl.report.shapes import CELL, LINE, DrawingRow, Label, PageDrawing, Shape, cells, fitted, lanes
from txnctl.report.words import description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.stats import SubscriptionStats
    from storage.reports.timeline import Blocking, Timeline
    from storage.values.position import Position

WIDE, NARROW = 960, 360
"""The widths of the two pictures."""
TRANSACTIONS_DRAWN = 20
SUBSCRIPTIONS_DRAWN = 20

_GUTTER = 236
_MARGIN = 6
"""Room for half a mark at both ends of a track."""
_SEGMENT_MIN = 3
"""Narrower ledgers are drawn together."""
_SEEN = 3
"""The least width of a figure, so that single messages are visible."""
_MARK = 10
_BREAK = 8
_FIGURES = {
    "acknowledged": ("rect acknowledged", 4), "inFlight": ("stripes flight", 10), "pending": ("rect pending", 10),
    "ready": ("rect visible", 10), "blocked": ("stripes blocked", 10), "delayed": ("stripes delayed", 10),
}  # fmt: skip
"""Figure and height of messages by their state for a subscription."""


def draw(model: Timeline, width: int) -> PageDrawing:
    """Draw one topic."""
    return _Layout(model, width).drawing


class _Layout:
    """Adds rows from top to bottom."""

    def __init__(self, model: Timeline, width: int) -> None:
        self._model = model
        self._stacked = width < WIDE
        self._left = _MARGIN if self._stacked else _GUTTER + _MARGIN
        self._end = width if self._stacked else _GUTTER - 2 * CELL
        self._track = 16 if self._stacked else 20
        focus = model.max_read_position if model.open_transactions else None
        self._axis = Axis(model.ledgers, width - self._left - _MARGIN, focus, model.places)
        self._right = self._left + self._axis.columns
        self.drawing = PageDrawing(f"Positions of {model.name}", description(model), width)
        self._y = 4.0
        self._tracks: list[float] = []
        self._lay_out()
        self.drawing.height = self._y

    def _lay_out(self) -> None:
        top = self._positions()
        self._ledgers()
        self._readable()
        chain = self._model.open_transactions
        for item in chain[:TRANSACTIONS_DRAWN]:
            self._transaction(item)
        self._more(len(chain) - TRANSACTIONS_DRAWN, "more open transaction")
        subscriptions = list(self._model.subscriptions.items())
        if len(subscriptions) > SUBSCRIPTIONS_DRAWN:
            subscriptions.sort(key=lambda item: (-item[1].blocked, -item[1].visible))
        for name, stats in subscriptions[:SUBSCRIPTIONS_DRAWN]:
            self._subscription(name, stats)
        self._more(len(subscriptions) - SUBSCRIPTIONS_DRAWN, "more subscription")
        self._bound(top)

    # -- rows

    def _row(self, note: str, *lines: tuple[str, str, str]) -> tuple[DrawingRow, float]:
        """Add a row with its names, each line a left text, a right text and its kind; return the row and the top of its
        track.
        """
        row = DrawingRow(note)
        room = int(self._end / CELL)
        for number, (text, right, kind) in enumerate(lines):
            baseline = self._y + 13 + number * LINE + (0 if self._stacked or len(lines) > 1 else LINE / 2)
            beside = fitted(right, room)
            left = room - cells(beside) - 1 if beside else room
            row.labels.append(Label(fitted(text, left), "name" if not number else "soft", 0, baseline))
            if beside:
                row.labels.append(Label(beside, kind, self._end, baseline, ends=True))
        track = self._y + (len(lines) * LINE + 5 if self._stacked else 6)
        self._tracks.append(track)
        self.drawing.rows.append(row)
        self._y = track + self._track + (10 if self._stacked else 14)
        return row, track

    def _x(self, column: int) -> float:
        return float(self._left + column)

    def _put(self, row: DrawingRow, figure: str, columns: tuple[int, int], y: float, height: float) -> None:
        """Draw a figure, given as its form and kind, between two columns; nothing between equal columns."""
        begin, end = columns
        form, _, kind = figure.partition(" ")
        if end > begin:
            row.shapes.append(Shape(form, kind, self._x(begin), y, end - begin, height))

    def _more(self, left: int, noun: str) -> None:
        if left > 0:
            row = DrawingRow("")
            row.labels.append(Label(f"{plural(left, noun)}", "soft", 0, self._y + 11))
            self.drawing.rows.append(row)
            self._y += LINE + 8

    def _positions(self) -> float:
        """Add the names of positions, in lanes above all tracks; return where the line of maxReadPosition begins."""
        model, row = self._model, DrawingRow("")
        x = self._x(self._axis.end(model.max_read_position))
        texts = [(f"maxReadPosition {model.max_read_position}", x)]
        if self._axis.total:
            texts.append((f"lastConfirmedEntry {model.last_confirmed_entry}", float(self._right)))
            texts.append((f"first {model.first_position or '-'}", float(self._left)))
        label_extents = [(line_x, cells(text) * CELL) for text, line_x in texts]
        label_places = lanes(label_extents, 0 if self._stacked else _GUTTER, self._right + _MARGIN)
        depth = max(lane for _, lane in label_places) + 1
        for number, ((text, _), (start, lane)) in enumerate(zip(texts, label_places, strict=True)):
            baseline = self._y + (depth - lane) * LINE - 3
            row.labels.append(Label(text, "soft" if number else "name", start, baseline))
        self.drawing.rows.append(row)
        self._y += depth * LINE + 4
        return self._y

    def _ledgers(self) -> None:
        ledgers = [row.ledger for row in self._model.ledgers]
        ids = f"{ledgers[0].ledger_id} to {ledgers[-1].ledger_id}" if len(ledgers) > 1 else ""
        row, y = self._row(
            f"{plural(len(ledgers), 'ledger')} {ids}", ("ledgers", count(len(ledgers)), "soft")
        )
        for number, (name, begin, end) in enumerate(self._segments()):
            self._put(row, "rect ledger odd" if number % 2 else "rect ledger", (begin, end), y, self._track)
            free, room = self._free(begin, end)
            texts = [text for text in (f"ledger {name}", name) if cells(text) * CELL + 8 <= room]
            if texts:
                row.labels.append(Label(texts[0], "inside", self._x(free) + 4, y + self._track / 2 + 4))
        if self._axis.join:
            x = self._x(self._axis.join) - 2 * _BREAK
            row.shapes.append(Shape("break", "break", x, y - 2, _BREAK, self._track + 4))

    def _free(self, begin: int, end: int) -> tuple[int, int]:
        """Return the widest part of a segment for its name: left or right of maxReadPosition's line."""
        cut = self._axis.end(self._model.max_read_position)
        before = cut - (2 * _BREAK if self._axis.join else _MARGIN)
        if end <= before or begin >= cut:
            return begin, end - begin
        return max(
            (begin, before - begin), (cut + _MARGIN, end - cut - _MARGIN), key=lambda stretch: stretch[1]
        )

    def _segments(self) -> Iterator[tuple[str, int, int]]:
        """Name the stretches of the axis: a ledger each, or several that are too short to be drawn alone."""
        begin, first, last = 0, None, None
        for ledger, _, messages_before in self._model.ledgers:
            if not ledger.messages:
                continue
            first, last = ledger.ledger_id if first is None else first, ledger.ledger_id
            end = self._axis.column(messages_before + ledger.messages)
            if end - begin >= _SEGMENT_MIN:
                yield str(first) if first == last else f"{first}-{last}", begin, end
                begin, first = end, None
        if first is not None:
            yield str(last), begin, self._axis.columns

    def _readable(self) -> None:
        model = self._model
        lines = [("readable", count(model.readable.readable_messages), "soft")]
        if model.open_transactions:
            lines.append(("blocked", count(model.readable.blocked_messages), "soft"))
        row, y = self._row(f"READ_COMMITTED reads up to {model.max_read_position}", *lines)
        if not self._axis.total:
            row.labels.append(Label("no messages yet", "soft", self._x(8), y + self._track / 2 + 4))
            return
        through = self._axis.end(model.max_read_position)
        self._put(row, "rect readable", (0, through), y, self._track)
        self._put(row, "stripes blocked", (through, self._axis.columns), y, self._track)

    def _transaction(self, transaction: Blocking) -> None:
        holder, written = transaction.holder, transaction.written
        state = "ORPHANED" if holder.orphaned else "OVERDUE" if holder.overdue else holder.owner_state
        alarming = state in ("ORPHANED", "OVERDUE", "stopped")
        who = labels_text(holder.labels) or holder.owner.address
        row, y = self._row(
            facts(transaction),
            (str(holder.txn_id), state, "alarm" if alarming else "state"),
            (f"{duration(holder.age_ms)} {who}", f"frees {count(transaction.frees)}", "soft"),
        )
        begin, end = self._span(transaction.holds_from, transaction.holds_through)
        self._put(row, "rect stretch", (begin, end), y, self._track)
        begin, end = self._span(written.first_position, written.last_position)
        self._put(row, "rect extent", (begin, end), y + self._track / 2 - 1, 2)
        kind = "own alarming" if alarming else "own"
        for begin, end in self._runs(written.positions):
            self._put(row, f"rect {kind}", (begin, end), y + 3, self._track - 6)

    def _span(self, first: Position, last: Position) -> tuple[int, int]:
        """Return the columns from one position through another; at least a few, so that a single message is visible."""
        begin = self._axis.start(first)
        end = max(self._axis.end(last), begin + _SEEN)
        over = max(0, end - self._axis.columns)
        return begin - over, end - over

    def _runs(self, positions: list[str]) -> Iterator[tuple[int, int]]:
        """Return the columns of a transaction's own messages, with adjacent runs merged."""
        begin = end = -1
        for text in positions:
            a, b = self._span(*run_of(text))
            if begin < 0:
                begin, end = a, b
            elif a <= end:
                end = max(end, b)
            else:
                yield begin, end
                begin, end = a, b
        if begin >= 0:
            yield begin, end

    def _subscription(self, name: str, stats: SubscriptionStats) -> None:
        level, verdict = stats.subscription_isolation_level, stats.verdict
        row, y = self._row(
            f"{name}: {stats.type}, {level}, {verdict}; acknowledged through "
            f"{stats.mark_delete_position}; {count(stats.visible)} visible, {count(stats.blocked)} blocked",
            (name, verdict, "alarm" if verdict in ("blocked", "mixed", "stopped") else "state"),
            (f"{stats.type} {level}", "skip" if stats.on_open == "skip" else "", "soft"),
        )
        done = self._axis.end(stats.mark_delete_position)
        middle = y + self._track / 2
        for state, begin, end in columns_of(stretches_of(self._model, name, stats), self._axis):
            figure, height = _FIGURES[state]
            self._put(row, figure, (begin, end), middle - height / 2, height)
        form = "diamond" if level == "READ_UNCOMMITTED" else "down"
        x = self._x(done) - _MARK / 2
        row.shapes.append(Shape(form, "cursor", x, middle - _MARK / 2, _MARK, _MARK))

    def _bound(self, top: float) -> None:
        """Draw the line of maxReadPosition through all tracks, with gaps where names stand between the tracks."""
        x = self._x(self._axis.end(self._model.max_read_position))
        row = DrawingRow(f"maxReadPosition {self._model.max_read_position}")
        last = self._tracks[-1] + self._track + 3
        if self._stacked:
            row.shapes += [Shape("line", "bound", x, track - 3, 0, self._track + 6) for track in self._tracks]
        else:
            row.shapes.append(Shape("line", "bound", x, top, 0, last - top))
        self.drawing.rows.append(row)
