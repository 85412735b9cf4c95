"""`txnctl topics create`: an empty topic."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, changes_store, example, option, output
from txnctl.cli.value_types import DURATION_MS, SIZE, TOPIC
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.if_not_exists import CREATED_NOW, check_same, create_unless_there, if_not_exists
from txnctl.fields.topic import NAMES
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


class CreatedTopic(NamedTuple):
    """The names of the topic."""

    topic: str
    name: str
    created: bool


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
@if_not_exists
@changes_store()
@output(fields_of(CreatedTopic, {**NAMES, **CREATED_NOW}), name_field="name")
@example("txnctl topics create orders")
@example("txnctl topics create persistent://bank/core/payments --ledger-bytes 64M --ledger-age 1h")
@example("txnctl topics create orders --if-not-exists", setup="txnctl topics create orders")
def create(
    context: Context,
    topic: str,
    ledger_entries: int | None,
    ledger_bytes: int | None,
    ledger_age: int | None,
    may_exist: bool,
) -> None:
    """Create an empty topic.

    A name is made of letters, digits and -_.=: and `orders` is short for persistent://public/default/orders. A topic
    is a sequence of ledgers: at the first of the three limits a ledger is closed for good, and the next one opened.
    """
    from storage.values.names import full_topic_name, short_topic_name

    created = create_unless_there(
        may_exist,
        lambda: context.store.create_topic(
            topic,
            ledger_entries_max=ledger_entries,
            ledger_bytes_max=ledger_bytes,
            ledger_age_max_ms=ledger_age,
        ),
    )
    full = full_topic_name(topic)
    if not created:
        existing = context.store.reports.topic_stats(topic)
        check_same(
            f"topic {existing.name}",
            ("--ledger-entries", ledger_entries, existing.ledger_entries_max),
            ("--ledger-bytes", ledger_bytes, existing.ledger_bytes_max),
            ("--ledger-age", ledger_age, existing.ledger_age_max_ms),
        )
    context.show(CreatedTopic(full, short_topic_name(full), created), table=_created)


def _created(row: CreatedTopic) -> str:
    return f"Created topic {row.name}." if row.created else f"Topic {row.name} exists already."
