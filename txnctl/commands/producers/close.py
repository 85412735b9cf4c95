"""`txnctl producers close`: end a session before the lease runs out."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, changes_store, example, output
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
@changes_store()
@administrative
@output(CLOSED, name_field="producerName")
@example(
    "txnctl producers close $(txnctl producers open orders) --reason 'the import is done'",
    setup="txnctl topics create orders",
)
def close(context: Context, session: str | None) -> None:
    """Close a session: the topic is free for the next.

    The token is invalid from now on. A session that was closed, or lost the topic, is not found (exit code 3).
    """
    from txnctl.cli.current_session import named_or_current

    row = context.store.admin.producers.close_session(
        named_or_current(session), dry_run=context.dry_run, reason=context.reason
    )
    context.show(row, table=lambda shown: _closed(context, shown))


def _closed(context: Context, row: SessionClosed) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    verb, session = "Would close" if row.dry_run else "Closed", row.row
    epoch = "" if session.epoch is None else f", epoch {session.epoch}"
    yield f"{verb} the session of {session.producer_name} on {session.name} ({session.access_mode}{epoch})."
    if row.next is not None:
        yield f"Next is {row.next}."
