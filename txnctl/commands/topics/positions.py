"""`txnctl topics positions`: the landmarks of a topic, in order, on one ruler."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.topic import AS_OF, NAMES
from txnctl.output.field import Field
from txnctl.output.human import plural
from txnctl.output.screen import heading, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

POSITIONS = (
    *NAMES,
    *AS_OF,
    Field("entries", "integer", "Entries stored, markers included."),
    Field("maxReadPosition", "position", "How far READ_COMMITTED reads."),
    Field("lastConfirmedEntry", "position", "The last entry written, markers included."),
    Field(
        "positions",
        "list",
        "In order: position, kind (ledger, markDeletePosition, readPosition, maxReadPosition, openTransaction, "
        "lastConfirmedEntry), name (ledger, subscription or transaction id, or null), entriesBefore, entriesAfter.",
    ),
)

COLUMNS = (
    Field("position", "position", "The entry."),
    Field("entriesAfter", "integer", "Entries after it.", heading="AFTER"),
    Field("ruler", "position", "Where it lies.", heading="LOG"),
    Field("what", "text", "What is there."),
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
    internal = to_json(context.store.reports.topic_stats_internal(topic))
    context.show(
        {
            "topic": internal["topic"],
            "name": internal["name"],
            "asOfAt": internal["asOfAt"],
            "asOfMs": internal["asOfMs"],
            "entries": internal["numberOfEntries"],
            "maxReadPosition": internal["maxReadPosition"],
            "lastConfirmedEntry": internal["lastConfirmedEntry"],
            "positions": _landmarks(internal),
        },
        table=lambda row: _screen(context, row),
    )


def _landmarks(internal: Row) -> list[Row]:
    """Everything that has a position, in order, with the entries on both sides."""
    landmarks: list[tuple[str, str, str | None]] = [
        (f"{ledger['ledgerId']}:{0 if ledger['entries'] else -1}", "ledger", str(ledger["ledgerId"]))
        for ledger in internal["ledgers"]
    ]
    for name, cursor in internal["cursors"].items():
        landmarks += [(cursor[kind], kind, name) for kind in ("markDeletePosition", "readPosition")]
    landmarks += [
        (transaction["firstPosition"], "openTransaction", transaction["txnId"])
        for transaction in internal["openTransactions"]
    ]
    landmarks += [(internal[kind], kind, None) for kind in ("maxReadPosition", "lastConfirmedEntry")]
    landmarks.sort(key=lambda row: (_numbers(row[0]), _KINDS.index(row[1]), row[2] or ""))
    total = sum(ledger["entries"] for ledger in internal["ledgers"])
    rows = []
    for position, kind, name in landmarks:
        through = _entries_through(internal["ledgers"], _numbers(position))
        before = max(0, through - 1) if position.partition(":")[2] != "-1" else through
        rows.append(
            {
                "position": position,
                "kind": kind,
                "name": name,
                "entriesBefore": before,
                "entriesAfter": total - through,
            }
        )
    return rows


def _numbers(position: str) -> tuple[int, int]:
    from storage.values.position import Position

    return Position.parse(position)


def _entries_through(ledgers: Sequence[Row], position: tuple[int, int]) -> int:
    """Entries up to and including a position: entry ids are dense within a ledger."""
    through = 0
    for ledger in ledgers:
        if ledger["ledgerId"] < position[0]:
            through += ledger["entries"]
        elif ledger["ledgerId"] == position[0]:
            through += min(position[1] + 1, ledger["entries"])
    return through


def _screen(context: Context, row: Row) -> Iterator[str]:
    yield heading(context, row["name"], plural(row["entries"], "entry", "entries"), row["asOfMs"])
    lines = _lines(row)
    yield ""
    yield from section(context, context.table_of(lines, COLUMNS, indent=2))


def _lines(row: Row) -> list[Row]:
    """One line a position, with all that is there."""
    total = row["entries"]
    readable = next(landmark for landmark in row["positions"] if landmark["kind"] == "maxReadPosition")
    # Where the readable part of the ruler ends.
    edge = _column(total - readable["entriesAfter"], total)
    lines: list[Row] = []
    for landmark in row["positions"]:
        if landmark["kind"] == "readPosition" and _is_idle(landmark, row["positions"]):
            continue
        if lines and lines[-1]["position"] == landmark["position"]:
            lines[-1]["what"] += f"; {_words(landmark)}"
            continue
        ruler = list("=" * edge + "-" * (RULER - edge))
        ruler[min(_column(landmark["entriesBefore"], total), RULER - 1)] = "|"
        lines.append({**landmark, "ruler": "".join(ruler), "what": _words(landmark)})
    return lines


def _column(entries: int, total: int) -> int:
    return RULER * entries // total if total else 0


def _is_idle(read: Row, landmarks: Sequence[Row]) -> bool:
    """Nothing is in flight: dispatch stands where everything is acknowledged."""
    return any(
        landmark["kind"] == "markDeletePosition"
        and landmark["name"] == read["name"]
        and landmark["position"] == read["position"]
        for landmark in landmarks
    )


_WORDS = {
    "ledger": "ledger {}",
    "openTransaction": "first message of {} (open)",
    "markDeletePosition": "mark-delete of {}",
    "readPosition": "read by {}",
}


def _words(landmark: Row) -> str:
    """The kind and name of a landmark in words."""
    kind: str = landmark["kind"]
    return _WORDS.get(kind, kind).format(landmark["name"])
