"""`txnctl consume`: read a topic, or receive messages of a subscription."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.declaration import command
from txnctl.cli.decorators import argument, example, names_store, option, option_values, output, partial_rows
from txnctl.cli.value_types import (
    DURATION,
    ISOLATION_LEVEL,
    ON_OPEN,
    POSITION_OR_TIME,
    SUBSCRIPTION,
    SUBSCRIPTION_TYPE,
    TOPIC,
    TXN_ID,
    NamedConstant,
)
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.consume.options import ConsumeOptions
from txnctl.output.messages import DELIVERED_FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.commands.consume.stop_condition import Patience

FORMATS = ("table", "wide", "json", "ndjson", "name", "value")

_OF_SUBSCRIPTIONS = {
    "subscription_type": "--subscription-type",
    "on_open": "--on-open",
    "consumer_name": "--consumer",
    "ack": "--ack",
    "txn": "--txn",
    "run": "--exec",
    "on_error": "--on-error",
    "retry_delay": "--retry-delay",
    "dead_letter_topic": "--dead-letter-topic",
    "max_redeliver_count": "--max-redeliver-count",
}
"""What only a subscription has: parameter -> option."""

_SETUP = ("txnctl topics create orders", "txnctl produce orders -m hello -m again")


@command
@option_values("options", ConsumeOptions)
@argument("topic", type=TOPIC, help="The topic.")
@option("-s", "--subscription", type=SUBSCRIPTION, help="Take messages from this subscription.")
@option(
    "--subscription-type",
    type=SUBSCRIPTION_TYPE,
    help="Its type. [default: what it has; Exclusive for a new one]",
)
@option(
    "--isolation-level",
    type=ISOLATION_LEVEL,
    help="The level to read at. [default: what the subscription has; else READ_COMMITTED]",
)
@option(
    "--on-open",
    type=ON_OPEN,
    help="What open transactions do to read-committed. [default: what the subscription has; else block]",
)
@option(
    "--from",
    "start",
    type=POSITION_OR_TIME,
    help="Where to begin reading, or a new subscription; `--since 2h` is `--from @2h`. "
    "[default: earliest; latest for a new subscription]",
)
@option(
    "--to", "end", type=POSITION_OR_TIME, help="The last message or entry to read, or @TIME. Not with -s."
)
@option(
    "--tail",
    "--last",
    type=WholeNumber(0),
    metavar="N",
    help="Begin with the last N visible messages; with -f go on from there. Not with -s.",
)
@option("-n", "--count", "limit", type=WholeNumber(1), metavar="N", help="Messages at the most.")
@option("-f", "--follow", is_flag=True, help="At the end wait for more.")
@option(
    "--timeout",
    type=DURATION,
    help="At the end wait so long for the next one; exit 7 if -n did not come by then.",
)
@option(
    "--ack",
    type=NamedConstant("ack", ("auto", "none")),
    help="When to acknowledge. [default: auto]",
)
@option("--txn", type=TXN_ID, help="The open transaction to acknowledge in. [env: TXNCTL_TXN]")
@option(
    "--exec", "run", metavar="CMD", help="Run CMD in the shell for each message, its value on standard input."
)
@option(
    "--on-error",
    type=NamedConstant("on error", ("stop", "retry")),
    help="What to do when CMD fails: stop there, or go on and take the message again later. [default: stop]",
)
@option("--retry-delay", type=DURATION, help="How much later. [default: 1m]")
@option("--dead-letter-topic", type=TOPIC, help="Where messages go that were redelivered too often.")
@option("--max-redeliver-count", type=WholeNumber(0), metavar="N", help="How often is not too often.")
@option("--consumer", "consumer_name", metavar="NAME", help="The consumer's name. [default: one of its own]")
@option(
    "--read-compacted",
    is_flag=True,
    help="Read the newest message of each key where the topic is compacted, then the log behind.",
)
@option("--lock-timeout", "shared_lock_timeout", type=DURATION, shared=True,
        help="How long to wait for a lock. [env: TXNCTL_LOCK_TIMEOUT; default: 5s]")  # fmt: skip
@names_store(effect="writes")
@partial_rows
@output(DELIVERED_FIELDS, name_field="messageId", formats=FORMATS, default_piped="ndjson")
@example("txnctl consume orders", setup=_SETUP)
@example("txnctl consume orders --isolation-level READ_UNCOMMITTED -n 10 -o value", setup=_SETUP)
@example("txnctl consume orders --tail 10 -o value", setup=_SETUP)
@example("txnctl consume orders -s billing --from earliest", setup=_SETUP)
@example(
    "txnctl consume orders -s packing --subscription-type Shared --on-open skip --from earliest", setup=_SETUP
)
@example(
    "txnctl consume orders -s mailer --from earliest --exec 'cat >> sent.txt' --on-error retry", setup=_SETUP
)
@example("txnctl consume orders --read-compacted", setup=(*_SETUP, "txnctl topics compact orders"))
@example("txnctl consume orders -o ndjson | txnctl produce copy --create --input ndjson", setup=_SETUP)
def consume(context: Context, topic: str, options: ConsumeOptions) -> None:
    """Read a topic, or receive messages of a subscription.

    Without -s the command only reads, and changes nothing. A value is printed as text, or as Base64 where not UTF-8;
    -o value prints the bytes, and a line end after each value.

    With -s the command acknowledges messages of the subscription. A missing subscription is created at --from. A
    message is acknowledged when the line has been written and flushed (--ack auto), or never (--ack none).
    Unacknowledged messages are delivered again, at once if this process is killed: a line may come twice, none is
    lost. With --txn the acknowledgement counts when that transaction commits; inside `transactions run`, TXNCTL_TXN
    names the transaction. With standard output closed (`>&-`) the command is refused, except with --exec.

    --on-open skip, for shared and key-shared subscriptions, passes open transactions: committed messages behind come
    at once, messages of the transaction after the commit; on key-shared, later messages with the same keys wait as
    well. A committed transaction may then come in parts, and the order of a producer is not kept. The mode belongs to
    the subscription, like the level, and can change while no consumer is attached.

    On shared and key-shared subscriptions a message with a delivery time comes when that is reached; -f waits for it.
    --read-compacted reads the compacted view of `topics compact` up to its horizon, at original positions and also
    where the log was trimmed, and the log from there on; at read-committed, and with -s on exclusive and failover
    subscriptions. What was compacted away counts as acknowledged once the subscription has passed it.

    The command ends at the last visible message, unless -f or --timeout waits for more. Where an open transaction
    hides more, standard error says how much and which transaction.

    --exec runs CMD once a message and acknowledges the message when CMD exits 0. The environment of CMD has
    TXNCTL_MESSAGE_ID, _TOPIC, _KEY (or _KEY_BASE64), _PROPERTIES (JSON), _EVENT_TIME_MS, _DELIVERY_TIME_MS,
    _PUBLISH_TIME_MS, _PRODUCER, _SEQUENCE_ID and _REDELIVERY_COUNT; TXNCTL_MESSAGE_NULL=1 for a tombstone;
    TXNCTL_STORE, and with --txn TXNCTL_TXN. A key or properties above 100,000 bytes fit no variable: that is a failure
    with exit code 126, and CMD does not run.
    When CMD fails the message is given back and this ends with CMD's exit code; with --on-error retry the command goes
    on, and the message is delivered again after --retry-delay, to any consumer, or goes to the dead-letter topic.

    SIGTERM ends -f in order, with exit code 0: what is in hand is written, or CMD finishes, and is acknowledged.
    CMD, in a process group of its own, does not get the signal. --exec without -f does the same, and exits with 143.
    A second SIGTERM ends CMD and all that CMD started (SIGKILL after 2 s), and the message is given back. SIGHUP
    counts as a first SIGTERM at a terminal, and is ignored without one. Ctrl-C ends both at once, with 130; in the
    foreground of a terminal CMD is in the group of txnctl: Ctrl-C and Ctrl-Z reach CMD, and CMD can read the terminal.
    """
    from txnctl.commands.consume.stop_condition import Patience

    patience = Patience(topic, options.limit, options.follow, options.timeout)
    _check(context, options, patience)
    if options.follow or options.run is not None:
        _consume_until_told(context, topic, patience, options)
    else:
        _consume(context, topic, patience, options)
    if not patience.came and context.output == "table" and options.run is None:
        context.note(f"no message came from {topic}")


def _consume_until_told(context: Context, topic: str, patience: Patience, options: ConsumeOptions) -> None:
    """Consume; the first signal lets what is in hand be done, which is the end of --follow.

    Raises:
        Terminated: the signal came before the end of what was asked for.
    """
    from txnctl.commands.consume.stop_signals import StopSignals

    with StopSignals(patience.stop, quiet=context.quiet) as signals:
        _consume(context, topic, patience, options)
    if signals.first is not None and not options.follow:
        raise signals.first


def _consume(context: Context, topic: str, patience: Patience, options: ConsumeOptions) -> None:
    from txnctl.commands.consume.output import Lines

    lines = Lines(context, delivered=options.subscription is not None)
    if options.subscription is None:
        from txnctl.commands.consume.reader import read

        read(context, topic, lines, patience, options)
    else:
        from txnctl.commands.consume.subscription import take

        take(context, topic, lines, patience, options)


def _check(context: Context, options: ConsumeOptions, patience: Patience) -> None:
    """Refuse options that contradict, and messages for nobody.

    Raises:
        InvalidValue, OutputFailed
    """
    if context.output == "json" and patience.is_endless:
        raise InvalidValue(
            "-o json is one document, and --follow has no end", hint="Use -o ndjson, or give -n."
        )
    if options.subscription is None:
        _check_reading(options)
        return
    for name, value in (("--to", options.end), ("--tail", options.tail)):
        if value is not None:
            raise InvalidValue(f"{name} is for reading without -s", hint="-n ends after so many messages.")
    if options.run is None:
        for parameter in ("on_error", "retry_delay"):
            if getattr(options, parameter) is not None:
                raise InvalidValue(f"{_OF_SUBSCRIPTIONS[parameter]} is for --exec")
        if options.ack != "none":
            context.out.require_open("messages would be acknowledged that nobody has seen")
    elif options.ack is not None:
        raise InvalidValue("--ack and --exec exclude each other: CMD's exit code decides")


def _check_reading(options: ConsumeOptions) -> None:
    """Refuse what only a subscription has, and two beginnings.

    Raises:
        InvalidValue
    """
    for parameter, name in _OF_SUBSCRIPTIONS.items():
        if getattr(options, parameter) is not None:
            raise InvalidValue(f"{name} is for subscriptions", hint="Name one with -s.")
    if options.tail is not None and (options.start is not None or options.read_compacted):
        other = "--from" if options.start is not None else "--read-compacted"
        raise InvalidValue(f"--tail and {other} exclude each other: both say where to begin")
