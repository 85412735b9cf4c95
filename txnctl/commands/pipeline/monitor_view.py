"""What `pipeline monitor` shows: the result as a row, as a report for people, and live on a terminal."""

from __future__ import annotations

from contextlib import contextmanager

from txnctl.output.escape import printable_row
from txnctl.output.field import Field
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row
    from txnctl.pipelines.monitor import GroupSums, View

FIELDS = (
    Field("topic", "id", "The full name of the topic."),
    Field("batches", "integer", "Micro-batches that were looked at."),
    Field(
        "messages", "integer", "Messages so far; like the sums null where nothing is new since the last run."
    ),
    Field("uncommitted", "integer", "Of them in a transaction that was open when they were read."),
    Field("aborted", "integer", "Of them known to be aborted when they were read; no sum has them."),
    Field("skipped", "integer", "Of them no requests."),
    Field("reserves", "text", "What the customers have together, as decimal text."),
    Field("inflow", "text", "What came in."),
    Field("outflow", "text", "What went out."),
    Field("periods", "list", "Those that changed: period, inflow, outflow, net, messages, uncommitted."),
    Field(
        "anomalies",
        "list",
        "kind (overdraft or outsized), account, amount; of an amount its messageId and txnId.",
    ),
    Field("elapsedMs", "duration", "How long it ran, the start of Spark included.", heading="ELAPSED"),
)

PERIODS = (
    Field("period", "text", "When it begins."),
    Field("inflow", "number", "What came in."),
    Field("outflow", "number", "What went out."),
    Field("net", "number", "Their difference."),
    Field("messages", "integer", "Messages of it."),
    Field("uncommitted", "integer", "Of them in an open transaction."),
)

ANOMALIES = (
    Field("kind", "text", "overdraft or outsized."),
    Field("account", "text", "The account."),
    Field("amount", "number", "The balance, or the amount."),
    Field("messageId", "id", "The message of an amount."),
    Field("txnId", "id", "The transaction it was sent in."),
)

_SHOWN = 12
_COUNTS = ("messages", "uncommitted", "aborted", "skipped")


def row_of(topic: str, view: View, *, goes_on: bool = False) -> Row:
    """The result: the sums after the last micro-batch.

    Args:
        goes_on: an earlier run has counted too; before the first micro-batch of this run the sums are unknown.
    """
    from txnctl.pipelines.hellers import format_hellers
    from txnctl.pipelines.monitor import TOTAL, GroupSums

    known = view.total or GroupSums(TOTAL, "")
    row: Row = {
        "topic": topic,
        "batches": view.batches,
        **{name: getattr(known, name) for name in _COUNTS},
        "reserves": format_hellers(view.reserves),
        "inflow": format_hellers(known.inflow),
        "outflow": format_hellers(known.outflow),
    }
    if goes_on and view.total is None:
        row |= dict.fromkeys((*_COUNTS, "reserves", "inflow", "outflow"))
    return {
        **row,
        "periods": [_period(view.periods[name]) for name in sorted(view.periods)],
        "anomalies": _anomalies(view),
    }


def _period(sums: GroupSums) -> Row:
    from txnctl.pipelines.hellers import format_hellers

    return {
        "period": sums.name,
        "inflow": format_hellers(sums.inflow),
        "outflow": format_hellers(sums.outflow),
        "net": format_hellers(sums.net),
        "messages": sums.messages,
        "uncommitted": sums.uncommitted,
    }


def _anomalies(view: View) -> list[Row]:
    from txnctl.pipelines.hellers import format_hellers

    overdrafts = [
        {"kind": "overdraft", "account": account, "amount": format_hellers(view.overdrawn[account])}
        for account in sorted(view.overdrawn)
    ]
    outsized = [
        {
            "kind": "outsized",
            "account": sums.account,
            "amount": format_hellers(sums.net),
            "messageId": name,
            "txnId": sums.txn_id,
        }
        for name, sums in view.outsized.items()
    ]
    return [*outsized, *overdrafts]


def report(context: Context, row: Row) -> list[str]:
    """The result for people: the totals, the last periods, the first anomalies."""
    if row["messages"] is None:
        return ["Nothing new since the last run."]
    uncommitted = f", {row['uncommitted']:,} uncommitted when read" if row["uncommitted"] else ""
    aborted = f", {row['aborted']:,} aborted" if row["aborted"] else ""
    skipped = f", {row['skipped']:,} no requests" if row["skipped"] else ""
    lines = [
        f"{plural(row['messages'], 'message')}{uncommitted}{aborted}{skipped}",
        f"reserves {row['reserves']}   in {row['inflow']}   out {row['outflow']}",
    ]
    if row["periods"]:
        lines += ["", context.table_of(row["periods"][-_SHOWN:], PERIODS)]
    if row["anomalies"]:
        lines += ["", context.style(plural(len(row["anomalies"]), "anomaly", "anomalies"), "bold", "yellow")]
        lines.append(context.table_of(row["anomalies"][:_SHOWN], ANOMALIES))
    return lines


@contextmanager
def live(context: Context, topic: str) -> Iterator[Callable[[View], None]]:
    """A function that replaces the previous view on the terminal: on standard error, and only on a terminal.

    The view is cut to the screen. The last view is wiped at the end of the block, and stays after an error or Ctrl-C.
    """
    import sys
    from os import environ, get_terminal_size

    if not sys.stderr.isatty() or environ.get("TERM") == "dumb":
        yield lambda _view: None
        return
    shown = 0

    def wipe() -> str:
        return f"\x1b[{shown}F\x1b[J" if shown else ""

    def show(view: View) -> None:
        nonlocal shown
        row: Row = printable_row(row_of(topic, view))
        height = get_terminal_size(sys.stderr.fileno()).lines or 24
        lines = "\n".join(report(context, row)).splitlines()[: height - 1]
        sys.stderr.write(wipe() + "\n".join(lines) + "\n")
        sys.stderr.flush()
        shown = len(lines)

    yield show
    sys.stderr.write(wipe())
    sys.stderr.flush()
