"""`txnctl report`: a store as one page of HTML, to be attached to an incident."""

from __future__ import annotations

import click

from txnctl import __version__
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, option, reads_store
from txnctl.cli.value_types import TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing",
    "txnctl transactions begin --label job=loader",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)


@command
@option(
    "--html",
    "path",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Where the page goes: a file, which is replaced if it is there, or - for standard output.",
)
@option(
    "--topic",
    "topics",
    multiple=True,
    type=TOPIC,
    help="Only this topic, its transactions, subscriptions and producers; may be given again.",
)
@reads_store
@example("txnctl report --html incident.html", setup=_SETUP)
@example("txnctl report --html - --topic orders > orders.html", setup=_SETUP)
def report(context: Context, path: str, topics: tuple[str, ...]) -> None:
    """Write one page about the store, to look at or to attach to an incident.

    Problems come first, the findings of `txnctl doctor`, with the next command. Then each topic is drawn to scale:
    ledgers, readable and blocked messages, open transactions from the first message on, maxReadPosition, cursors. Then
    come subscriptions, open transactions with evidence and advice, producers, tables, space, and recent events.

    The page is one file without scripts that loads nothing, and is of one moment. The page has no messages, values or
    keys of the store. Names are: of topics, hosts, users and programs, labels and reasons, and the path of the store.
    So the file is readable by you alone (mode 0600). The file is written whole or not at all; nothing else is.
    """
    from txnctl.report.page import page

    text = page(context.store.reports.store_report(topics or None), __version__, topics)
    if path == "-":
        context.out.write(text)
        return
    from txnctl.output.human import size
    from txnctl.output.replaced_file import replace_file

    replace_file(path, text.encode(), store=context.store_path)
    context.note(f"wrote {path}, {size(len(text.encode()))}")
