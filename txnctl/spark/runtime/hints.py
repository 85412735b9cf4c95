"""Hints and details of errors in Spark's traceback: the only text of an error that Spark shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import TxnctlError
from txnctl.output.shell import hint_of


@contextmanager
def hints_as_notes() -> Iterator[None]:
    """Add the hint of an error to its traceback, as a note, and its details as JSON."""
    try:
        yield
    except TxnctlError as error:
        notes = [
            hint_of(error),
            f"details: {json.dumps(error.details, default=str)}" if error.details else None,
        ]
        for note in filter(None, notes):
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
        raise
