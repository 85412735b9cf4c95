"""`txnctl transactions begin`: a transaction for a sequence of shell commands."""

from __future__ import annotations

from txnctl.cli.decorators import changes_store, example, option, option_values, output
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import CHECK_MODE, DURATION, KEY_VALUE, PRIORITY, TRANSACTION_ISOLATION
from txnctl.fields.transaction import FIELDS
from txnctl.input.names_once import named_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypedDict, TypeVar

    from storage import CheckMode, Priority, TransactionIsolation
    from txnctl.cli.context import Context

    F = TypeVar("F", bound=Callable[..., object])

    class KindGiven(TypedDict, total=False):
        """Arguments of the engine about the kind of a transaction."""

        isolation: TransactionIsolation
        check: CheckMode
        priority: Priority


with_timeout = option(
    "--timeout",
    type=DURATION,
    help="Until its deadline, after which it can only be aborted; 24h at most. [default: 10m]",
)
with_labels = option(
    "--label",
    type=KEY_VALUE,
    metavar="K=V",
    multiple=True,
    help="A word about what it is for; shown with it. May be given several times.",
)


with_priority = option(
    "--priority",
    type=PRIORITY,
    help="Who goes on where two transactions want one key of a table. [default: medium]",
)


class TransactionKind(OptionValues):
    """The kind of transaction to begin. Defaults of the engine apply to options left out."""

    isolation: TransactionIsolation | None
    check: CheckMode | None
    priority: Priority | None

    def given(self) -> KindGiven:
        """The given options, as arguments of `Store.begin_transaction` and `Store.transaction`."""
        options: KindGiven = {}
        if self.isolation is not None:
            options["isolation"] = self.isolation
        if self.check is not None:
            options["check"] = self.check
        if self.priority is not None:
            options["priority"] = self.priority
        return options


def with_kind(function: F) -> F:
    """Take --isolation, --check and --priority as `kind`."""
    for declare in (
        with_priority,
        option(
            "--check",
            type=CHECK_MODE,
            help="With read-committed: what a read does on a write intent. [default: minimal]",
        ),
        option(
            "--isolation",
            type=TRANSACTION_ISOLATION,
            help="A read-committed one only reads tables, and disturbs nobody. [default: SERIALIZABLE]",
        ),
    ):
        function = declare(function)
    return option_values("kind", TransactionKind)(function)


@with_timeout
@with_labels
@with_kind
@changes_store()
@output(FIELDS, name_field="txnId")
@example(
    "export TXNCTL_TXN=$(txnctl transactions begin --timeout 15m --label job=settlement)",
    "txnctl produce payments -m 'B1 -100'",
    "txnctl transactions commit",
    setup="txnctl topics create payments",
)
@example("txnctl transactions begin --priority high -o json")
@example("txnctl transactions begin --isolation READ_COMMITTED --check full")
def begin(
    context: Context, timeout: float | None, label: Sequence[tuple[str, str]], kind: TransactionKind
) -> None:
    """Begin a transaction and print the id, alone.

    The transaction belongs to no process and ends at the deadline at the latest. Every process with the id can use,
    commit or abort the transaction, with --txn or TXNCTL_TXN. For a single script `transactions run` is safer: the
    transaction ends with the script.

    A serializable transaction reads tables as of the begin, and writes tables. Of two transactions that want the same
    key, the higher priority goes on and the lower is aborted; with equal priorities the older transaction is aborted.
    A read-committed transaction reads committed rows at each moment and changes nothing: no message, no
    acknowledgement, no key.
    """
    context.out.require_open("the transaction would have an id that nobody knows")
    txn = context.store.begin_transaction(
        timeout=timeout, labels=named_once(label, "--label: "), **kind.given()
    )
    shown = context.store.reports.show_transaction(txn)
    context.show(shown, table=lambda details: str(details.row.txn_id))
