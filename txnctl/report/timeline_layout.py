"""The drawing of a topic's positions: where ledgers, transactions and cursors lie on a picture of some width.

It draws the model of `Store.timeline`, as the drawing for terminals does (`txnctl/output/timeline.py`), on the same
axis. Pure: the model in, shapes out. On a wide picture the names stand left of the tracks, on a narrow one above.
"""

from __future__ import annotations

from txnctl.output.axis import Axis
from txnctl.output.human import count, duration, plural
from txnctl.output.timeline import facts
from txnctl.report.shapes import CELL, LINE, Drawing, Label, Row, Shape, cells, fitted, lanes
from txnctl.report.words import description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Model = dict[str, Any]

WIDE, NARROW = 960, 360
"""Widths for which it is drawn."""
TRANSACTIONS_DRAWN = 20
SUBSCRIPTIONS_DRAWN = 20

_GUTTER = 236
_MARGIN = 6
"""Room for half a mark at both ends of a track."""
_SEGMENT_MIN = 3
"""Ledgers narrower than this are drawn together."""
_SEEN = 3
"""What is there at all is at least so wide."""
_MARK = 10
_BREAK = 8


def draw(model: Model, width: int) -> Drawing:
    """The picture of one topic."""
    return _Layout(model, width).drawing


class _Layout:
    """Puts one row below the other."""

    def __init__(self, model: Model, width: int) -> None:
        self._model = model
        self._stacked = width < WIDE
        self._left = _MARGIN if self._stacked else _GUTTER + _MARGIN
        self._end = width if self._stacked else _GUTTER - 2 * CELL
        self._track = 16 if self._stacked else 20
        focus = model["maxReadPosition"] if model["openTransactions"] else None
        self._axis = Axis(model["ledgers"], width - self._left - _MARGIN, focus)
        self._right = self._left + self._axis.columns
        self.drawing = Drawing(f"Positions of {model['name']}", description(model), width)
        self._y = 4.0
        self._tracks: list[float] = []
        self._lay_out()
        self.drawing.height = self._y

    def _lay_out(self) -> None:
        top = self._positions()
        self._ledgers()
        self._readable()
        chain = self._model["openTransactions"]
        for each in chain[:TRANSACTIONS_DRAWN]:
            self._transaction(each)
        self._more(len(chain) - TRANSACTIONS_DRAWN, "more open transaction")
        found = list(self._model["subscriptions"].items())
        if len(found) > SUBSCRIPTIONS_DRAWN:
            found.sort(key=lambda item: (-item[1]["blocked"], -item[1]["visible"]))
        for name, each in found[:SUBSCRIPTIONS_DRAWN]:
            self._subscription(name, each)
        self._more(len(found) - SUBSCRIPTIONS_DRAWN, "more subscription")
        self._bound(top)

    # -- rows

    def _row(self, note: str, *lines: tuple[str, str, str]) -> tuple[Row, float]:
        """A row with its names: on each line what stands left, what right, and its kind; and the top of its track."""
        row = Row(note)
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

    def _put(self, row: Row, form: str, kind: str, begin: int, end: int, y: float, height: float) -> None:
        """A figure between two columns; what is there at all is seen."""
        if end > begin:
            row.shapes.append(Shape(form, kind, self._x(begin), y, end - begin, height))

    def _more(self, left: int, noun: str) -> None:
        if left > 0:
            row = Row("")
            row.labels.append(Label(f"{plural(left, noun)}", "soft", 0, self._y + 11))
            self.drawing.rows.append(row)
            self._y += LINE + 8

    def _positions(self) -> float:
        """The names of positions, in lanes above all tracks, and the place where maxReadPosition's begins."""
        model, row = self._model, Row("")
        at = self._x(self._axis.end(model["maxReadPosition"]))
        texts = [(f"maxReadPosition {model['maxReadPosition']}", at)]
        if self._axis.total:
            texts.append((f"lastConfirmedEntry {model['lastConfirmedEntry']}", float(self._right)))
            texts.append((f"first {model['firstPosition'] or '-'}", float(self._left)))
        wanted = [(x, cells(text) * CELL) for text, x in texts]
        found = lanes(wanted, 0 if self._stacked else _GUTTER, self._right + _MARGIN)
        depth = max(lane for _, lane in found) + 1
        for number, ((text, _), (start, lane)) in enumerate(zip(texts, found, strict=True)):
            baseline = self._y + (depth - lane) * LINE - 3
            row.labels.append(Label(text, "soft" if number else "name", start, baseline))
        self.drawing.rows.append(row)
        self._y += depth * LINE + 4
        return self._y

    def _ledgers(self) -> None:
        ledgers = self._model["ledgers"]
        ids = f"{ledgers[0]['ledgerId']} to {ledgers[-1]['ledgerId']}" if len(ledgers) > 1 else ""
        row, y = self._row(
            f"{plural(len(ledgers), 'ledger')} {ids}", ("ledgers", count(len(ledgers)), "soft")
        )
        for number, (name, begin, end) in enumerate(self._segments()):
            self._put(row, "rect", "ledger odd" if number % 2 else "ledger", begin, end, y, self._track)
            free, room = self._free(begin, end)
            texts = [text for text in (f"ledger {name}", name) if cells(text) * CELL + 8 <= room]
            if texts:
                row.labels.append(Label(texts[0], "inside", self._x(free) + 4, y + self._track / 2 + 4))
        if self._axis.join:
            at = self._x(self._axis.join) - 2 * _BREAK
            row.shapes.append(Shape("break", "break", at, y - 2, _BREAK, self._track + 4))

    def _free(self, begin: int, end: int) -> tuple[int, int]:
        """Where a segment has the most room for its name, and how much: on either side of maxReadPosition's line."""
        cut = self._axis.end(self._model["maxReadPosition"])
        before = cut - (2 * _BREAK if self._axis.join else _MARGIN)
        if end <= before or begin >= cut:
            return begin, end - begin
        return max((begin, before - begin), (cut + _MARGIN, end - cut - _MARGIN), key=lambda each: each[1])

    def _segments(self) -> Iterator[tuple[str, int, int]]:
        """What each stretch of the axis is called: a ledger, or several that are too short to be drawn alone."""
        begin, first, last = 0, None, None
        for each in self._model["ledgers"]:
            if not each["entries"]:
                continue
            first, last = each["ledgerId"] if first is None else first, each["ledgerId"]
            end = self._axis.column(each["entriesBefore"] + each["entries"])
            if end - begin >= _SEGMENT_MIN:
                yield str(first) if first == last else f"{first}-{last}", begin, end
                begin, first = end, None
        if first is not None:
            yield str(last), begin, self._axis.columns

    def _readable(self) -> None:
        model = self._model
        lines = [("readable", count(model["readableMessages"]), "soft")]
        if model["openTransactions"]:
            lines.append(("blocked", count(model["blockedMessages"]), "soft"))
        row, y = self._row(f"READ_COMMITTED reads up to {model['maxReadPosition']}", *lines)
        if not self._axis.total:
            row.labels.append(Label("no messages yet", "soft", self._x(8), y + self._track / 2 + 4))
            return
        through = self._axis.end(model["maxReadPosition"])
        self._put(row, "rect", "readable", 0, through, y, self._track)
        self._put(row, "stripes", "blocked", through, self._axis.columns, y, self._track)

    def _transaction(self, each: Model) -> None:
        state = "ORPHANED" if each["orphaned"] else "OVERDUE" if each["overdue"] else str(each["ownerState"])
        alarming = state in ("ORPHANED", "OVERDUE", "stopped")
        labels = " ".join([f"{name}={value}" for name, value in each["labels"].items()])
        who = labels or str(each["owner"]).partition(" (")[0]
        row, y = self._row(
            facts(each),
            (str(each["txnId"]), state, "alarm" if alarming else "state"),
            (f"{duration(each['ageMs'])} {who}", f"frees {count(each['frees'])}", "soft"),
        )
        begin, end = self._span(each["holdsFrom"], each["holdsThrough"])
        self._put(row, "rect", "stretch", begin, end, y, self._track)
        begin, end = self._span(each["firstPosition"], each["lastPosition"])
        self._put(row, "rect", "extent", begin, end, y + self._track / 2 - 1, 2)
        kind = "own alarming" if alarming else "own"
        for begin, end in self._runs(each["positions"]):
            self._put(row, "rect", kind, begin, end, y + 3, self._track - 6)

    def _span(self, first: str, last: str) -> tuple[int, int]:
        """The columns from one position through another; a few at least, so that a single message is seen."""
        begin = self._axis.cell(first)
        end = max(self._axis.end(last), begin + _SEEN)
        over = max(0, end - self._axis.columns)
        return begin - over, end - over

    def _runs(self, positions: list[str]) -> Iterator[tuple[int, int]]:
        """The columns of a transaction's own messages; those that touch are one."""
        begin = end = -1
        for each in positions:
            first, _, last = each.partition("..")
            a, b = self._span(first, last or first)
            if begin < 0:
                begin, end = a, b
            elif a <= end:
                end = max(end, b)
            else:
                yield begin, end
                begin, end = a, b
        if begin >= 0:
            yield begin, end

    def _subscription(self, name: str, each: Model) -> None:
        level = str(each["subscriptionIsolationLevel"])
        row, y = self._row(
            f"{name}: {each['type']}, {level}, {each['verdict']}; acknowledged through "
            f"{each['markDeletePosition']}; {count(each['visible'])} visible, {count(each['blocked'])} blocked",
            (name, str(each["verdict"]), "alarm" if each["verdict"] in ("blocked", "mixed") else "state"),
            (f"{each['type']} {level}", "skip" if each["onOpen"] == "skip" else "", "soft"),
        )
        reads_all = level == "READ_UNCOMMITTED"
        goes_on = reads_all or each["onOpen"] == "skip"
        bound = self._model["lastConfirmedEntry" if goes_on else "maxReadPosition"]
        done = self._axis.end(each["markDeletePosition"])
        handed = max(done, self._axis.end(each["readPosition"])) if each["unackedMessages"] else done
        visible = max(handed, self._axis.end(bound))
        middle = y + self._track / 2
        self._put(row, "rect", "acknowledged", 0, done, middle - 2, 4)
        self._put(row, "stripes", "flight", done, handed, middle - 5, 10)
        self._put(row, "rect", "visible", handed, visible, middle - 5, 10)
        if each["blocked"]:
            self._put(row, "stripes", "blocked", visible, self._axis.columns, middle - 5, 10)
        form = "diamond" if reads_all else "down"
        at = self._x(done) - _MARK / 2
        row.shapes.append(Shape(form, "cursor", at, middle - _MARK / 2, _MARK, _MARK))

    def _bound(self, top: float) -> None:
        """The line of maxReadPosition through all tracks; where names stand between them it leaves these free."""
        at = self._x(self._axis.end(self._model["maxReadPosition"]))
        row = Row(f"maxReadPosition {self._model['maxReadPosition']}")
        last = self._tracks[-1] + self._track + 3
        if self._stacked:
            row.shapes += [
                Shape("line", "bound", at, track - 3, 0, self._track + 6) for track in self._tracks
            ]
        else:
            row.shapes.append(Shape("line", "bound", at, top, 0, last - top))
        self.drawing.rows.append(row)
