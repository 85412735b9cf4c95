"""Reports from the audit trail."""

from __future__ import annotations

from itertools import islice

from storage import audit_trail
from storage.actions import Action, Hint
from storage.audit_trail import AuditRecord
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import NotFound


def list_records(connection: Connection, limit: int | None = None) -> list[AuditRecord]:
    """Changes and expiries, the newest first."""
    with connection.view() as view:
        return records_in(view, limit)


def records_in(view: ReadView, limit: int | None = None) -> list[AuditRecord]:
    """Changes and expiries in a view, the newest first."""
    rows = (audit_trail.find(view, number) for number in islice(audit_trail.numbers(view), limit))
    return [row for row in rows if row is not None]


def show_record(connection: Connection, number: int) -> AuditRecord:
    """One record.

    Raises:
        NotFound
    """
    with connection.view() as view:
        row = audit_trail.find(view, number)
    if row is None:
        raise NotFound(
            f"there is no audit record {number}",
            hint=Hint("`{}` shows them.", Action("store.reports.list_audit_records")),
        )
    return row
