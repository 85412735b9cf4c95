"""What `pipeline monitor` shows: the result as a row, as a report for people, and live on a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

from storage.json_form import Flat
from txnctl.output.column import Column
from txnctl.output.escape import printable_row
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnctl.cli.context import Context
    from txnctl.pipelines.monitor import GroupSums, View


class PeriodSums(NamedTuple):
    """The money of one period, as decimal text."""

    period: str
    inflow: str
    outflow: str
    net: str
    messages: int
    uncommitted: int


class OutsizedMessage(NamedTuple):
    """The message of an outsized amount."""

    message_id: str
    txn_id: str | None


class Anomaly(NamedTuple):
    """An overdraft, or an outsized amount with the message."""

    kind: str
    account: str | None
    amount: str
    message: Flat[OutsizedMessage | None]


class MonitorSums(NamedTuple):
    """The sums after a micro-batch."""

    topic: str
    batches: int
    messages: int | None
    uncommitted: int | None
    aborted: int | None
    skipped: int | None
    reserves: str | None
    inflow: str | None
    outflow: str | None
    periods: list[PeriodSums]
    anomalies: list[Anomaly]


class MonitorResult(NamedTuple):
    """The sums at the end of a run."""

    sums: Flat[MonitorSums]
    elapsed_ms: int


FIELDS = fields_of(
    MonitorResult,
    {
        "topic": Help("The full name of the topic.", kind="id"),
        "batches": "Micro-batches that were looked at.",
        "messages": "Messages so far; like the sums null where nothing is new since the last run.",
        "uncommitted": "Of them in a transaction that was open when they were read.",
        "aborted": "Of them known to be aborted when they were read; no sum has them.",
        "skipped": "Of them no requests.",
        "reserves": "What the customers have together, as decimal text.",
        "inflow": "What came in.",
        "outflow": "What went out.",
        "periods": "Those that changed: period, inflow, outflow, net, messages, uncommitted.",
        "anomalies": "kind (overdraft or outsized), account, amount; of an amount its messageId and txnId.",
        "elapsed_ms": Help("How long it ran, the start of Spark included.", heading="ELAPSED"),
    },
)

_PERIODS: tuple[Column[PeriodSums], ...] = (
    Column("PERIOD", "text", lambda row: row.period),
    Column("INFLOW", "number", lambda row: row.inflow),
    Column("OUTFLOW", "number", lambda row: row.outflow),
    Column("NET", "number", lambda row: row.net),
    Column("MESSAGES", "integer", lambda row: row.messages),
    Column("UNCOMMITTED", "integer", lambda row: row.uncommitted),
)

_ANOMALIES: tuple[Column[Anomaly], ...] = (
    Column("KIND", "text", lambda row: row.kind),
    Column("ACCOUNT", "text", lambda row: row.account),
    Column("AMOUNT", "number", lambda row: row.amount),
    Column("MESSAGE ID", "id", lambda row: row.message and row.message.message_id),
    Column("TXN ID", "id", lambda row: row.message and row.message.txn_id),
)

_SHOWN = 12


def sums_of(topic: str, view: View, *, goes_on: bool = False) -> MonitorSums:
    """The sums after the last micro-batch.

    Args:
        goes_on: an earlier run has counted too; before the first micro-batch of this run the sums are unknown.
    """
    from txnctl.pipelines.hellers import format_hellers
    from txnctl.pipelines.monitor import TOTAL, GroupSums

    total = view.total or GroupSums(TOTAL, "")
    sums = MonitorSums(
        topic=topic,
        batches=view.batches,
        messages=total.messages,
        uncommitted=total.uncommitted,
        aborted=total.aborted,
        skipped=total.skipped,
        reserves=format_hellers(view.reserves),
        inflow=format_hellers(total.inflow),
        outflow=format_hellers(total.outflow),
        periods=[_period(view.periods[name]) for name in sorted(view.periods)],
        anomalies=_anomalies(view),
    )
    if goes_on and view.total is None:
        return sums._replace(
            messages=None,
            uncommitted=None,
            aborted=None,
            skipped=None,
            reserves=None,
            inflow=None,
            outflow=None,
        )
    return sums


def _period(sums: GroupSums) -> PeriodSums:
    from txnctl.pipelines.hellers import format_hellers

    return PeriodSums(
        period=sums.name,
        inflow=format_hellers(sums.inflow),
        outflow=format_hellers(sums.outflow),
        net=format_hellers(sums.net),
        messages=sums.messages,
        uncommitted=sums.uncommitted,
    )


def _anomalies(view: View) -> list[Anomaly]:
    from txnctl.pipelines.hellers import format_hellers

    outsized = [
        Anomaly("outsized", sums.account, format_hellers(sums.net), OutsizedMessage(name, sums.txn_id))
        for name, sums in view.outsized.items()
    ]
    overdrafts = [
        Anomaly("overdraft", account, format_hellers(view.overdrawn[account]), None)
        for account in sorted(view.overdrawn)
    ]
    return [*outsized, *overdrafts]


def report(context: Context, sums: MonitorSums) -> list[str]:
    """The result for people: the totals, the last periods, the first anomalies."""
    if sums.messages is None:
        return ["Nothing new since the last run."]
    uncommitted = f", {sums.uncommitted:,} uncommitted when read" if sums.uncommitted else ""
    aborted = f", {sums.aborted:,} aborted" if sums.aborted else ""
    skipped = f", {sums.skipped:,} no requests" if sums.skipped else ""
    lines = [
        f"{plural(sums.messages, 'message')}{uncommitted}{aborted}{skipped}",
        f"reserves {sums.reserves}   in {sums.inflow}   out {sums.outflow}",
    ]
    if sums.periods:
        lines += ["", *context.table_of(sums.periods[-_SHOWN:], _PERIODS)]
    if sums.anomalies:
        lines += ["", context.style(plural(len(sums.anomalies), "anomaly", "anomalies"), "bold", "yellow")]
        lines += context.table_of(sums.anomalies[:_SHOWN], _ANOMALIES)
    return lines


@contextmanager
def live(context: Context, topic: str) -> Iterator[Callable[[View], None]]:
    """A function that replaces the previous view on the terminal: on standard error, and only on a terminal.

    The view is cut to the screen. The last view is wiped at the end of the block, and stays after an error or Ctrl-C.
    """
    import sys
    from os import environ, get_terminal_size

    from txnctl.output.prose import fitted
    from txnctl.output.stream import terminal_width

    if not sys.stderr.isatty() or environ.get("TERM") == "dumb":
        yield lambda _view: None
        return
    shown = 0

    def wipe() -> str:
        return f"\x1b[{shown}F\x1b[J" if shown else ""

    def show(view: View) -> None:
        nonlocal shown
        sums = printable_row(sums_of(topic, view))
        height = get_terminal_size(sys.stderr.fileno()).lines or 24
        lines = list(fitted(report(context, sums), terminal_width(sys.stderr)))[: height - 1]
        sys.stderr.write(wipe() + "\n".join(lines) + "\n")
        sys.stderr.flush()
        shown = len(lines)

    yield show
    sys.stderr.write(wipe())
    sys.stderr.flush()
