"""`txnctl topics create`: an empty topic."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, changes_store, example, option, output
from txnctl.cli.value_types import DURATION_MS, SIZE, TOPIC
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.topic import NAMES
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


class CreatedTopic(NamedTuple):
    """The names of a new topic."""

    topic: str
    name: str


@argument("topic", type=TOPIC, help="The topic: a short name, or persistent://tenant/namespace/topic.")
@option(
    "--ledger-entries",
    type=WholeNumber(1),
    metavar="N",
    help="Close a ledger when it has so many entries. [default: 50000]",
)
@option(
    "--ledger-bytes",
    type=SIZE,
    metavar="SIZE",
    help="Close a ledger when it has so many bytes. [default: 256M]",
)
@option(
    "--ledger-age",
    type=DURATION_MS,
    metavar="DURATION",
    help="Close a ledger when it was opened so long ago. [default: 1d]",
)
@changes_store()
@output(fields_of(CreatedTopic, NAMES), name_field="name")
@example("txnctl topics create orders")
@example("txnctl topics create persistent://bank/core/payments --ledger-bytes 64M --ledger-age 1h")
def create(
    context: Context,
    topic: str,
    ledger_entries: int | None,
    ledger_bytes: int | None,
    ledger_age: int | None,
) -> None:
    """Create an empty topic.

    A name is made of letters, digits and -_.=: and `orders` is short for persistent://public/default/orders. A topic
    is a sequence of ledgers: at the first of the three limits a ledger is closed for good, and the next one opened.
    """
    from storage.values.names import full_topic_name, short_topic_name

    context.store.create_topic(
        topic,
        ledger_entries_max=ledger_entries,
        ledger_bytes_max=ledger_bytes,
        ledger_age_max_ms=ledger_age,
    )
    full = full_topic_name(topic)
    context.show(CreatedTopic(full, short_topic_name(full)), table=lambda row: f"Created topic {row.name}.")
