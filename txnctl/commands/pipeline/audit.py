"""`txnctl pipeline audit`: balances recomputed from a topic, held against a table and the data."""

from __future__ import annotations

from typing import NamedTuple

import click

from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.exit_codes import CONDITION_FOUND
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import TABLE, TOPIC
from txnctl.commands.pipeline.engine import ENGINE, LOCAL, choose, chooses_engine, engine_name, of_spark
from txnctl.commands.pipeline.request_form import names_request_fields
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
    from collections.abc import Sequence

    from storage import Store
    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.engine import EngineOptions
    from txnctl.commands.pipeline.request_form import RequestArguments
    from txnctl.commands.pipeline.session import SparkOptions
    from txnctl.pipelines.audit import AuditSources, Difference, Findings
    from txnctl.pipelines.conservation import Conservation, SumChange
    from txnctl.pipelines.request import RequestForm


class FirstSumChange(NamedTuple):
    """The first version at which the sum of all balances changed; sums as text."""

    version: int
    at: str | None
    before: str
    after: str


class AuditResult(NamedTuple):
    """The result of one run."""

    topic: str
    topics: list[str]
    table: str
    data: str | None
    accounts: int
    differing: int
    skipped: int
    differences: list[Difference]
    sum_in_topic: str
    sum_in_table: str
    versions: int | None
    sum_changes: int | None
    first_sum_change: FirstSumChange | None
    plot: str | None
    engine: str
    elapsed_ms: int


FIELDS = fields_of(
    AuditResult,
    {
        "topic": Help("The full name of the first topic.", kind="id"),
        "topics": "The full names of all topics.",
        "table": "The table of balances.",
        "data": "The file of --data, or null.",
        "accounts": "Accounts that any of them has.",
        "differing": "Accounts that are not the same everywhere.",
        "skipped": "Messages of the topic that are no requests.",
        "differences": "The first 1,000 of them: account, inTopic, inTable, inData; a balance as text, or null.",
        "sum_in_topic": "The amounts of all requests, added up.",
        "sum_in_table": "All balances, added up.",
        "versions": "Versions of the table that were looked at (--conserved), or null.",
        "sum_changes": "Versions at which the sum of all balances changed (--conserved), or null.",
        "first_sum_change": "The first of them: version, at, before, after; or null.",
        "plot": "The file of --plot, or null.",
        **ENGINE,
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
    plot: str | None
    conserved: bool
    exit_code: bool
    offload_path: str | None


@option_values("options", AuditArguments)
@argument("topics", nargs=-1, required=True, type=TOPIC, metavar="TOPIC...", help="The topics of requests.")
@option("--table", type=TABLE, required=True, help="The table of balances.")
@option(
    "--data",
    metavar="FILE",
    type=click.Path(exists=True),
    help="The bank's lines as CSV, with account_id, acct_seq, date and balance.",
)
@names_request_fields
@option(
    "--plot",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Draw the customers' money by day, as SVG.",
)
@option(
    "--conserved",
    is_flag=True,
    help="Also compare the sum of all balances at every kept version of the table.",
)
@option("--exit-code", is_flag=True, help="Exit with 8 where balances differ, or a conserved sum changed.")
@chooses_engine
@reaches_offloaded
@uses_spark
@names_store(effect="reads")
@output(FIELDS, name_field="topic")
@example("txnctl pipeline audit requests --table accounts --exit-code", setup=_SETUP, exit_code=8)
def audit(
    context: Context,
    topics: Sequence[str],
    table: str,
    options: AuditArguments,
    fields: RequestArguments,
    engine_options: EngineOptions,
    spark_options: SparkOptions,
) -> None:
    """Recompute all balances from the topics of requests, and compare.

    The committed requests of the topics (see `pipeline settle`) are added up for each account and held against the
    table of balances; with --data also against the balance column of the bank's own lines, of which each account's
    last one counts. Settlement accounts of partner banks, named bank:..., are not in the data.

    Where requests only move money between accounts, the sum of all balances never changes. --conserved compares it at
    every version that the table keeps (`store config table-retention`): every transaction on the way, not only the
    last.

    Topics are read up to maxReadPosition, the table as committed: requests settled meanwhile may show as a
    difference.

    Up to 100,000 messages and rows (--local-max) are compared by this process alone: no Java, no PySpark.
    """
    from time import perf_counter

    from storage.values.names import full_topic_name
    from txnctl.pipelines.hellers import format_hellers

    began = perf_counter()
    form, names = fields.form(), [full_topic_name(topic) for topic in dict.fromkeys(topics)]
    of_topic = options_of(context, topics=",".join(names), offloadPath=options.offload_path)
    of_table = options_of(context, table=table, offloadPath=options.offload_path)
    from txnctl.pipelines import bank_data
    from txnctl.pipelines.audit import AuditSources

    job = _Audit(AuditSources(of_topic, of_table, options.data), form, options.plot is not None)
    only_spark = of_spark(spark_options, options.offload_path)
    if options.data is not None:
        only_spark["--data with a directory or a compressed file"] = not bank_data.is_plain(options.data)
    with context.open_store(context.store_path, read_only=True) as store:
        for topic in topics:
            store.reports.topic_stats(topic)
        store.table(table)
        if options.data is not None and bank_data.is_plain(options.data):
            bank_data.check_columns(options.data)
        engine = choose(engine_options, only_spark, lambda: _size(store, names, table))
        findings = _audit_here(store, job) if engine == LOCAL else None
    if findings is None:
        findings = _audit_on_spark(context, job, spark_options)
    if options.plot is not None:
        _plot(findings, options.plot)
    conservation = _conservation(context, table) if options.conserved else None
    changes = conservation.changes if conservation is not None else []
    row = AuditResult(
        topic=names[0],
        topics=names,
        table=table,
        data=options.data,
        accounts=findings.accounts,
        differing=findings.differing,
        skipped=findings.skipped,
        differences=findings.differences,
        sum_in_topic=format_hellers(findings.sum_in_topic),
        sum_in_table=format_hellers(findings.sum_in_table),
        versions=None if conservation is None else conservation.versions,
        sum_changes=None if conservation is None else len(changes),
        first_sum_change=_first_change(changes[0]) if changes else None,
        plot=options.plot,
        engine=engine,
        elapsed_ms=int((perf_counter() - began) * 1000),
    )
    context.show(row, table=lambda shown: _report(context, shown))
    if options.exit_code and (findings.differing or changes):
        context.exit(CONDITION_FOUND)


class _Audit(NamedTuple):
    sources: AuditSources
    form: RequestForm
    with_days: bool


def _size(store: Store, topics: Sequence[str], table: str) -> int:
    """Count the messages and rows that are compared."""
    from txnctl.pipelines.local_audit import messages_in

    return messages_in(store, topics) + store.table(table).stats().counts.rows


def _audit_here(store: Store, job: _Audit) -> Findings:
    from txnctl.pipelines.local_audit import audit_locally

    return audit_locally(store, job.sources, form=job.form, with_days=job.with_days)


def _audit_on_spark(context: Context, job: _Audit, spark_options: SparkOptions) -> Findings:
    with session("audit", spark_options) as spark:
        from txnctl.pipelines.audit import audit_balances

        with watched_tasks(context, "Audit", spark):
            return audit_balances(spark, job.sources, form=job.form, with_days=job.with_days)


def _report(context: Context, row: AuditResult) -> list[str]:
    agree = row.accounts - row.differing
    lines = [
        f"{agree:,} of {plural(row.accounts, 'account')} agree. {duration(row.elapsed_ms)}, {engine_name(row.engine)}."
    ]
    lines.append(f"Sum of all balances: {row.sum_in_table} in the table, {row.sum_in_topic} by the requests.")
    if row.versions is not None:
        lines += _conserved(row)
    if row.skipped:
        lines.append(f"{plural(row.skipped, 'message')} of the topics are no requests.")
    if row.differences:
        columns = _DIFFERENCES if row.data is None else (*_DIFFERENCES, _IN_DATA)
        lines += ["", *context.table_of(row.differences[:_SHOWN], columns)]
        more = row.differing - _SHOWN
        if more > 0:
            lines.append(f"... and {more:,} more; -o json shows up to 1,000.")
    return lines


def _conserved(row: AuditResult) -> list[str]:
    change = row.first_sum_change
    if change is None:
        return [f"The sum is the same at {plural(row.versions or 0, 'version')} of the table."]
    return [
        f"The sum changed at {row.sum_changes:,} of {plural(row.versions or 0, 'version')}, first at {change.at}:",
        f"from {change.before} to {change.after} (version {change.version}).",
    ]


def _conservation(context: Context, table: str) -> Conservation:
    from txnctl.pipelines.conservation import sums_by_version

    with context.open_store(context.store_path, read_only=True) as store:
        return sums_by_version(store, table)


def _first_change(change: SumChange) -> FirstSumChange:
    from storage.values.timestamps import rfc3339
    from txnctl.pipelines.hellers import format_hellers

    before, after = format_hellers(change.before), format_hellers(change.after)
    return FirstSumChange(change.version, rfc3339(change.version // 1_000_000), before, after)


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
