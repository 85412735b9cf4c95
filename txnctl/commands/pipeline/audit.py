"""`txnctl pipeline audit`: balances recomputed from a topic, held against a table and the data."""

from __future__ import annotations

from typing import NamedTuple

import click

from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.exit_codes import CONDITION_FOUND
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import TABLE, TOPIC
from txnctl.commands.pipeline.session import (
    ELAPSED,
    options_of,
    reaches_offloaded,
    session,
    uses_spark,
    watched_tasks,
)
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.session import SparkOptions
    from txnctl.pipelines.audit import Difference, Findings


class AuditResult(NamedTuple):
    """The result of one run."""

    topic: str
    table: str
    data: str | None
    accounts: int
    differing: int
    skipped: int
    differences: list[Difference]
    plot: str | None
    elapsed_ms: int


FIELDS = fields_of(
    AuditResult,
    {
        "topic": Help("The full name of the topic.", kind="id"),
        "table": "The table of balances.",
        "data": "The file of --data, or null.",
        "accounts": "Accounts that any of them has.",
        "differing": "Accounts that are not the same everywhere.",
        "skipped": "Messages of the topic that are no requests.",
        "differences": "The first 1,000 of them: account, inTopic, inTable, inData; a balance as text, or null.",
        "plot": "The file of --plot, or null.",
        **ELAPSED,
    },
)

_DIFFERENCES: tuple[Column[Difference], ...] = (
    Column("ACCOUNT", "text", lambda row: row.account),
    Column("TOPIC", "text", lambda row: row.in_topic),
    Column("TABLE", "text", lambda row: row.in_table),
)
_IN_DATA: Column[Difference] = Column("DATA", "text", lambda row: row.in_data)

_SETUP = (
    "txnctl topics create requests",
    "txnctl tables create accounts",
    """txnctl produce requests -k B1 -m '{"delta": "500.00"}'""",
    "txnctl tables put accounts B1 -- 479.50",
)
_SHOWN = 20


class AuditArguments(OptionValues):
    """Options of `pipeline audit`."""

    data: str | None
    amount: str
    plot: str | None
    exit_code: bool
    offload_path: str | None


@option_values("options", AuditArguments)
@argument("topic", type=TOPIC, help="The topic of requests.")
@option("--table", type=TABLE, required=True, help="The table of balances.")
@option(
    "--data",
    metavar="FILE",
    type=click.Path(exists=True),
    help="The bank's lines as CSV, with account_id, acct_seq, date and balance.",
)
@option(
    "--amount",
    metavar="FIELD",
    default="delta",
    help="The field of the JSON with the amount. [default: delta]",
)
@option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Draw the customers' money by day, as SVG.",
)
@option("--exit-code", is_flag=True, help="Exit with 8 where balances differ.")
@reaches_offloaded
@uses_spark
@names_store(effect="reads")
@output(FIELDS, name_field="topic")
@example("txnctl pipeline audit requests --table accounts --exit-code", setup=_SETUP, exit_code=8)
def audit(
    context: Context, topic: str, table: str, options: AuditArguments, spark_options: SparkOptions
) -> None:
    """Recompute all balances from a topic, and compare.

    The committed requests of the topic (see `pipeline settle`) are added up for each account and held against the
    table of balances; with --data also against the balance column of the bank's own lines, of which each account's
    last one counts. Settlement accounts of partner banks, named bank:..., are not in the data.

    The topic is read up to maxReadPosition, the table as committed: requests settled meanwhile may show as a
    difference.
    """
    from time import perf_counter

    from storage.values.names import full_topic_name

    began = perf_counter()
    with context.open_store(context.store_path, read_only=True) as store:
        store.reports.topic_stats(topic)
        store.table(table)
    of_topic = options_of(context, topic=topic, offloadPath=options.offload_path)
    of_table = options_of(context, table=table, offloadPath=options.offload_path)
    with session("audit", spark_options) as spark:
        from txnctl.pipelines import audit as job

        with watched_tasks(context, "Audit", spark):
            findings = job.audit_balances(
                spark,
                job.AuditSources(of_topic, of_table, options.data),
                amount=options.amount,
                with_days=options.plot is not None,
            )
    if options.plot is not None:
        _plot(findings, options.plot)
    row = AuditResult(
        topic=full_topic_name(topic),
        table=table,
        data=options.data,
        accounts=findings.accounts,
        differing=findings.differing,
        skipped=findings.skipped,
        differences=findings.differences,
        plot=options.plot,
        elapsed_ms=int((perf_counter() - began) * 1000),
    )
    context.show(row, table=lambda shown: _report(context, shown))
    if options.exit_code and findings.differing:
        context.exit(CONDITION_FOUND)


def _report(context: Context, row: AuditResult) -> list[str]:
    agree = row.accounts - row.differing
    lines = [f"{agree:,} of {plural(row.accounts, 'account')} agree. {duration(row.elapsed_ms)}."]
    if row.skipped:
        lines.append(f"{plural(row.skipped, 'message')} of the topic are no requests.")
    if row.differences:
        columns = _DIFFERENCES if row.data is None else (*_DIFFERENCES, _IN_DATA)
        lines += ["", context.table_of(row.differences[:_SHOWN], columns)]
        more = row.differing - _SHOWN
        if more > 0:
            lines.append(f"... and {more:,} more; -o json shows up to 1,000.")
    return lines


def _plot(findings: Findings, path: str) -> None:
    """Draw the customers' money by day.

    Raises:
        InvalidValue, OutputFailed: the file cannot be written, or is a link of a different user.
    """
    from txnctl.output.replaced_file import replace_file
    from txnctl.pipelines.chart import Series, line_chart

    series = [Series("added up from the topic", [day.topic / 100 for day in findings.days])]
    if all(day.data is not None for day in findings.days):
        series.append(Series("balance column of the data", [(day.data or 0) / 100 for day in findings.days]))
    text = line_chart("Customers' money by day", [day.name for day in findings.days], series)
    replace_file(path, text.encode(), mode=0o666)
