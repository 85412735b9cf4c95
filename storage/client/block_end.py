"""The end of a `with` block around a consumer or producer: the error of the block comes before one of closing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from storage.errors import TxnctlError


def close_after(block_error: type[BaseException] | None, close: Callable[[], None]) -> None:
    """Close; after an error of the block, an error of closing is not raised.

    A commit of unknown outcome, for instance, leaves a handle that cannot write any more. What stays open is ended by
    the next writer when the process has closed the store.

    Args:
        block_error: the kind of the exception that ended the block; None for none.
    """
    hidden = () if block_error is None else (TxnctlError,)
    with suppress(*hidden):
        close()
