"""What to do next, told where Spark shows an error of ours: in the traceback that it makes of every one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import TxnctlError


@contextmanager
def explained() -> Iterator[None]:
    """Add the hint of an error to what is printed with it."""
    try:
        yield
    except TxnctlError as error:
        if error.hint and error.hint not in getattr(error, "__notes__", ()):
            error.add_note(error.hint)
        raise
