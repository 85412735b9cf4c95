"""`txnctl pipeline ingest`: files -> a topic, all or none."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import TOPIC, NamedConstant
from txnctl.commands.pipeline.session import (
    ELAPSED,
    options_of,
    reaches_staging,
    refuse_transaction,
    session,
    uses_spark,
    watched_tasks,
)
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.session import SparkOptions


class IngestResult(NamedTuple):
    """The result of one run."""

    topic: str
    messages: int
    skipped: int
    elapsed_ms: int


FIELDS = fields_of(
    IngestResult,
    {
        "topic": Help("The full name of the topic.", kind="id"),
        "messages": "Rows that became messages.",
        "skipped": "Rows that were left out (--on-error skip).",
        **ELAPSED,
    },
)

FORMAT = NamedConstant("format", ("csv", "json", "parquet"))
ON_ERROR = NamedConstant("on error", ("stop", "skip"))
_SETUP = (
    "txnctl topics create requests",
    "printf 'account,delta,date\\nB1,500.00,2024-05-01\\nB2,-20.50,2024-05-02\\n' > requests.csv",
)


class IngestArguments(OptionValues):
    """Options of `pipeline ingest`."""

    format_: str | None
    key: str | None
    value: str | None
    event_time: str | None
    on_error: str
    multi_line: bool
    write_id: str | None
    staging_path: str | None


@option_values("options", IngestArguments)
@argument("file", nargs=-1, required=True, metavar="FILE...", help="Files, directories or patterns to read.")
@argument("topic", type=TOPIC, help="The topic that the rows go to.")
@option("--format", "format_", type=FORMAT, help="Of all files. [default: what their names end in]")
@option("--key", metavar="COLUMN", help="The column that is the key of the message. [default: none]")
@option("--value", metavar="COLUMN", help="The column that is the value. [default: the row as JSON]")
@option(
    "--event-time",
    metavar="COLUMN",
    help="The column that is the event time: RFC 3339, a date, or milliseconds since 1970.",
)
@option("--create", is_flag=True, help="Create the topic if it is missing.")
@option(
    "--on-error",
    type=ON_ERROR,
    default="stop",
    help="At a row that cannot be a message: end, and store nothing; or leave it out. [default: stop]",
)
@option("--multi-line", is_flag=True, help="CSV: quoted fields may hold line ends; a file is one task then.")
@option("--write-id", metavar="ID", help="Store it once, however often the job runs with this id.")
@reaches_staging
@uses_spark
@names_store(effect="writes")
@output(FIELDS, name_field="topic")
@example("txnctl pipeline ingest requests.csv requests --key account --event-time date", setup=_SETUP)
def ingest(
    context: Context,
    file: Sequence[str],
    topic: str,
    create: bool,
    options: IngestArguments,
    spark_options: SparkOptions,
) -> None:
    r"""Store the rows of files as messages of a topic, all or none.

    \b
    csv      A first line with names; every value is text.
    json     An object a line. The text is stored unchanged, to the last digit.
    parquet  Rows become JSON; dates and times in UTC.

    The whole input is one transaction: no reader sees a part, and after a failure nothing is stored. Files are stored
    in the order of the arguments, rows in the order of the file.

    A row that cannot be a message ends the job with the file and the number of the row: a wrong number of columns, no
    JSON, a malformed time. With --write-id a script may be run again without a second thought: rows stored under the
    id already are not stored twice, and `messages` counts the rows of the input.
    """
    from time import perf_counter

    from storage.values.names import full_topic_name

    began = perf_counter()
    refuse_transaction("pipeline ingest")
    name = full_topic_name(topic)
    source_options = options_of(
        context,
        topic=name,
        stagingPath=options.staging_path,
        writeId=options.write_id,
        createTopic="true" if create else None,
    )
    if not create:
        _check_topic(context, topic)
    with session("ingest", spark_options) as spark:
        from txnctl.pipelines import ingest as job

        columns = job.MessageColumns(options.value, options.key, options.event_time)
        with watched_tasks(context, "Ingest", spark):
            input_options = job.InputOptions(options.format_, options.multi_line, options.on_error == "skip")
            done = job.ingest_files(spark, file, source_options, columns, input_options)
    if create and not done.messages:
        _create(context, topic)
    elapsed_ms = int((perf_counter() - began) * 1000)
    context.show(IngestResult(name, done.messages, done.skipped, elapsed_ms), table=_sentence)


def _check_topic(context: Context, topic: str) -> None:
    """See that the topic is there before Spark is started.

    Raises:
        TopicNotFound
    """
    with context.open_store(context.store_path, read_only=True) as store:
        store.reports.topic_stats(topic)


def _create(context: Context, topic: str) -> None:
    """Create the topic that no row has created: there was none."""
    from contextlib import suppress

    from storage.errors import AlreadyExists

    with context.open_store(context.store_path, read_only=False) as store, suppress(AlreadyExists):
        store.create_topic(topic)


def _sentence(row: IngestResult) -> str:
    from storage.values.names import short_topic_name

    left_out = f"; left out {plural(row.skipped, 'row')}" if row.skipped else ""
    stored = f"Stored {plural(row.messages, 'message')} in {short_topic_name(row.topic)}"
    return f"{stored}{left_out}. {duration(row.elapsed_ms)}."
