"""`txnctl transactions timeline`: a topic drawn to scale."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.output.field import Help, fields_of
from txnctl.output.screen import WIDTH, heading, next_command
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.timeline import Timeline
    from txnctl.cli.context import Context

MODEL = fields_of(
    "storage.reports.timeline:Timeline",
    {
        "topic": Help("The topic's full name.", kind="id"),
        "name": Help("The topic as people write it.", kind="id"),
        "as_of_at_ms": "The moment of which the report speaks.",
        "first_position": "The first entry that is still there; null in an empty topic.",
        "max_read_position": "How far READ_COMMITTED reads.",
        "last_confirmed_entry": "The last entry written, markers included.",
        "topic_epoch": "Grows with every exclusive owner; null before the first.",
        "msg_count": "Messages stored.",
        "marker_count": "Markers of ended transactions.",
        "ongoing_txn_count": "Open transactions with messages here.",
        "aborted_txn_count": "Aborted transactions whose messages are still stored.",
        "uncommitted_messages": "Messages of open transactions.",
        "aborted_messages": "Messages of aborted ones.",
        "readable_messages": "Committed messages up to maxReadPosition.",
        "skipped_messages": "Aborted messages that lie between them.",
        "blocked_messages": "Committed messages that wait behind an open transaction.",
        "oldest_blocked_at_ms": "When the first of them was published; null if there is none near.",
        "ledgers": "As in `topics stats-internal`, each with entriesBefore and messagesBefore: those in earlier ones.",
        "open_transactions": "In the order in which they hold the topic: as `transactions blocked --chain`.",
        "subscriptions": "By name: what `subscriptions stats` tells, cursor and backlog.",
        "places": "Positions with the number of messages through them, from the first ledger on.",
        "stretches": (
            "By subscription: neighbouring messages in one state (acknowledged, pending, inFlight, delayed, ready, "
            "blocked), with the numbers of messages before and through the end."
        ),
    },
)

_SETUP = (
    "txnctl topics create orders",
    "txnctl transactions begin --label job=loader",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)
_STYLES = {"readable": ("green",), "alarm": ("bold", "red"), "transaction": ("yellow",), "ledgers": ("dim",)}


@argument("topic", type=TOPIC, help="The topic.")
@option("--ascii", is_flag=True, help="Draw with ASCII alone. [default: where the locale is not UTF-8]")
@reads_store
@output(MODEL, name_field="name")
@example("txnctl transactions timeline orders", setup=_SETUP)
@example("txnctl transactions timeline orders -o json", setup=_SETUP)
def timeline(context: Context, topic: str, ascii: bool) -> None:
    """Draw a topic: ledgers, open transactions, cursors, and blocked messages.

    The line is the whole topic, message by message. `readable` goes up to maxReadPosition. Each open transaction shows
    the messages sent inside, the messages blocked by this transaction alone, and the messages behind. Each subscription
    shows the state of every message: acknowledged, in flight, acknowledged in an open transaction, ready, blocked. A
    long part before maxReadPosition is drawn smaller.
    """
    model = context.store.reports.topic_timeline(topic)
    context.show(model, table=lambda row: _screen(context, row, plain=ascii or not _speaks_unicode()))


def _screen(context: Context, model: Timeline, *, plain: bool) -> Iterator[str]:
    from textwrap import wrap

    from txnctl.fields.holder import facts, held_up
    from txnctl.output.prose import Laid
    from txnctl.output.timeline import NO_BREAK, SHOWN, Drawing

    width = context.out.width() or WIDTH
    drawing = Drawing(model, width, plain=plain)
    readable = model.readable
    blocked = held_up(readable.blocked_messages, readable.oldest_blocked_at_ms, model.as_of_at_ms)
    yield heading(context, model.name, blocked, model.as_of_at_ms)
    yield ""
    for kind, drawn in drawing.lines():
        yield Laid(context.style(drawn, *_STYLES.get(kind, ())))
    yield ""
    for text in [*map(facts, model.open_transactions[:SHOWN]), drawing.legend()]:
        lines = wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        yield from [text.replace(NO_BREAK, " ") for text in lines]
    if readable.blocked_messages:
        first = model.open_transactions[0].holder.txn_id
        yield ""
        yield next_command(context, line("transactions explain", first))


def _speaks_unicode() -> bool:
    """Whether the locale that the user chose is UTF-8; Python itself may have set LC_CTYPE to C.UTF-8."""
    from os import environ

    chosen = environ.get("LC_ALL") or environ.get("LC_CTYPE", "")
    if not chosen or (chosen == "C.UTF-8" and not environ.get("LC_ALL")):
        chosen = environ.get("LANG", "")
    return "utf8" in chosen.lower().replace("-", "")
