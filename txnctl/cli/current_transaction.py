"""The transaction of a command line without an id: the one in TXNCTL_TXN."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.values.txn_id import TxnID


def named_or_current(named: TxnID | None) -> TxnID:
    """The transaction on the command line, else TXNCTL_TXN.

    Raises:
        InvalidValue, InvalidTxnId: neither names one.
    """
    if named is not None:
        return named
    from os import environ

    from storage.errors import InvalidTxnId, InvalidValue
    from storage.values.txn_id import TxnID

    text = environ.get("TXNCTL_TXN")
    if not text:
        from txnctl.output.shell import line

        raise InvalidValue(
            "no transaction is named, and TXNCTL_TXN is not set",
            hint=f"`{line('transactions list')}` shows the unfinished ones.",
        )
    try:
        return TxnID.parse(text)
    except InvalidTxnId as error:
        error.message = f"TXNCTL_TXN: {error.message}"
        raise
