"""`txnctl topics list`: every topic with counts of messages and transactions."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.fields.topic import COUNTS, NAMES
from txnctl.output.field import fields_of
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


LISTED = fields_of("storage.reports.stats:TopicRow", {**NAMES, **COUNTS})


@reads_store
@output(LISTED, name_field="name")
@example("txnctl topics list", setup="txnctl topics create orders")
@example("txnctl topics list -o name")
def list_(context: Context) -> None:
    """List the topics."""
    rows = context.store.reports.list_topics()
    if not rows and context.output == "table":
        context.note(f"there are no topics yet; `{line('topics create', 'TOPIC')}` makes one")
    context.show_list(rows)
