"""`txnctl pipeline monitor`: the money of a topic as soon as written, final or not."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.decorators import argument, example, names_store, option, option_values, output
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC, NamedConstant
from txnctl.commands.pipeline.monitor_view import FIELDS, MonitorResult, live, report, sums_of
from txnctl.commands.pipeline.session import options_of, reaches_offloaded, session, uses_spark
from txnctl.commands.pipeline.stream import check_topic, checkpoint, streams, timing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.session import SparkOptions
    from txnctl.commands.pipeline.stream import StreamOptions

PERIOD = NamedConstant("period", ("minute", "hour", "day", "week", "month", "year"))
TIME = NamedConstant("time", ("event", "publish"))
MESSAGES_DEFAULT = 500_000
_SETUP = (
    "txnctl topics create requests",
    """txnctl produce requests -k B1 -m '{"delta": "500.00"}'""",
    """txnctl produce requests -k B2 -m '{"delta": "-20.50"}'""",
)


class MonitorArguments(OptionValues):
    """Options of `pipeline monitor`."""

    period: str
    time_: str
    outsized: str
    overdraft: str
    amount: str
    to: str | None
    subscription: str | None
    offload_path: str | None


@option_values("options", MonitorArguments)
@argument("topic", type=TOPIC, help="The topic of requests.")
@option(
    "--period", type=PERIOD, default="month", help="What in- and outflow are added up for. [default: month]"
)
@option(
    "--time", "time_", type=TIME, default="event", help="Which time of a message counts. [default: event]"
)
@option(
    "--outsized",
    metavar="AMOUNT",
    default="100000",
    help="From this amount on a message is shown. [default: 100000]",
)
@option(
    "--overdraft", metavar="AMOUNT", default="0", help="Below minus this an account is shown. [default: 0]"
)
@option(
    "--amount",
    metavar="FIELD",
    default="delta",
    help="The field of the JSON with the amount. [default: delta]",
)
@option("--to", metavar="DIR", help="Write what every micro-batch changed to Parquet, below this directory.")
@option("--subscription", type=SUBSCRIPTION, help="Create it, and let its cursor follow. [default: none]")
@streams
@reaches_offloaded
@uses_spark
@names_store(effect="writes")
@output(FIELDS, name_field="topic")
@example("txnctl pipeline monitor requests --once", setup=_SETUP)
def monitor(
    context: Context,
    topic: str,
    options: MonitorArguments,
    stream: StreamOptions,
    spark_options: SparkOptions,
) -> None:
    """Watch the money of a topic as soon as written, final or not.

    The topic is read at READ_UNCOMMITTED: nothing waits for an open transaction, and messages aborted later were
    counted. Messages are requests as for `pipeline settle`. Shown are the reserves (the sum over all customers), in-
    and outflow by period, accounts that are overdrawn, and single amounts that are out of the ordinary.

    On a terminal the view changes as the topic grows, until Ctrl-C; the result is printed at the end of --once or
    --for. --to keeps every batch as Parquet: DIR/sums and DIR/unusual with a directory for each micro-batch. With
    --checkpoint the next run goes on where this run ended, otherwise at --from again.
    """
    from time import perf_counter

    from storage.values.names import full_topic_name

    began = perf_counter()
    every, seconds = timing(stream)
    outsized = _hellers(options.outsized, "outsized")
    overdraft = _hellers(options.overdraft, "overdraft")
    name = full_topic_name(topic)
    source_options = options_of(
        context,
        topic=name,
        subscription=options.subscription,
        startingPosition=stream.from_ or "earliest",
        maxMessagesPerTrigger=stream.max_messages or MESSAGES_DEFAULT,
        offloadPath=options.offload_path,
    )
    check_topic(context, topic, options.subscription)
    with (
        session("monitor", spark_options) as spark,
        checkpoint(stream.checkpoint) as place,
    ):
        from txnctl.pipelines import monitor as job

        watch = job.MonitorOptions(options.period, options.time_, outsized, overdraft, options.amount)
        with live(context, name) as show_view:
            taking = job.Monitor(watch, options.to, show_view)
            job.start_monitoring(spark, taking, source_options, place, interval_s=every).wait(seconds)
    sums = sums_of(name, taking.view, goes_on=stream.checkpoint is not None)
    result = MonitorResult(sums, int((perf_counter() - began) * 1000))
    context.show(result, table=lambda shown: report(context, shown.sums))


def _hellers(text: str, name: str) -> int:
    """An amount of an option.

    Raises:
        InvalidValue
    """
    from txnctl.pipelines.hellers import parse_hellers

    try:
        return parse_hellers(text)
    except ValueError:
        raise InvalidValue(f"--{name} {text[:80]!r} is not an amount with at most two decimals") from None
