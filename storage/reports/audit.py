"""Reports from the audit trail."""

from __future__ import annotations

from itertools import islice
from typing import Any

from storage import audit_trail
from storage.audit_trail import AuditRecord
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import NotFound
from storage.values.timestamps import both


def rows(connection: Connection, limit: int | None = None) -> list[dict[str, Any]]:
    """Changes and expiries, the newest first."""
    with connection.view() as view:
        return rows_in(view, limit)


def rows_in(view: ReadView, limit: int | None = None) -> list[dict[str, Any]]:
    """Changes and expiries in a view, the newest first."""
    records = (audit_trail.find(view, number) for number in islice(audit_trail.numbers(view), limit))
    return [_row(record) for record in records if record is not None]


def show(connection: Connection, number: int) -> dict[str, Any]:
    """The record of a number.

    Raises:
        NotFound
    """
    with connection.view() as view:
        record = audit_trail.find(view, number)
    if record is None:
        raise NotFound(f"there is no audit record {number}", hint="`txnctl audit list` shows them.")
    return _row(record)


def _row(record: AuditRecord) -> dict[str, Any]:
    return {
        "number": record.number, **both("changed", record.changed_ms), "by": str(record.identity),
        "action": record.action, "target": record.target, "reason": record.reason, "effects": record.effects,
    }  # fmt: skip
