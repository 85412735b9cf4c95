"""Hints of errors in Spark's traceback: the only text of an error that Spark shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import TxnctlError
from txnctl.output.shell import hint_of


@contextmanager
def hints_as_notes() -> Iterator[None]:
    """Add the hint of an error to its traceback, as a note."""
    try:
        yield
    except TxnctlError as error:
        hint = hint_of(error)
        if hint and hint not in getattr(error, "__notes__", ()):
            error.add_note(hint)
        raise
