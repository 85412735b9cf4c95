"""The drawing of a topic's positions: ledgers, transactions and cursors on a picture of a given width.

Draws the model of `Store.timeline`, as the drawing for terminals does (`txnctl/output/timeline.py`), on the same axis.
Pure: a model in, shapes out. On a wide picture names are left of the tracks, on a narrow picture above.
"""

from __future__ import annotations

from txnctl.fields.holder import facts
from txnctl.fields.owner import about, process_state
from txnctl.output.axis import Axis, run_of
from txnctl.output.escape import printable
from txnctl.output.human import count, duration, plural
from txnctl.output.timeline import columns_of, stretches_of
from txnctl.report.shapes import CELL, LINE, DrawingRow, Label, PageDrawing, Shape, cells, in_lines, lanes
from txnctl.report.words import description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.stats import SubscriptionStats
    from storage.reports.timeline import Blocking, Timeline
    from storage.values.position import Position

WIDE, NARROW = 960, 360
"""The widths of the two pictures."""
TRANSACTIONS_DRAWN = 8
SUBSCRIPTIONS_DRAWN = 8

_GUTTER_MIN, _GUTTER_MAX = 236, 400
"""Room for the names on the left of a wide picture: as much as the longest needs, within these bounds."""
_NAME_LINES = 4
"""A longer name is cut after so many lines."""
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


_Lines = tuple[tuple[str, str, str], ...]
"""The names of a track, a tuple for each line: left text, right text, and the kind of the right text."""


def draw(model: Timeline, width: int, *, rows_max: int = TRANSACTIONS_DRAWN) -> PageDrawing:
    """Draw one topic.

    Args:
        rows_max: the most transactions drawn, and the most subscriptions.
    """
    return _Layout(model, width, rows_max).drawing


class _Layout:
    """Adds rows from top to bottom."""

    def __init__(self, model: Timeline, width: int, rows_max: int) -> None:
        self._model = model
        self._stacked = width < WIDE
        self._transactions = model.open_transactions[: min(rows_max, TRANSACTIONS_DRAWN)]
        self._subscriptions = _most_stuck(model, min(rows_max, SUBSCRIPTIONS_DRAWN))
        self._gutter = 0 if self._stacked else self._room_for_names()
        self._left = self._gutter + _MARGIN
        self._end = width if self._stacked else self._gutter - 2 * CELL
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
        if len(self._model.ledgers) > 1:
            self._ledgers()
        self._readable()
        for item in self._transactions:
            self._transaction(item)
        self._more(len(self._model.open_transactions) - len(self._transactions), "more open transaction")
        for name, stats in self._subscriptions:
            self._subscription(name, stats)
        self._more(len(self._model.subscriptions) - len(self._subscriptions), "more subscription")
        self._bound(top)

    # -- names

    def _room_for_names(self) -> int:
        """Return the width of the part left of the tracks, in which the longest name has room."""
        lines = [line for item in self._transactions for line in _transaction_lines(item)]
        lines += [line for name, stats in self._subscriptions for line in _subscription_lines(name, stats)]
        needed = (
            max([cells(printable(left)) + cells(right) + 4 for left, right, _ in lines], default=0) * CELL
        )
        return int(max(_GUTTER_MIN, min(needed, _GUTTER_MAX)))

    def _name_track(self, row: DrawingRow, lines: _Lines) -> int:
        """Add the names of a track to a row, broken where they have no room; return the number of lines."""
        room, used = int(self._end / CELL), 0
        first = self._y + 13 + (LINE / 2 if not self._stacked and len(lines) == 1 else 0)
        for number, (text, beside, kind) in enumerate(lines):
            one = cells(printable(text)) + cells(beside) + 1 <= room
            pieces = in_lines(text, room, _NAME_LINES)
            for place, piece in enumerate(pieces):
                baseline = first + (used + place) * LINE
                row.labels.append(Label(piece, "name" if not number else "soft", 0, baseline))
            used += len(pieces) - (1 if one and beside else 0)
            if beside:
                state = in_lines(beside, room, 1)[0]
                row.labels.append(Label(state, kind, self._end, first + used * LINE, ends=True))
                used += 1
        return used

    # -- rows

    def _row(self, note: str, lines: _Lines) -> tuple[DrawingRow, float]:
        """Add a row with its names; return the row and the top of its track."""
        row = DrawingRow(note)
        used = self._name_track(row, lines)
        track = self._y + (used * LINE + 5 if self._stacked else 6)
        self._tracks.append(track)
        self.drawing.rows.append(row)
        below = track + self._track + (10 if self._stacked else 14)
        self._y = below if self._stacked else max(below, self._y + used * LINE + 10)
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
        through = self._axis.through(model.max_read_position)
        x = self._x(self._axis.end(model.max_read_position))
        after = f" after {count(through)}" if model.open_transactions else ""
        texts = [(f"maxReadPosition {model.max_read_position}{after}", x)]
        if self._axis.total:
            texts.append((plural(self._axis.total, "message"), float(self._right)))
            texts.append(("0", float(self._left)))
        label_extents = [(line_x, cells(text) * CELL) for text, line_x in texts]
        label_places = lanes(label_extents, self._gutter, self._right + _MARGIN)
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
            f"{plural(len(ledgers), 'ledger')} {ids}", (("ledgers", count(len(ledgers)), "soft"),)
        )
        for number, (name, begin, end) in enumerate(self._segments()):
            self._put(row, "rect ledger odd" if number % 2 else "rect ledger", (begin, end), y, self._track)
            free, room = self._free(begin, end)
            texts = [text for text in (f"ledger {name}", name) if cells(text) * CELL + 8 <= room]
            if texts:
                row.labels.append(Label(texts[0], "inside", self._x(free) + 4, y + self._track / 2 + 4))

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
        row, y = self._row(f"READ_COMMITTED reads up to {model.max_read_position}", tuple(lines))
        if not self._axis.total:
            row.labels.append(Label("no messages yet", "soft", self._x(8), y + self._track / 2 + 4))
            return
        through = self._axis.end(model.max_read_position)
        self._put(row, "rect readable", (0, through), y, self._track)
        self._put(row, "stripes blocked", (through, self._axis.columns), y, self._track)
        if self._axis.join:
            x = self._x(self._axis.join) - 2 * _BREAK
            row.shapes.append(Shape("break", "break", x, y - 2, _BREAK, self._track + 4))

    def _transaction(self, transaction: Blocking) -> None:
        written, alarming = transaction.written, _state(transaction) in _ALARMING
        row, y = self._row(facts(transaction), _transaction_lines(transaction))
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
            _subscription_lines(name, stats),
        )
        done = self._axis.end(stats.mark_delete_position)
        middle = y + self._track / 2
        for state, begin, end in _joined(columns_of(stretches_of(self._model, name, stats), self._axis)):
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


def _most_stuck(model: Timeline, limit: int) -> list[tuple[str, SubscriptionStats]]:
    """Return the subscriptions by name, or of more than the limit those that wait for most."""
    rows = list(model.subscriptions.items())
    if len(rows) > limit:
        rows.sort(key=lambda item: (-item[1].blocked, -item[1].visible))
    return rows[:limit]


_ALARMING = ("ORPHANED", "OVERDUE", "stopped")


def _state(transaction: Blocking) -> str:
    holder = transaction.holder
    return "ORPHANED" if holder.orphaned else "OVERDUE" if holder.overdue else process_state(holder)


def _transaction_lines(transaction: Blocking) -> _Lines:
    holder, word = transaction.holder, _state(transaction)
    return (
        (str(holder.txn_id), word, "alarm" if word in _ALARMING else "state"),
        (f"{duration(holder.age_ms)} {about(holder)}", f"frees {count(transaction.frees)}", "soft"),
    )


def _subscription_lines(name: str, stats: SubscriptionStats) -> _Lines:
    alarming = stats.verdict in ("blocked", "mixed", "stopped")
    return (
        (name, stats.verdict, "alarm" if alarming else "state"),
        (
            f"{stats.type} {stats.subscription_isolation_level}",
            "skip" if stats.on_open == "skip" else "",
            "soft",
        ),
    )


def _joined(painted: Iterator[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Join neighbouring columns of one state, in the order of painting."""
    last: tuple[str, int, int] | None = None
    for state, begin, end in painted:
        if last is not None and last[0] == state and last[1] <= begin <= last[2]:
            last = (state, last[1], max(last[2], end))
            continue
        if last is not None:
            yield last
        last = (state, begin, end)
    if last is not None:
        yield last
