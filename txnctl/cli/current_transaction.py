"""The transaction of a command line without an id: the one in TXNCTL_TXN.

An empty variable is refused, as an empty --txn is: `export TXNCTL_TXN=$(txnctl transactions begin)` leaves one behind
where the begin fails, and what follows was meant for a transaction.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.values.txn_id import TxnID


def of_environment() -> TxnID | None:
    """The transaction in TXNCTL_TXN; None if the variable is not set.

    Raises:
        InvalidTxnId: the value of the variable is none.
    """
    from os import environ

    from storage.errors import InvalidTxnId
    from storage.values.txn_id import TxnID

    text = environ.get("TXNCTL_TXN")
    if text is None:
        return None
    try:
        return TxnID.parse(text)
    except InvalidTxnId as error:
        error.message = f"TXNCTL_TXN: {error.message}"
        error.args = (error.message,)
        raise


def named_or_current(named: TxnID | None) -> TxnID:
    """The transaction on the command line, else TXNCTL_TXN.

    Raises:
        InvalidValue, InvalidTxnId: neither names one.
    """
    txn = named if named is not None else of_environment()
    if txn is None:
        from storage.errors import InvalidValue
        from txnctl.output.shell import line

        raise InvalidValue(
            "no transaction is named, and TXNCTL_TXN is not set",
            hint=f"`{line('transactions list')}` shows the unfinished ones.",
        )
    return txn
