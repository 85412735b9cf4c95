"""`txnctl pipeline ingest`: files -> a topic, all or none."""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import TOPIC, NamedConstant
from txnctl.commands.pipeline.session import (
    ELAPSED,
    check_staging,
    options_of,
    reaches_staging,
    refuse_transaction,
    session,
    uses_spark,
    watched_tasks,
)
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, plural
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.session import SparkOptions
    from txnctl.spark.sink.progress import BatchRecord


class StoredBefore(NamedTuple):
    """The earlier run with the same --write-id.

    Attributes:
        is_compared: whether both runs are known to have the same content; a run of txnctl 0.1.0 recorded none.
    """

    txn_id: str | None
    at: str | None
    is_compared: bool


class SkippedReason(NamedTuple):
    """The rows that were left out for one reason."""

    reason: str
    rows: int


class IngestResult(NamedTuple):
    """The result of one run.

    Attributes:
        messages: rows that became messages, by this run or by the earlier one.
        skipped: rows that this run left out.
        stored_before: the earlier run that has stored the rows; None if this run stored them.
        skipped_reasons: the most frequent reasons.
    """

    topic: str
    messages: int
    skipped: int
    stored_before: StoredBefore | None
    elapsed_ms: int
    skipped_reasons: list[SkippedReason]


FIELDS = fields_of(
    IngestResult,
    {
        "topic": Help("The full name of the topic.", kind="id"),
        "messages": "Rows that became messages, now or in the earlier run.",
        "skipped": "Rows that were left out (--on-error skip).",
        "stored_before": "The earlier run with this --write-id that stored the rows, if one did: this one stored none.",
        **ELAPSED,
        "skipped_reasons": "Why rows were left out: reason and rows of each, the most frequent ones first.",
    },
)

FORMAT = NamedConstant("format", ("csv", "json", "parquet"))
ON_ERROR = NamedConstant("on error", ("stop", "skip"))
_SHOWN = 5
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
    delimiter: str | None
    encoding: str | None
    multi_line: bool
    write_id: str | None
    staging_path: str | None


@option_values("options", IngestArguments)
@argument("file", nargs=-1, required=True, metavar="FILE...", help="Files, directories or patterns to read.")
@argument("topic", type=TOPIC, help="The topic that the rows go to.")
@option("--format", "format_", type=FORMAT, help="Of all files. [default: what their names end in]")
@option(
    "--key-column", "key", metavar="COLUMN", help="The column that is the key of the message. [default: none]"
)
@option(
    "--value-column",
    "value",
    metavar="COLUMN",
    help="The column that is the value. [default: the row as JSON]",
)
@option(
    "--event-time-column",
    "event_time",
    metavar="COLUMN",
    help="The column that is the event time, kept to the millisecond: RFC 3339, a date, or milliseconds since 1970; "
    "a number like 20240501 or 1714557600 only where the name ends with Ms.",
)
@option("--create", is_flag=True, help="Create the topic if it is missing.")
@option(
    "--on-error",
    type=ON_ERROR,
    default="stop",
    help="At a row that cannot be a message: end, and store nothing; or leave it out. [default: stop]",
)
@option("--delimiter", metavar="CHAR", help="CSV: between fields. [default: a comma; a tab in .tsv]")
@option("--encoding", metavar="NAME", help="CSV: of the text, such as latin-1 or utf-16. [default: utf-8]")
@option(
    "--multi-line/--no-multi-line",
    default=True,
    help="CSV: whether quoted fields may hold line ends. Without, a large file is many tasks. [default: they may]",
)
@option("--write-id", metavar="ID", help="Store it once, however often the job runs with this id.")
@reaches_staging
@uses_spark
@names_store(effect="writes")
@output(FIELDS, name_field="topic")
@example(
    "txnctl pipeline ingest requests.csv requests --key-column account --event-time-column date", setup=_SETUP
)
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
    csv      RFC 4180, with names in the first line. Values are text; an empty
             one is null, a quoted one ("") an empty text.
    json     An object a line. The text is stored unchanged, to the last digit.
    parquet  Rows become JSON; dates and times in UTC, to the last digit.

    A directory is all files below, except names that begin with a dot or an underscore. Files of one directory or
    pattern have the same columns; types of Parquet that widen may differ, such as int32 and int64. Pipes and devices
    are refused: `produce --input` reads those.

    The whole input is one transaction: no reader sees a part, and after a failure nothing is stored. Files are stored
    in the order of the arguments, rows in the order of the file.

    A row that cannot be a message ends the job with the file and the line: a wrong number of columns, no JSON, a
    malformed time or one without a zone, bytes that are not text. A quote that is never closed always ends the job,
    also with --on-error skip, because the rows behind the quote cannot be told apart.

    With --write-id a script may be run again without a second thought: input stored under the id already is not stored
    twice, and the answer names the transaction that stored it. Different files, options or topics under a used id are
    an error.
    """
    from time import perf_counter

    from storage.values.names import full_topic_name

    began = perf_counter()
    refuse_transaction("pipeline ingest")
    name = full_topic_name(topic)
    from txnctl.files import csv_rows
    from txnctl.files.input_parts import InputOptions
    from txnctl.files.message_rows import MessageColumns
    from txnctl.pipelines import ingest as job, input_fingerprint

    columns = MessageColumns(options.value, options.key, options.event_time)
    dialect = csv_rows.checked_dialect(options.delimiter, options.encoding)
    input_options = InputOptions(options.format_, options.multi_line, options.on_error == "skip", dialect)
    fingerprint = earlier = None
    if options.write_id is not None:
        fingerprint = input_fingerprint.of_files(file, columns, input_options)
        earlier = _find_earlier(context, name, options.write_id, fingerprint)
    check_staging(context, spark_options, options.staging_path)
    source_options = options_of(
        context,
        topic=name,
        stagingPath=options.staging_path,
        writeId=options.write_id,
        writeFingerprint=fingerprint,
        createTopic="true" if create else None,
    )
    if not create:
        _check_topic(context, topic)
    if earlier is not None and fingerprint is not None and earlier.fingerprint == fingerprint:
        done = job.Ingested(earlier.rows, 0)
    else:
        parts = job.plan_files(file, columns, input_options)
        with (
            _told_to_look(topic, options.write_id),
            session("ingest", spark_options) as spark,
            watched_tasks(context, "Ingest", spark),
        ):
            done = job.ingest_files(spark, parts, source_options, columns, input_options)
        if create and not done.messages:
            _create(context, topic)
    before = None if earlier is None else StoredBefore(earlier.txn, earlier.at, earlier.content is not None)
    elapsed_ms = int((perf_counter() - began) * 1000)
    reasons = [SkippedReason(*reason) for reason in done.reasons]
    context.show(
        IngestResult(name, done.messages, done.skipped, before, elapsed_ms, reasons), table=_sentence
    )


@contextmanager
def _told_to_look(topic: str, write_id: str | None) -> Iterator[None]:
    """Add to the error of a killed JVM that the rows may be stored: the kill may have come just after the commit."""
    from storage.errors import JvmDied

    try:
        yield
    except JvmDied as error:
        if write_id is None:
            error.hint = (
                "All rows are stored, or none: look before you run the job again "
                f"(`{line('topics peek', topic)}`), or give a --write-id. {error.hint}"
            )
        raise


def _find_earlier(context: Context, topic: str, write_id: str, fingerprint: str | None) -> BatchRecord | None:
    """The recorded run with this id, seen to be of the same input before anything is parsed.

    Raises:
        AlreadyExists: the id was used for different files, options or topics.
    """
    from txnctl.spark.sink import progress
    from txnctl.spark.sink.repeated_write import check_same

    with context.open_store(context.store_path, read_only=True) as store:
        stored = progress.find(store, progress.key_of_write(write_id))
        if stored is None:
            return None
        existing = [topic] if store.has_topic(topic) else []
        ids = {extent.topic: extent.topic_id for extent in store.reports.topic_extents(existing)}
    # Without a row nothing says which topic it was.
    targets = {topic: ids.get(topic, 0)} if stored.rows else stored.topics
    check_same(write_id, stored, stored._replace(topics=targets, table=None, fingerprint=fingerprint))
    return stored


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


def _sentence(row: IngestResult) -> Iterator[str]:
    from storage.values.names import short_topic_name

    before, topic = row.stored_before, short_topic_name(row.topic)
    if before is not None:
        yield f"Nothing was stored: {plural(row.messages, 'message')} in {topic} were stored under this id"
        yield f"by transaction {before.txn_id} at {before.at}."
        if not before.is_compared:
            yield "That was txnctl 0.1.0, which recorded no content: whether it was the same cannot be"
            yield "compared. Topic and number of rows agree."
        return
    left_out = f"; left out {plural(row.skipped, 'row')}" if row.skipped else ""
    yield f"Stored {plural(row.messages, 'message')} in {topic}{left_out}. {duration(row.elapsed_ms)}."
    for reason, rows in row.skipped_reasons[:_SHOWN]:
        yield f"Left out {plural(rows, 'row')}: {reason}"
