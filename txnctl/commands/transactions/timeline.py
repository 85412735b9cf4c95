"""`txnctl transactions timeline`: a topic drawn to scale."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.output.field import Field
from txnctl.output.screen import WIDTH, heading, next_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

MODEL = (
    Field("topic", "id", "The topic's full name."),
    Field("name", "id", "The topic as people write it."),
    Field("asOfAt", "time", "The moment of which the report speaks."),
    Field("asOfMs", "timeMs", "The same as an integer."),
    Field("firstPosition", "position", "The first entry that is still there; null in an empty topic."),
    Field("maxReadPosition", "position", "How far READ_COMMITTED reads."),
    Field("lastConfirmedEntry", "position", "The last entry written, markers included."),
    Field("topicEpoch", "integer", "Grows with every exclusive owner; null before the first."),
    Field("msgCount", "integer", "Messages stored."),
    Field("markerCount", "integer", "Markers of ended transactions."),
    Field("ongoingTxnCount", "integer", "Open transactions with messages here."),
    Field("abortedTxnCount", "integer", "Aborted transactions whose messages are still stored."),
    Field("uncommittedMessages", "integer", "Messages of open transactions."),
    Field("abortedMessages", "integer", "Messages of aborted ones."),
    Field("readableMessages", "integer", "Committed messages up to maxReadPosition."),
    Field("skippedMessages", "integer", "Aborted messages that lie between them."),
    Field("blockedMessages", "integer", "Committed messages that wait behind an open transaction."),
    Field("oldestBlockedAt", "time", "When the first of them was published; null if there is none near."),
    Field("oldestBlockedMs", "timeMs", "The same as an integer."),
    Field(
        "ledgers", "list", "As in `topics stats-internal`, each with entriesBefore: entries in earlier ones."
    ),
    Field(
        "openTransactions",
        "list",
        "In the order in which they hold the topic: as `transactions blocked --chain`.",
    ),
    Field("subscriptions", "map", "By name: what `subscriptions stats` tells, cursor and backlog."),
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

    The line is the whole topic, entry by entry. `readable` goes up to maxReadPosition. Each open transaction shows the
    messages sent inside, the messages blocked by this transaction alone, and the messages behind. Each subscription
    shows acknowledged messages, messages in flight, and messages not readable yet. A long part before maxReadPosition
    is drawn smaller.
    """
    model = to_json(context.store.reports.topic_timeline(topic))
    context.show(model, table=lambda row: _screen(context, row, plain=ascii or not _speaks_unicode()))


def _screen(context: Context, model: Row, *, plain: bool) -> Iterator[str]:
    from textwrap import wrap

    from txnctl.fields.holder import held_up
    from txnctl.output.timeline import NO_BREAK, SHOWN, Drawing, facts

    width = context.out.width() or WIDTH
    drawing = Drawing(model, width, plain=plain)
    yield heading(context, model["name"], held_up(model), model["asOfMs"])
    yield ""
    for kind, line in drawing.lines():
        yield context.style(line, *_STYLES.get(kind, ()))
    yield ""
    for text in [*map(facts, model["openTransactions"][:SHOWN]), drawing.legend()]:
        lines = wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        yield from [line.replace(NO_BREAK, " ") for line in lines]
    if model["blockedMessages"]:
        first = model["openTransactions"][0]["txnId"]
        yield ""
        yield next_command(context, f"txnctl transactions explain {first}")


def _speaks_unicode() -> bool:
    """Whether the locale that the user chose is UTF-8; Python itself may have set LC_CTYPE to C.UTF-8."""
    from os import environ

    chosen = environ.get("LC_ALL") or environ.get("LC_CTYPE", "")
    if not chosen or (chosen == "C.UTF-8" and not environ.get("LC_ALL")):
        chosen = environ.get("LANG", "")
    return "utf8" in chosen.lower().replace("-", "")
