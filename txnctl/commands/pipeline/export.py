"""`txnctl pipeline export`: a topic or a table -> files."""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import InvalidValue
from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.option_values import OptionValues
from txnctl.cli.time_values import MOMENT, POSITION_TEXT
from txnctl.cli.value_types import CHECK_MODE, ISOLATION_LEVEL, TABLE, TOPIC, NamedConstant
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.pipeline.session import (
    ELAPSED,
    options_of,
    reaches_offloaded,
    session,
    uses_spark,
    watched_tasks,
)
from txnctl.commands.tables.reader import final_version
from txnctl.output.field import fields_of
from txnctl.output.human import duration, plural
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import CheckMode, IsolationLevel
    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.session import SparkOptions


class ExportResult(NamedTuple):
    """The result of one run."""

    source: str
    destination: str
    format: str
    rows: int
    elapsed_ms: int


FIELDS = fields_of(
    ExportResult,
    {
        "source": "The full name of the topic, or the table.",
        "destination": "The directory that was written.",
        "format": "parquet, csv or json.",
        "rows": "Messages, or rows of the table, that it holds.",
        **ELAPSED,
    },
)

FORMAT = NamedConstant("format", ("parquet", "csv", "json"))
_SETUP = (
    "txnctl topics create orders",
    "seq 5 | txnctl produce orders",
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
)


class ExportArguments(OptionValues):
    """Options of `pipeline export`."""

    format_: str
    isolation_level: IsolationLevel | None
    from_: str | None
    to: str | None
    check: CheckMode | None
    at: int | None
    files: int | None
    overwrite: bool
    offload_path: str | None


@option_values("options", ExportArguments)
@argument("topic", type=TOPIC, metavar="[TOPIC]", help="The topic; not with --table.")
@argument("destination", required=False, metavar="DEST", help="The directory to write, or its URI.")
@option("--table", type=TABLE, help="Export this table instead of a topic.")
@option("--format", "format_", type=FORMAT, default="parquet", help="Of the files. [default: parquet]")
@option("--isolation-level", type=ISOLATION_LEVEL, help="What of a topic is read. [default: READ_COMMITTED]")
@option("--from", "from_", type=POSITION_TEXT, help="Where to begin in the topic. [default: earliest]")
@option("--to", type=POSITION_TEXT, help="Where to end in the topic. [default: latest]")
@option("--check", type=CHECK_MODE, help="What of a table is read on write intents. [default: minimal]")
@option(
    "--at", type=MOMENT, metavar="TIME", help="Read the table as it was at this time; `now` is the newest."
)
@option("--files", type=WholeNumber(1), help="Write so many files at the most. [default: one a task]")
@option("--overwrite", is_flag=True, help="Replace what is at DEST.")
@reaches_offloaded
@uses_spark
@names_store(effect="writes")
@output(FIELDS, name_field="destination")
@example("txnctl pipeline export orders orders.parquet", setup=_SETUP)
def export(
    context: Context,
    topic: str,
    destination: str | None,
    table: str | None,
    options: ExportArguments,
    spark_options: SparkOptions,
) -> None:
    r"""Write a topic or a table to Parquet, CSV or JSON.

    \b
    parquet  The columns of docs/SPARK.md: key and value are bytes.
    json     An object a line in the form of `consume -o ndjson` and
             `tables export`, for `produce --input ndjson` and `tables import`.
    csv      A first line with names; key and value as text, or where not UTF-8
             as Base64 in the columns keyBase64 and valueBase64.

    At read-committed the messages up to maxReadPosition without the aborted ones, at read-uncommitted every written
    message, with the state of the transaction. The range is fixed when the job begins.

    DEST is a directory of files: part-*.parquet, part-*.json or part-*.csv. On this machine the directory appears when
    complete. On s3:// (or s3a://), which the tasks reach without any jar, each file appears when all are complete, and
    _SUCCESS last (docs/SCALE.md).
    """
    from time import perf_counter

    from storage.values.names import full_topic_name
    from txnctl.spark.file_systems import without_secrets

    began = perf_counter()
    if table is not None:
        if destination is not None:
            raise InvalidValue("a topic or --table is exported, not both", hint="Leave one of them out.")
        destination = topic
    if destination is None:
        raise InvalidValue(
            "DEST is missing: the directory to write", hint=f"`{line('pipeline export', 'TOPIC', 'DEST')}`"
        )
    source_options = _options(context, None if table is not None else topic, table, options)
    from txnctl.pipelines import files

    if not options.overwrite:
        files.check_absent(destination)
    with session("export", spark_options) as spark:
        from txnctl.pipelines import export as job

        with watched_tasks(context, "Export", spark):
            rows = job.export_rows(
                job.read_topic(spark, source_options),
                destination,
                options.format_,
                overwrite=options.overwrite,
                max_files=options.files,
            )
    row = ExportResult(
        source=table if table is not None else full_topic_name(topic),
        destination=without_secrets(destination),
        format=options.format_,
        rows=rows,
        elapsed_ms=int((perf_counter() - began) * 1000),
    )
    context.show(row, table=_sentence)


def _options(
    context: Context, topic: str | None, table: str | None, options: ExportArguments
) -> dict[str, str]:
    """Options of the source; a missing topic or table is an error before Spark starts.

    Raises:
        TopicNotFound, TableNotFound, InvalidValue
    """
    of_topic, of_table = ("isolation_level", "from_", "to"), ("check", "at")
    at: str | None = None
    for name in of_topic if table is not None else of_table:
        if getattr(options, name) is not None:
            flag = f"--{name.rstrip('_').replace('_', '-')}"
            raise InvalidValue(f"{flag} is for {'topics' if table is not None else 'tables'}")
    with context.open_store(context.store_path, read_only=True) as store:
        if table is not None:
            if options.at is not None:
                at = str(final_version(context, store.table(table), options.at).version)
            else:
                store.table(table)
        else:
            assert topic is not None, "one of them is exported"
            store.reports.topic_stats(topic)
    level, check = options.isolation_level, options.check
    return options_of(
        context,
        topic=topic,
        table=table,
        isolationLevel=level and level.name,
        startingPosition=options.from_,
        endingPosition=options.to,
        check=check and check.name,
        asOf=at,
        offloadPath=options.offload_path,
    )


def _sentence(row: ExportResult) -> str:
    return f"Wrote {plural(row.rows, 'row')} to {row.destination}. {duration(row.elapsed_ms)}."
