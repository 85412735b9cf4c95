"""The tries of the `transactions run --retries` around a command: told to the command in TXNCTL_RETRIES.

Advice to run everything again under `--retries` would name what is running already.
"""

from __future__ import annotations

from os import environ

from storage.errors import TxnctlError

RETRIES = "TXNCTL_RETRIES"
_TXN = "TXNCTL_TXN"
LAST_TRY = "This was the last try of `transactions run`: give it more --retries, or a higher --priority."


def environment(before: dict[str, str], txn: str, left: int | None) -> dict[str, str]:
    """The environment of a command in a transaction.

    Args:
        left: further tries after this one; None without `--retries`.
    """
    variables = {**before, _TXN: txn}
    variables.pop(RETRIES, None)
    return variables if left is None else {**variables, RETRIES: str(left)}


def hint_within(error: TxnctlError) -> str | None:
    """The hint of a lost conflict in a transaction that is tried again; None for any other error."""
    left = environ.get(RETRIES, "")
    if not (error.retryable and left.isdecimal()) or error.details.get("transaction") != environ.get(_TXN):
        return None
    if left == "0":
        return LAST_TRY
    return (
        f"`transactions run` runs all of it again, with {left} further {'try' if left == '1' else 'tries'}."
    )
