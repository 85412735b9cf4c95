"""Reports from the audit trail."""

from __future__ import annotations

from itertools import islice
from typing import Any

from storage import audit_trail
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import NotFound


def rows(connection: Connection, limit: int | None = None) -> list[dict[str, Any]]:
    """Changes and expiries, the newest first."""
    with connection.view() as view:
        return rows_in(view, limit)


def rows_in(view: ReadView, limit: int | None = None) -> list[dict[str, Any]]:
    """The same, as a view shows it."""
    found = (audit_trail.find(view, number) for number in islice(audit_trail.numbers(view), limit))
    return [row for row in found if row is not None]


def show(connection: Connection, number: int) -> dict[str, Any]:
    """One of them.

    Raises:
        NotFound
    """
    with connection.view() as view:
        row = audit_trail.find(view, number)
    if row is None:
        raise NotFound(f"there is no audit record {number}", hint="`txnctl audit list` shows them.")
    return row
