"""`txnctl status`: the whole store on one screen."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli import exit_codes
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, option, output, reads_store
from txnctl.cli.value_types import DURATION
from txnctl.fields.overview import OVERVIEW
from txnctl.output.shell import spell
from txnctl.output.stream import drop_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

_REDRAW = "\x1b[H\x1b[2J"
_EVERY = "2s"
_EVERY_MIN_S = 0.1

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing",
    "txnctl transactions begin",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)


@command
@option(
    "--watch",
    type=DURATION,
    is_flag=False,
    flag_value=_EVERY,
    metavar="[EVERY]",
    help="Draw it anew on a terminal, every 2s or as said, until Ctrl-C.",
)
@reads_store
@output(OVERVIEW, name_field="verdict")
@example("txnctl status", setup=_SETUP)
@example("txnctl status -o json", setup=_SETUP)
def status(context: Context, watch: float | None) -> None:
    """Show the health of the store on one screen.

    Problems come first; `txnctl doctor` has the reason for each, and the next command. Then space, writer and readers,
    transactions, topics with BLOCKED and UNCOMMITTED messages, LAG (the most visible messages of a subscription),
    producers that WAIT, and tables. No blocked message is read, and no view is held between two screens.
    """
    _show(context)
    if watch is None:
        return
    if not _redraws(context):
        context.note("--watch draws anew on a terminal only, as a table")
        return
    try:
        while True:
            context.store.connection.clock.sleep(max(watch, _EVERY_MIN_S))
            context.store.connection.look_in_place()
            context.out.write(_REDRAW)
            _show(context)
    except KeyboardInterrupt:
        drop_output()
        context.exit(exit_codes.INTERRUPTED)


def _redraws(context: Context) -> bool:
    from os import environ

    return context.output == "table" and context.out.terminal and environ.get("TERM") != "dumb"


def _show(context: Context) -> None:
    from txnctl.commands.health.status_screen import lines

    context.show(
        to_json(context.store.reports.store_overview(), spell), table=lambda shown: lines(context, shown)
    )
    context.out.flush()
