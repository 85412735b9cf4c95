"""The drawing of a topic's positions, for a terminal: a line each for ledgers, readable messages, transactions,
cursors.

Draws the model of `Store.timeline`, like the report. Pure: text in, text out.
"""

from __future__ import annotations

from txnctl.output.axis import Axis, run_of
from txnctl.output.human import plural
from txnctl.output.prose import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.message_scale import Stretch
    from storage.reports.stats import SubscriptionStats
    from storage.reports.timeline import Blocking, Timeline
    from storage.values.position import Position

_NAME_MAX = 20
_COLUMNS_MIN = 20
SHOWN = 12
"""Open transactions that are drawn."""
_SUBSCRIPTIONS_MAX = 20

_UNICODE = {
    "ledger": "├", "rule": "─", "join": "≈", "readable": "█", "blocked": "░", "own": "●", "stretch": "━", "after": "·",
    "acknowledged": "═", "inFlight": "▒", "pending": "▓", "ready": "╌", "mark": "▲", "delayed": "┊",
}  # fmt: skip
_ASCII = {
    "ledger": "|", "rule": "-", "join": "~", "readable": "#", "blocked": ":", "own": "o", "stretch": "=", "after": ".",
    "acknowledged": "=", "inFlight": "+", "pending": "%", "ready": "-", "mark": "^", "delayed": "'",
}  # fmt: skip


NO_BREAK = "\u00a0"


class Drawing:
    """The lines of one model.

    Args:
        width: columns that may be used.
        plain: draw with ASCII alone.
    """

    def __init__(self, model: Timeline, width: int, *, plain: bool) -> None:
        self._model = model
        self._signs = _ASCII if plain else _UNICODE
        self._ellipsis = "..." if plain else "…"
        self._name_max = min(_NAME_MAX, max(len("readable"), width - _COLUMNS_MIN - 4))
        self._open = model.open_transactions[:SHOWN]
        self._subscriptions = list(model.subscriptions.items())[:_SUBSCRIPTIONS_MAX]
        names = ["readable", *[str(transaction.holder.txn_id) for transaction in self._open]]
        names += [self._short(name) for name, _ in self._subscriptions]
        self._label = max(map(len, names))
        columns = max(_COLUMNS_MIN, width - self._label - 4)
        focus = model.max_read_position if model.open_transactions else None
        self._axis = Axis(model.ledgers, columns, focus, model.places)

    def lines(self) -> Iterator[tuple[str, str]]:
        """The kind of each line, for the style, and the line."""
        yield "ledgers", self._line("ledgers", self._ledgers())
        yield "readable", self._line("readable", self._readable())
        for transaction in self._open:
            holder = transaction.holder
            yield (
                "alarm" if holder.orphaned or holder.overdue else "transaction",
                self._line(str(holder.txn_id), self._transaction(transaction)),
            )
        left = len(self._model.open_transactions) - len(self._open)
        if left:
            yield "note", f"  {plural(left, 'more open transaction')}"
        for name, row in self._subscriptions:
            yield "subscription", self._line(self._short(name), self._subscription(name, row))
        left = len(self._model.subscriptions) - len(self._subscriptions)
        if left:
            yield "note", f"  {plural(left, 'more subscription')}"
        yield "mark", self._line("", self._mark())

    def legend(self) -> str:
        """The legend; spaces inside an entry are no-break spaces."""
        signs = self._signs
        words = [f"{signs['readable']} readable"]
        if self._open:
            words += [
                f"{signs['blocked']} blocked", f"{signs['own']} its messages",
                f"{signs['stretch']} waits for it", f"{signs['after']} and after it",
            ]  # fmt: skip
        if self._subscriptions:
            words += [
                f"{signs['acknowledged']} acknowledged", f"{signs['inFlight']} in flight", f"{signs['ready']} ready",
                f"{signs['pending']} acknowledged in an open transaction",
            ]  # fmt: skip
        if any(stats.delayed for _, stats in self._subscriptions):
            words.append(f"{signs['delayed']} delayed")
        if self._axis.join:
            words.append(f"{signs['join']} smaller scale before")
        return "   ".join([word.replace(" ", NO_BREAK) for word in words])

    def _short(self, name: str) -> str:
        return cut(name, self._name_max, self._ellipsis)

    def _line(self, name: str, drawn: str) -> str:
        return f"  {name:{self._label}}  {drawn}".rstrip()

    def _stretch(self, *parts: tuple[str, int]) -> str:
        """A row of signs, each up to a column; the rest is blank."""
        drawn = ""
        for sign, end in parts:
            drawn += (self._signs.get(sign, " ")) * (end - len(drawn))
        return drawn.ljust(self._axis.columns)

    def _ledgers(self) -> str:
        """`├12────├13──`; a ledger below the name of an earlier ledger has no name."""
        drawn = list(self._signs["rule"] * self._axis.columns)
        free = 0
        for ledger, _, messages_before in self._model.ledgers:
            at = self._axis.column(messages_before)
            if at < free or at >= len(drawn):
                continue
            name = f"{self._signs['ledger']}{ledger.ledger_id}"
            drawn[at : at + len(name)] = name
            free = at + len(name)
        if self._axis.join:
            drawn[self._axis.join] = self._signs["join"]
        return "".join(drawn)[: self._axis.columns]

    def _readable(self) -> str:
        through = self._axis.end(self._model.max_read_position)
        return self._stretch(("readable", through), ("blocked", self._axis.columns))

    def _transaction(self, transaction: Blocking) -> str:
        begin, end = self._axis.start(transaction.holds_from), self._axis.end(transaction.holds_through)
        drawn = list(self._stretch((" ", begin), ("stretch", end), ("after", self._axis.columns)))
        for run in transaction.written.positions:
            first, last = run_of(run)
            for at in range(self._axis.start(first), self._axis.cell(last) + 1):
                drawn[at] = self._signs["own"]
        return "".join(drawn)

    def _subscription(self, name: str, stats: SubscriptionStats) -> str:
        drawn = [" "] * self._axis.columns
        for state, begin, end in columns_of(stretches_of(self._model, name, stats), self._axis):
            drawn[begin:end] = self._signs[state] * (end - begin)
        return "".join(drawn)

    def _mark(self) -> str:
        """Where maxReadPosition is, named on the side where there is room."""
        at = min(self._axis.end(self._model.max_read_position), self._axis.columns - 1)
        name = f"maxReadPosition {self._model.max_read_position}"
        if at + 2 + len(name) <= self._axis.columns:
            return f"{' ' * at}{self._signs['mark']} {name}"
        before = f"{name} " if len(name) + 1 <= at else ""
        return f"{before}{self._signs['mark']}".rjust(at + 1)


def bound_of(model: Timeline, stats: SubscriptionStats) -> Position:
    """The last entry that the consumers of a subscription may be handed."""
    reads_all = stats.subscription_isolation_level == "READ_UNCOMMITTED" or stats.on_open == "skip"
    return model.last_confirmed_entry if reads_all else model.max_read_position


_PAINTED = ("acknowledged", "delayed", "ready", "inFlight", "pending", "blocked")
"""States of messages; in a column of several the last of these is seen."""


def columns_of(stretches: Sequence[Stretch], axis: Axis) -> Iterator[tuple[str, int, int]]:
    """The states with their columns, in the order of painting: each has a column at least."""
    for stretch in sorted(stretches, key=lambda painted: _PAINTED.index(painted.state)):
        begin = min(axis.column(stretch.begin), axis.columns - 1)
        yield stretch.state, begin, max(begin + 1, axis.column(stretch.end))


def stretches_of(model: Timeline, name: str, stats: SubscriptionStats) -> Sequence[Stretch]:
    """The states of the messages of a subscription; of one without stretches by its positions alone."""
    if name in model.stretches:
        return model.stretches[name]
    from storage.reports.message_scale import Stretch

    axis, at, stretches = Axis(model.ledgers, 1, None, model.places), 0, []
    handed = stats.read_position if stats.unacked_messages else stats.mark_delete_position
    for state, position in (
        ("acknowledged", stats.mark_delete_position), ("inFlight", handed), ("ready", bound_of(model, stats)),
        ("blocked", model.last_confirmed_entry),
    ):  # fmt: skip
        end = axis.through(position)
        if end > at:
            stretches.append(Stretch(state, at, end))
            at = end
    return stretches
