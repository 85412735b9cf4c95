"""`txnctl pipeline settle`: committed requests -> balances in a table, exactly once."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import SUBSCRIPTION, TABLE, TOPIC, NamedConstant
from txnctl.commands.pipeline.engine import ENGINE, LOCAL, choose, chooses_engine, engine_name, of_spark
from txnctl.commands.pipeline.request_form import names_request_fields
from txnctl.commands.pipeline.session import (
    ELAPSED,
    options_of,
    reaches_offloaded,
    refuse_transaction,
    session,
    uses_spark,
)
from txnctl.commands.pipeline.stream import check_topic, checkpoint, streams, timing
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from storage import MessageId, Store
    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.engine import EngineOptions
    from txnctl.commands.pipeline.request_form import RequestArguments
    from txnctl.commands.pipeline.session import SparkOptions
    from txnctl.commands.pipeline.stream import StreamOptions
    from txnctl.pipelines.settler import BatchSettler, Settlement, SettleOptions


class SettleResult(NamedTuple):
    """The result of one run."""

    topic: str
    table: str
    batches: int
    requests: int
    accounts_changed: int
    skipped: int
    through: MessageId | None
    engine: str
    elapsed_ms: int


FIELDS = fields_of(
    SettleResult,
    {
        "topic": Help("The full name of the topic.", kind="id"),
        "table": "The table of balances.",
        "batches": "Micro-batches that brought something.",
        "requests": "Requests that were applied.",
        "accounts_changed": "Balances that were written.",
        "skipped": "Messages that are no requests (--on-error skip).",
        "through": "The last message that is settled, by this run or an earlier one; or null.",
        **ENGINE,
        **ELAPSED,
    },
)

ON_ERROR = NamedConstant("on error", ("stop", "skip"))
MESSAGES_DEFAULT = 500_000
_SETUP = (
    "txnctl topics create requests",
    "txnctl tables create accounts",
    """txnctl produce requests -k B1 -m '{"delta": "500.00"}'""",
    """txnctl produce requests -k B1 -m '{"delta": "-20.50"}'""",
)


class SettleArguments(OptionValues):
    """Options of `pipeline settle`."""

    subscription: str | None
    on_error: str
    offload_path: str | None


@option_values("options", SettleArguments)
@argument("topic", type=TOPIC, help="The topic of requests.")
@option("--table", type=TABLE, required=True, help="The table of balances.")
@names_request_fields
@option(
    "--subscription", type=SUBSCRIPTION, help="Its cursor follows what is settled. [default: settle-TABLE]"
)
@option(
    "--on-error",
    type=ON_ERROR,
    default="stop",
    help="At a message that is no request: end, or leave it out. [default: stop]",
)
@streams
@chooses_engine
@reaches_offloaded
@uses_spark
@names_store(effect="writes")
@output(FIELDS, name_field="through")
@example(
    "txnctl pipeline settle requests --table accounts --once", "txnctl tables get accounts B1", setup=_SETUP
)
def settle(
    context: Context,
    topic: str,
    table: str,
    options: SettleArguments,
    fields: RequestArguments,
    stream: StreamOptions,
    engine_options: EngineOptions,
    spark_options: SparkOptions,
) -> None:
    """Apply committed requests to a table of balances, exactly once.

    A request is a message with an account as key and JSON with an amount as value, decimal with at most two digits
    after the point: {"delta": "-20.50"}. Balances stand in the table as such text; an account that is not there has
    0.00.

    With --debit and --credit a message is a transfer between two accounts, with --legs a posting to any number: all
    legs apply in one table transaction. The messages that one transaction of the topic has sent apply together too,
    up to 10,000 entries of the log apart; so no half of a transfer is ever seen in the table.

    The topic is read at READ_COMMITTED: behind an open transaction the job waits. Each micro-batch is one serializable
    transaction over the balances and a note, in the table txnctl-sinks, of how far the topic is settled. So a request
    counts once however often this is killed or started again; no checkpoint is needed for that. One job reads a
    subscription: a second one is refused while the first runs.

    The job runs until Ctrl-C, or for the time of --for; with --once until the requests of this moment are settled.

    With --once up to 100,000 messages (--local-max) are settled by this process alone, in less than a second where they
    are few: no Java, no PySpark. The result is the same, and both engines may take turns.
    """
    from time import perf_counter

    from storage import Store
    from storage.values.names import full_topic_name

    began = perf_counter()
    refuse_transaction("pipeline settle")
    _, seconds = timing(stream)
    name = full_topic_name(topic)
    source_options = options_of(
        context,
        topic=name,
        subscription=options.subscription or f"settle-{table}",
        startingPosition=stream.from_ or "earliest",
        maxMessagesPerTrigger=stream.max_messages or MESSAGES_DEFAULT,
        offloadPath=options.offload_path,
    )
    form = fields.form()
    check_topic(context, topic, source_options["subscription"])
    with context.open_store(context.store_path, read_only=False) as store:
        assert isinstance(store, Store)
        from txnctl.pipelines import local_settle
        from txnctl.pipelines.settler import BatchSettler, SettleOptions, settled_through

        settled_through(store, name, table)
        only_spark = {
            "settling without --once": not stream.once,
            "--checkpoint": stream.checkpoint is not None,
            **of_spark(spark_options, options.offload_path),
        }
        parsed = local_settle.parse_options(source_options)
        engine = choose(engine_options, only_spark, lambda: local_settle.backlog(parsed))
        job = _Settling(store, name, table, SettleOptions(form, options.on_error == "skip"))
        with context.progress("Settle", unit="requests") as bar:

            def told(done: Settlement) -> None:
                bar.advance(done.requests)

            if engine == LOCAL:
                settler = BatchSettler(*job, told)
                local_settle.settle_backlog(settler, store, parsed, seconds)
            else:
                settler = _settle_on_spark(job, source_options, stream, spark_options, told)
    done = settler.total
    row = SettleResult(
        topic=name,
        table=table,
        batches=settler.batches,
        requests=done.requests,
        accounts_changed=done.accounts,
        skipped=done.skipped,
        through=done.through,
        engine=engine,
        elapsed_ms=int((perf_counter() - began) * 1000),
    )
    context.show(row, table=_sentence)


class _Settling(NamedTuple):
    """The topic, by its full name, and the table to settle it into."""

    store: Store
    topic: str
    table: str
    options: SettleOptions


def _settle_on_spark(
    job: _Settling,
    source_options: dict[str, str],
    stream: StreamOptions,
    spark_options: SparkOptions,
    on_batch: Callable[[Settlement], None],
) -> BatchSettler:
    """Settle in a session of Spark; return the settler, with its sums."""
    from txnctl.pipelines.settle import Settler, start_settling

    every, seconds = timing(stream)
    with session("settle", spark_options) as spark, checkpoint(stream.checkpoint) as place:
        settler = Settler(*job, on_batch)
        start_settling(spark, settler, source_options, place, interval_s=every).wait(seconds)
    return settler


def _sentence(row: SettleResult) -> str:
    through = f"; settled through {row.through}" if row.through is not None else ""
    kind = "that is no request" if row.skipped == 1 else "that are no requests"
    left_out = f"; left out {plural(row.skipped, 'message')} {kind}" if row.skipped else ""
    return (
        f"Applied {plural(row.requests, 'request')} to {row.table} in "
        f"{plural(row.batches, 'batch', 'batches')}{left_out}{through}. "
        f"{duration(row.elapsed_ms)}, {engine_name(row.engine)}."
    )
