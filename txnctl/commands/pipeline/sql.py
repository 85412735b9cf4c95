"""`txnctl pipeline sql`: a statement over topics and tables."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.option_values import OptionValues
from txnctl.cli.time_values import MOMENT
from txnctl.cli.value_types import ISOLATION_LEVEL
from txnctl.commands.pipeline.session import reaches_offloaded, session, uses_spark, watched_tasks
from txnctl.input.names_once import named_once
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import IsolationLevel, Store
    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.session import SparkOptions
    from txnctl.pipelines.store_views import StoreViews

_COLUMN = "column"
_STATEMENT_BYTES_MAX = 1024 * 1024
FIELDS = (
    Field(
        _COLUMN,
        "text",
        "Every column of the statement, under its name: numbers as numbers, decimals and times as text, bytes as text "
        "or under nameBase64.",
    ),
)
_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl tables put accounts B2 20",
    "txnctl topics create orders",
    "seq 5 | txnctl produce orders",
)


class SqlArguments(OptionValues):
    """Options of `pipeline sql`."""

    topic: Sequence[str]
    table: Sequence[str]
    isolation_level: IsolationLevel | None
    at: int | None
    text: bool
    offload_path: str | None


@option_values("options", SqlArguments)
@argument("statement", help="The SQL statement; `-` reads it from standard input.")
@option("--topic", metavar="NAME[=TOPIC]", multiple=True, help="NAME is this topic; may be repeated.")
@option("--table", metavar="NAME[=TABLE]", multiple=True, help="NAME is this table; may be repeated.")
@option("--isolation-level", type=ISOLATION_LEVEL, help="What of topics is read. [default: READ_COMMITTED]")
@option("--at", type=MOMENT, metavar="TIME", help="Read tables as of this time, or version. [default: now]")
@option("--text", is_flag=True, help="Keys and values are text; one that is not UTF-8 is an error.")
@reaches_offloaded
@uses_spark
@names_store(effect="reads")
@output(FIELDS, name_field=_COLUMN)
@example(
    "txnctl pipeline sql --text 'SELECT key, value FROM accounts ORDER BY key'",
    "txnctl pipeline sql 'SELECT count(*) AS messages FROM orders'",
    setup=_SETUP,
)
def sql(context: Context, statement: str, options: SqlArguments, spark_options: SparkOptions) -> None:
    r"""Run a SQL statement over topics and tables.

    A name in the statement is the topic or the table of that name; --topic and --table give further names, and decide
    where both exist. Put names with hyphens into backticks. The columns are those of docs/SPARK.md; key and value are
    bytes, or with --text texts.

    All topics are read up to one moment, all tables at one version: the newest at that moment that no open transaction
    can change, or that of --at. Nothing is written to the store; with --offload-path, messages that no offloaded file
    has are written there for the tasks.

    The statement is a query of Spark SQL. With `-o name` the first column is printed alone.
    """
    statement = _statement(statement)
    with context.open_store(context.store_path, read_only=True) as store:
        views = _views(store, options)
        with session("sql", spark_options) as spark:
            from txnctl.output.query_rows import check_columns
            from txnctl.pipelines.sql import result_batches, run_statement

            frame = run_statement(spark, statement, views)
            if context.output in ("json", "ndjson"):
                check_columns(frame.columns)
            _note_version(context, views)
            with watched_tasks(context, "SQL", spark):
                rows = [row for columns in result_batches(frame) for row in zip(*columns, strict=True)]
            _show(context, frame.dtypes, rows)


def _statement(text: str) -> str:
    """Return the statement as given, or from standard input.

    Raises:
        InvalidValue: it is empty, too long, or no text; or standard input cannot be read.
    """
    if text == "-":
        from txnctl.input.source import Source

        content = Source.open(None).read_all(_STATEMENT_BYTES_MAX)
        if len(content) > _STATEMENT_BYTES_MAX:
            raise InvalidValue(f"the statement has more than {_STATEMENT_BYTES_MAX:,} bytes")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise InvalidValue(f"the statement is not UTF-8 at byte {error.start}") from None
    text = text.strip().rstrip(";").rstrip()
    if not text:
        raise InvalidValue("the statement is empty", hint="Write it as one argument, in quotes.")
    return text


def _views(store: Store, options: SqlArguments) -> StoreViews:
    """Return the views of the options, which exist.

    Raises:
        InvalidValue, TopicNotFound, TableNotFound
    """
    from storage import IsolationLevel
    from txnctl.output.timestamp import NOW
    from txnctl.pipelines.store_views import NamedRelation, ReadMoment, StoreViews

    given = [*map(NamedRelation.of_topic, options.topic), *map(NamedRelation.of_table, options.table)]
    named = named_once(
        [(view.name, view) for view in given], "--topic, --table: ", "Write --topic NAME=TOPIC."
    )
    moment = ReadMoment(
        options.isolation_level or IsolationLevel.READ_COMMITTED,
        None if options.at == NOW else options.at,
        options.offload_path,
        options.text,
    )
    views = StoreViews(store, moment, named)
    views.check_named()
    return views


def _note_version(context: Context, views: StoreViews) -> None:
    """Say that an open transaction keeps tables from being read as of later."""
    if views.version is not None and views.version.waits_for is not None:
        from storage.client.final_version import blocker_text
        from storage.values.timestamps import rfc3339

        time = rfc3339(views.version.version // 1_000_000)
        context.note(
            f"tables are read as of {time}: {blocker_text(views.version)} can still write later ones"
        )


def _show(context: Context, types: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> None:
    """Print the rows in the format asked for; the columns have names and types of Spark."""
    from txnctl.output.query_rows import NUMBERS, cell, json_row

    if context.output == "name":
        for row in rows:
            context.out.write(cell(row[0]) + "\n")
    elif context.output == "table":
        from txnctl.output.escape import printable
        from txnctl.output.table_layout import LaidColumn, laid_out

        cells = [[cell(value) for value in row] for row in rows]
        if not cells:
            context.note("the result has no rows")
            return
        columns = [
            LaidColumn(
                printable(name), "number" if kind.startswith(NUMBERS) else "text", [row[at] for row in cells]
            )
            for at, (name, kind) in enumerate(types)
        ]
        context.out.write(f"{laid_out(columns, context.table_width())}\n")
    else:
        names = [name for name, _ in types]
        context.show_list(json_row(names, row) for row in rows)
