"""`txnctl report`: a store as one page of HTML, to be attached to an incident."""

from __future__ import annotations

import click

from storage.errors import InvalidValue
from txnctl import __version__
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, option, output, reads_store, typed_format
from txnctl.cli.value_types import TOPIC
from txnctl.fields.overview import REPORT

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
@typed_format("--output")
@output(REPORT, name_field="verdict", formats=("html", "json"), default="html")
@example("txnctl report --html incident.html", setup=_SETUP)
@example("txnctl report --html - --topic orders > orders.html", setup=_SETUP)
@example("txnctl report -o json", setup=_SETUP)
def report(context: Context, path: str | None, topics: tuple[str, ...]) -> None:
    """Write one page about the store, to look at or to attach to an incident.

    Each cause comes first: the findings of `txnctl doctor` with the next command, the topic on which most waits drawn
    to scale, the other topics that it holds up, and the evidence about its transactions. Topics, subscriptions, other
    open transactions, producers, tables, conflicts, space and recent changes are folded below.

    The page is one file without scripts that loads nothing, and is of one moment; it has at most 2 MiB, and names the
    command for what is left out. The page has no messages, values or keys of the store. Names are: of topics, hosts,
    users and programs, labels and reasons, and the path of the store. So the file is readable by you alone (mode 0600).
    The file is written whole or not at all; nothing else is. -o json prints the data of the page instead.
    """
    from txnctl.report.page import page

    as_json = context.output == "json"
    if (path is None) != as_json:
        reason = (
            "report: -o json and --html exclude each other" if as_json else "report: --html FILE is missing"
        )
        raise InvalidValue(
            reason, hint="Name a file for the page (--html FILE), or print the data (-o json)."
        )
    data = context.store.reports.store_report(topics or None)
    if path is None:
        context.show(data)
        return
    text = page(data, __version__, topics)
    if path == "-":
        context.out.write(text)
        return
    from txnctl.output.human import size
    from txnctl.output.replaced_file import replace_file

    replace_file(path, text.encode(), store=context.store_directory)
    context.note(f"wrote {path}, {size(len(text.encode()))}")
