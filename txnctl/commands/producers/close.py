"""`txnctl producers close`: end a session before the lease runs out."""

from __future__ import annotations

import click

from txnctl.cli.decorators import administrative, argument, changes_store, example, option, output
from txnctl.cli.value_types import SESSION as TOKEN
from txnctl.fields.change import DRY_RUN
from txnctl.fields.producer import ROW
from txnctl.output.field import fields_of
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.producers import SessionClosed
    from txnctl.cli.context import Context

CLOSED = fields_of(
    "storage.admin.producers:SessionClosed",
    {**ROW, "next": "The producer whose turn it is now; null if none waits.", **DRY_RUN},
)


@argument("session", type=TOKEN, required=False, help="The token. [env: TXNCTL_SESSION]")
@option(
    "--session-file",
    type=click.Path(),
    metavar="FILE",
    help="A file with the token; `-` is standard input. Arguments are shown by `ps`, a file is not.",
)
@changes_store()
@administrative
@output(CLOSED, name_field="producerName")
@example(
    "txnctl producers open orders > session",
    "txnctl producers close --session-file session --reason 'the import is done'",
    setup="txnctl topics create orders",
)
def close(context: Context, session: str | None, session_file: str | None) -> None:
    """Close a session: the topic is free for the next.

    The token is invalid from now on. A session that was closed, or lost the topic, is not found (exit code 3).
    """
    from txnctl.cli.current_session import named_or_current, named_or_in_file

    token = named_or_current(named_or_in_file(session, session_file))
    row = context.store.admin.producers.close_session(token, dry_run=context.dry_run, reason=context.reason)
    context.show(row, table=lambda shown: _closed(context, shown))


def _closed(context: Context, row: SessionClosed) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    verb, session = "Would close" if row.dry_run else "Closed", row.row
    epoch = "" if session.epoch is None else f", epoch {session.epoch}"
    yield f"{verb} the session of {session.producer_name} on {session.name} ({session.access_mode}{epoch})."
    if row.next is not None:
        yield f"Next is {row.next}."
