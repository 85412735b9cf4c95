"""`txnctl topics positions`: the landmarks of a topic, in order, on one ruler."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.topic import AS_OF, NAMES
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural
from txnctl.output.screen import heading, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.stats_internal import InternalStats, LedgerRow
    from storage.values.position import Position
    from txnctl.cli.context import Context


class Landmark(NamedTuple):
    """A position of a topic that has a meaning, with the entries on both sides."""

    position: Position
    kind: str
    name: str | None
    entries_before: int
    entries_after: int


class TopicPositions(NamedTuple):
    """The landmarks of a topic, in order."""

    topic: str
    name: str
    as_of_at_ms: int
    entries: int
    max_read_position: Position
    last_confirmed_entry: Position
    positions: list[Landmark]


class Line(NamedTuple):
    """A line of the report: a position, the ruler, and the landmarks there in words."""

    landmark: Landmark
    ruler: str
    words: str


POSITIONS = fields_of(
    TopicPositions,
    {
        **NAMES,
        **AS_OF,
        "entries": Help("Entries stored, markers included."),
        "max_read_position": Help("How far READ_COMMITTED reads."),
        "last_confirmed_entry": Help("The last entry written, markers included."),
        "positions": Help(
            "In order: position, kind (ledger, markDeletePosition, readPosition, maxReadPosition, openTransaction, "
            "lastConfirmedEntry), name (ledger, subscription or transaction id, or null), entriesBefore, entriesAfter."
        ),
    },
)

_COLUMNS: tuple[Column[Line], ...] = (
    Column("POSITION", "position", lambda line: line.landmark.position),
    Column("AFTER", "integer", lambda line: line.landmark.entries_after),
    Column("LOG", "position", lambda line: line.ruler),
    Column("WHAT", "text", lambda line: line.words),
)

RULER = 32
"""Characters of the ruler: `=` up to maxReadPosition, `-` beyond, `|` at the position of the line."""

# Of two landmarks at one position the first in this order is named first.
_KINDS = (
    "ledger",
    "openTransaction",
    "markDeletePosition",
    "readPosition",
    "maxReadPosition",
    "lastConfirmedEntry",
)


@reads_store
@argument("topic", type=TOPIC, help="The topic.")
@output(POSITIONS, name_field="name")
@example("txnctl topics positions orders", setup="txnctl topics create orders")
def positions(context: Context, topic: str) -> None:
    """Show the order of ledgers, maxReadPosition, open transactions and cursors.

    One line a position, in order. The ruler is the whole topic: `=` is readable at READ_COMMITTED, `-` lies behind the
    first open transaction, `|` is the position of the line. AFTER counts the entries behind that position.
    """
    internal = context.store.reports.topic_stats_internal(topic)
    context.show(
        TopicPositions(
            topic=internal.topic,
            name=internal.name,
            as_of_at_ms=internal.as_of_at_ms,
            entries=internal.number_of_entries,
            max_read_position=internal.max_read_position,
            last_confirmed_entry=internal.last_confirmed_entry,
            positions=_landmarks(internal),
        ),
        table=lambda row: _screen(context, row),
    )


def _landmarks(internal: InternalStats) -> list[Landmark]:
    """Everything that has a position, in order, with the entries on both sides."""
    landmarks = sorted(
        _positions_of(internal), key=lambda mark: (mark[0], _KINDS.index(mark[1]), mark[2] or "")
    )
    total = sum(ledger.entries for ledger in internal.ledgers)
    rows = []
    for position, kind, name in landmarks:
        through = _entries_through(internal.ledgers, position)
        before = max(0, through - 1) if position.entry_id >= 0 else through
        rows.append(Landmark(position, kind, name, before, total - through))
    return rows


def _positions_of(internal: InternalStats) -> Iterator[tuple[Position, str, str | None]]:
    """Position, kind and name of every landmark, in no order."""
    from storage.values.position import Position

    for ledger in internal.ledgers:
        yield Position(ledger.ledger_id, 0 if ledger.entries else -1), "ledger", str(ledger.ledger_id)
    for name, cursor in internal.cursors.items():
        yield cursor.mark_delete_position, "markDeletePosition", name
        yield cursor.read_position, "readPosition", name
    for txn in internal.open_transactions:
        yield txn.first_position, "openTransaction", str(txn.txn_id)
    yield internal.max_read_position, "maxReadPosition", None
    yield internal.last_confirmed_entry, "lastConfirmedEntry", None


def _entries_through(ledgers: Sequence[LedgerRow], position: Position) -> int:
    """Entries up to and including a position: entry ids are dense within a ledger."""
    through = 0
    for ledger in ledgers:
        if ledger.ledger_id < position.ledger_id:
            through += ledger.entries
        elif ledger.ledger_id == position.ledger_id:
            through += min(position.entry_id + 1, ledger.entries)
    return through


def _screen(context: Context, row: TopicPositions) -> Iterator[str]:
    yield heading(context, row.name, plural(row.entries, "entry", "entries"), row.as_of_at_ms)
    yield ""
    yield from section(context, context.table_of(_lines(row), _COLUMNS, indent=2))


def _lines(row: TopicPositions) -> list[Line]:
    """One line a position, with all that is there."""
    total = row.entries
    readable = next(landmark for landmark in row.positions if landmark.kind == "maxReadPosition")
    # Where the readable part of the ruler ends.
    edge = _column(total - readable.entries_after, total)
    lines: list[Line] = []
    for landmark in row.positions:
        if landmark.kind == "readPosition" and _is_idle(landmark, row.positions):
            continue
        if lines and lines[-1].landmark.position == landmark.position:
            lines[-1] = lines[-1]._replace(words=f"{lines[-1].words}; {_words(landmark)}")
            continue
        ruler = list("=" * edge + "-" * (RULER - edge))
        ruler[min(_column(landmark.entries_before, total), RULER - 1)] = "|"
        lines.append(Line(landmark, "".join(ruler), _words(landmark)))
    return lines


def _column(entries: int, total: int) -> int:
    return RULER * entries // total if total else 0


def _is_idle(read: Landmark, landmarks: Sequence[Landmark]) -> bool:
    """Nothing is in flight: dispatch stands where everything is acknowledged."""
    return any(
        landmark.kind == "markDeletePosition"
        and landmark.name == read.name
        and landmark.position == read.position
        for landmark in landmarks
    )


_WORDS = {
    "ledger": "ledger {}",
    "openTransaction": "first message of {} (open)",
    "markDeletePosition": "mark-delete of {}",
    "readPosition": "read by {}",
}


def _words(landmark: Landmark) -> str:
    """The kind and name of a landmark in words."""
    return _WORDS.get(landmark.kind, landmark.kind).format(landmark.name)
