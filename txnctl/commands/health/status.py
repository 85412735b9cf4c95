"""`txnctl status`: the whole store on one screen."""

from __future__ import annotations

from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, output, reads_store
from txnctl.cli.watch import draw_until_interrupted, is_watched, watches
from txnctl.fields.overview import OVERVIEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.cli.watch import Screenful

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing",
    "txnctl transactions begin",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)


@command
@watches
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
    if is_watched(context, watch):
        draw_until_interrupted(context, watch or 0, lambda: _screenful(context))
    from txnctl.commands.health.status_screen import lines

    context.show(context.store.reports.store_overview(), table=lambda shown: lines(context, shown))


def _screenful(context: Context) -> Screenful:
    from txnctl.cli.watch import Screenful
    from txnctl.commands.health.status_screen import lines, overview_headline, problem_lines, rest
    from txnctl.output.escape import printable_row

    overview = printable_row(context.store.reports.store_overview())
    return Screenful(
        list(problem_lines(context, overview.findings)), lines(context, overview),
        overview_headline(context, overview), rest(context, overview.facts),
    )  # fmt: skip
