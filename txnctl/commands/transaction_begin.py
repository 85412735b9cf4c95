"""`txnctl transactions begin`: a transaction for one shell command after the other."""

from __future__ import annotations

from txnctl.commands.transaction_fields import FIELDS
from txnctl.options import changes_store, example, option, output
from txnctl.params import DURATION, KEY_VALUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.context import Context

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


@with_timeout
@with_labels
@changes_store()
@output(FIELDS, name_field="txnId")
@example(
    "export TXNCTL_TXN=$(txnctl transactions begin --timeout 15m --label job=settlement)",
    "txnctl produce payments -m 'B1 -100'",
    "txnctl transactions commit",
    setup="txnctl topics create payments",
)
@example("txnctl transactions begin -o json")
def begin(context: Context, timeout: float | None, label: Sequence[tuple[str, str]]) -> None:
    """Begin a transaction and print its id, alone.

    It belongs to no process: its deadline alone rules. Whoever knows its id can use it, with --txn or TXNCTL_TXN,
    and commit or abort it. `transactions run` is safer for what one script does: there nobody can forget it.
    """

    txn = context.store.begin(timeout=timeout, labels=labels_of(label))
    context.show(context.store.show_transaction(txn), table=lambda row: str(row["txnId"]))


def labels_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The labels, each name once.

    Raises:
        InvalidValue: a name was given twice.
    """
    labels: dict[str, str] = {}
    for name, value in pairs:
        if name in labels:
            from storage.errors import InvalidValue

            raise InvalidValue(f"--label: {name} is given twice", label=name)
        labels[name] = value
    return labels
