"""`txnctl produce`: append messages to a topic, from the command line, a file or a pipe."""

from __future__ import annotations

import click

from storage.errors import InvalidValue, NestedTransaction
from txnctl.cli.declaration import command
from txnctl.cli.decorators import (
    argument,
    changes_store,
    example,
    option,
    option_values,
    output,
    partial_rows,
)
from txnctl.cli.time_values import FUTURE_TIME, TIME
from txnctl.cli.value_types import ACCESS_MODE, DURATION, KEY_VALUE, SESSION, TOPIC, TXN_ID, NamedConstant
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.produce.options import ProduceOptions
from txnctl.commands.produce.result import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context
    from txnctl.commands.produce.sending import Batch, Sending
    from txnctl.input.source import Source

FORMATS = ("lines", "ndjson", "csv", "raw")


@command
@option_values("options", ProduceOptions)
@argument("topic", type=TOPIC, help="The topic.")
@argument(
    "file", required=False, type=click.Path(), help="Messages to send; `-` or nothing is standard input."
)
@option(
    "-m",
    "--message",
    "texts",
    multiple=True,
    metavar="TEXT",
    help="A message; may be repeated. No input is read.",
)
@option("--null", "tombstone", is_flag=True, help="A message without a value: a tombstone. No input is read.")
@option(
    "--input",
    "format_",
    type=NamedConstant("format", FORMATS),
    help="What the input is. [default: lines]",
)
@option("-k", "--key", metavar="KEY", help="The key of each message that brings none.")
@option(
    "-p",
    "--property",
    "properties",
    multiple=True,
    type=KEY_VALUE,
    help="A property of each message; may be repeated.",
)
@option("--event-time", type=TIME, help="The event time of each message that brings none.")
@option(
    "--deliver-after",
    type=DURATION,
    help="Shared and Key_Shared subscriptions deliver each message so long after it is sent, not before.",
)
@option(
    "--deliver-at",
    type=FUTURE_TIME,
    help="The same as a time, for each message that brings none. [default: at once]",
)
@option(
    "--producer", "producer_name", metavar="NAME", help="The producer's name, under which sequence ids count."
)
@option(
    "--sequence-id",
    type=WholeNumber(0),
    metavar="N",
    help="The sequence id of the first line, the next lines' follow; what is stored already is left out.",
)
@option("--access-mode", type=ACCESS_MODE, help="How it wants the topic. [default: Shared]")
@option(
    "--timeout",
    type=DURATION,
    help="With WaitForExclusive: give up after this long, exit 7 [default: never]. With --atomic: the input ends so "
    "long after its first message, or nothing is stored; 24h at most [default: 10m].",
)
@option(
    "--epoch",
    type=WholeNumber(0),
    metavar="N",
    help="In an exclusive mode: only if the topic still has this epoch, so nobody took over since.",
)
@option(
    "--session",
    type=SESSION,
    help="Publish through this session of `producers open`. [env: TXNCTL_SESSION, on its own topic]",
)
@option(
    "--session-file",
    type=click.Path(),
    metavar="FILE",
    help="The same, with the token in a file; `-` is standard input. Arguments are shown by `ps`, a file is not.",
)
@option("--txn", type=TXN_ID, envvar="TXNCTL_TXN", help="The open transaction to send in. [env: TXNCTL_TXN]")
@option("--atomic", is_flag=True, help="Make the whole input one transaction.")
@option(
    "--batch",
    type=WholeNumber(1),
    metavar="N",
    help="Messages in one commit at the most. [default: 8 MiB]",
)
@option("--create", is_flag=True, help="Create the topic if it is missing.")
@option(
    "--on-error",
    type=NamedConstant("on error", ("stop", "skip")),
    help="What to do at a line that cannot be sent: stop there, or leave it out and say so. [default: stop]",
)
@option(
    "--print-ids", is_flag=True, help="Print the id of each message when it is stored; -o name does it too."
)
@changes_store()
@partial_rows
@output(FIELDS, name_field="lastMessageId")
@example("txnctl produce orders -m hello -k customer-7 -p source=web", setup="txnctl topics create orders")
@example("seq 10000 | txnctl produce numbers --create")
@example(
    """echo '{"value":"-100","key":"B1"}' | txnctl produce orders --input ndjson --atomic""",
    setup="txnctl topics create orders",
)
@example(
    "seq 3 | txnctl produce orders --access-mode WaitForExclusive --timeout 1m",
    setup="txnctl topics create orders",
)
def produce(context: Context, topic: str, options: ProduceOptions) -> None:
    r"""Append messages to a topic.

    Each -m is a message. Without one the messages are read from FILE or standard input, and each commit is durable
    before the next begins. From a pipe, messages are stored at every pause of the input, and at the latest after a
    second.

    \b
    lines   A line is a message, without LF or CRLF; an empty one is an
            empty message. The last line needs no line end. Every other
            byte is content: NUL, further CRs, and what is not UTF-8.
    ndjson  An object a line, as `consume -o ndjson` prints it: value or
            valueBase64; key or keyBase64, properties, eventTimeMs and
            deliveryTimeMs, or eventTime and deliveryTime, may be there too.
            A null value is a tombstone. Further names are ignored.
    csv     RFC 4180 under a header that names the columns: value, and where
            wanted key, eventTime, deliveryTime, and properties.NAME. A
            field in quotes may hold commas, line ends and doubled quotes; a
            CR that ends no line is content. CSV has no null: an empty key,
            time or property is none, an empty value is an empty message.
            So is an empty line, where value is the only column.
    raw     The whole input is one message.

    In eventTime and deliveryTime a number like 20240501 or 1714557600 is refused, mostly meant as a date or in seconds;
    eventTimeMs and deliveryTimeMs take any number of milliseconds.

    --on-error stop stores the lines before the bad line, ends with exit code 2 and names the bad line and the last
    line stored; with --atomic nothing is stored. With --producer and --sequence-id the same input may be sent again
    after any failure: each line is stored once.

    While the transaction of --atomic is open, readers at READ_COMMITTED wait behind the transaction: hence a
    --timeout, after which the transaction is aborted and the command ends with exit code 4.

    Ctrl-C leaves whole commits behind; with --atomic, nothing.

    Shared producers publish side by side. An Exclusive producer has the topic alone as long as the command runs, and
    is refused while any producer is connected; WaitForExclusive waits in the queue; ExclusiveWithFencing evicts every
    producer, waiting ones too. A producer that loses the topic fails at the next commit, with exit code 4 and the last
    line stored.
    """
    options.session = _session(options)
    _check(options)
    if options.reads_input:
        # The source comes first: a note before the wait for a terminal, and no new topic for a missing file.
        source = _source(context, options.file)
    from txnctl.commands.produce import connection
    from txnctl.commands.produce.sending import Sending
    from txnctl.commands.producers.waiting import Leaving

    producer = connection.connect(context, topic, options)
    with Leaving(context, producer):
        sending = Sending(context, producer, options)
        if options.reads_input:
            sending.send_all(lambda: _send_input(context, sending, source, options.format_ or "lines"))
        else:
            sending.send_all(lambda: _send_given(sending, options.texts))
    if options.create and not sending.has_sent:
        _create(context, topic)
    _conclude(context, sending)


def _session(options: ProduceOptions) -> str | None:
    """The token of --session or --session-file.

    Raises:
        InvalidValue: both are given, the file holds no token, or standard input holds the messages.
    """
    from txnctl.cli.current_session import named_or_in_file

    if options.session_file == "-" and options.reads_input and options.file in (None, "-"):
        raise InvalidValue(
            "--session-file - and the messages are both on standard input",
            hint="Give the messages by -m or as a file, or the token in TXNCTL_SESSION.",
        )
    return named_or_in_file(options.session, options.session_file)


def _check(options: ProduceOptions) -> None:
    """Refuse options that contradict.

    Raises:
        InvalidValue, NestedTransaction
    """
    from txnctl.commands.produce import connection

    connection.check(options)
    if options.deliver_after is not None and options.deliver_at is not None:
        raise InvalidValue("--deliver-after is a delay and --deliver-at a time: a message has one of them")
    if options.tombstone and options.texts:
        raise InvalidValue("--null is one message without a value; -m gives one")
    if not options.reads_input:
        for name, value in (
            ("FILE", options.file), ("--input", options.format_), ("--on-error", options.on_error),
            ("--batch", options.batch),
        ):  # fmt: skip
            if value is not None:
                raise InvalidValue(f"{name} is for messages that are read; with -m or --null nothing is read")
    if options.sequence_id is not None and options.producer_name is None and options.session is None:
        raise InvalidValue(
            "--sequence-id needs --producer: sequence ids count under a producer's name",
            hint="Give the same --producer NAME each time.",
        )
    if options.atomic and options.txn is not None:
        raise NestedTransaction(
            f"--atomic begins a transaction, and this is inside {options.txn} already; transactions do not nest",
            hint="Leave out --atomic: what is sent becomes visible when that transaction commits, or never.",
            transaction=str(options.txn),
        )


def _source(context: Context, file: str | None) -> Source:
    from txnctl.input.source import Source

    source = Source.open(file)
    if source.is_terminal:
        context.note("reading messages from the terminal; end with Ctrl-D")
    return source


def _send_given(sending: Sending, texts: Sequence[str]) -> None:
    from txnctl.commands.produce.sending import Batch
    from txnctl.input.argument_bytes import argument_bytes

    values: list[bytes | None] = [argument_bytes(text, "--message") for text in texts] or [None]
    sending.take(Batch(values, range(1, len(values) + 1), unit="message"))


def _send_input(context: Context, sending: Sending, source: Source, format_: str) -> None:
    from txnctl.commands.produce import input as produce_input

    total = source.size
    unit = "messages" if total is None else "bytes"
    source.limit_s = sending.left_s
    with context.progress("Produce", total=total, unit=unit) as bar:

        def take(batch: Batch) -> None:
            sending.take(batch)
            if not source.is_terminal:
                bar.advance(len(batch.values) if total is None else source.passed())

        produce_input.READERS[format_](source, take, skips=sending.skips)


def _create(context: Context, topic: str) -> None:
    """Create the topic that no message has created: there was none."""
    from contextlib import suppress

    from storage.errors import AlreadyExists

    with suppress(AlreadyExists):
        context.store.create_topic(topic)


def _conclude(context: Context, sending: Sending) -> None:
    if context.output in ("json", "ndjson"):
        context.show(sending.result())
    else:
        context.note(sending.summary())
