"""Reports from the audit trail."""

from __future__ import annotations

from itertools import islice
from typing import Final

from storage import audit_trail
from storage.actions import Action, Hint
from storage.audit_trail import AuditRecord
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.errors import InvalidValue, NotFound
from storage.values.arguments import check_time_ms
from storage.values.named_tuple import NamedTuple


class Choice(NamedTuple):
    """Records that match everything given; None matches all.

    Attributes:
        since_ms: records of then or later, in wall time.
        action: an action, or the first words of actions.
        target: a part of the target.
    """

    since_ms: int | None = None
    action: str | None = None
    target: str | None = None

    def matches(self, record: AuditRecord) -> bool:
        """Whether a record matches."""
        if self.since_ms is not None and record.changed_at_ms < self.since_ms:
            return False
        if self.action is not None and not f"{record.action} ".startswith(f"{self.action} "):
            return False
        return self.target is None or self.target in record.target


_EVERY: Final = Choice()


def choice(since_ms: int | None, action: str | None, target: str | None) -> Choice:
    """The choice of arguments of the API.

    Raises:
        InvalidValue
    """
    if since_ms is not None:
        check_time_ms("the time since when", since_ms)
    for noun, text in (("an action", action), ("a part of a target", target)):
        if text is not None and not isinstance(text, str):
            raise InvalidValue(f"{noun} is text, not {text!r}")
    return Choice(since_ms, action and action.strip(), target)


def list_records(
    connection: Connection, limit: int | None = None, chosen: Choice = _EVERY
) -> list[AuditRecord]:
    """Changes and expiries that match, the newest first."""
    with connection.view() as view:
        return records_in(view, limit, chosen)


def records_in(view: ReadView, limit: int | None = None, chosen: Choice = _EVERY) -> list[AuditRecord]:
    """Changes and expiries in a view that match, the newest first."""
    rows = (audit_trail.find(view, number) for number in audit_trail.numbers(view))
    return list(islice((row for row in rows if row is not None and chosen.matches(row)), limit))


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
