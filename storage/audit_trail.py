"""The audit trail: changes by operators, and expired transactions.

A record is part of the store transaction that makes the change, so that neither exists without the other. Both kinds
share one sequence of numbers. The trail is bounded for each kind: a new record removes the oldest of its kind beyond
the bound, so that frequent expiries neither grow the store nor displace the changes by operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from storage.actions import Hint, Keyword
from storage.disk.codec import key1, pack, unpack_first
from storage.disk.schema import AUDIT
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue
from storage.json_form import to_json
from storage.limits import AUDIT_CHANGES_KEPT, AUDIT_EXPIRIES_KEPT, REASON_CHARACTERS_MAX
from storage.process.identity import ProcessIdentity
from storage.values.named_tuple import NamedTuple


class Kind(IntEnum):
    """The kind of a record; the value is added to the number in the key, so that each kind is a range of keys."""

    CHANGE = 0
    EXPIRY = 1 << 63


_KEPT = {Kind.CHANGE: AUDIT_CHANGES_KEPT, Kind.EXPIRY: AUDIT_EXPIRIES_KEPT}


class AuditRecord(NamedTuple):
    """One record.

    Attributes:
        by: the process that made the change.
        reason: the operator's reason for a change, or the cause of an expiry.
        effects: the effects of the change, as the command reported them, in JSON form.
    """

    number: int
    changed_at_ms: int
    by: ProcessIdentity
    action: str
    target: str
    reason: str | None
    effects: dict[str, object]


def check_reason(reason: str | None) -> None:
    """Check an operator's reason for a change.

    Raises:
        InvalidValue: the reason is too long, or no Unicode text.
    """
    if reason is None:
        return
    if not isinstance(reason, str):
        raise InvalidValue(f"a reason is text, not {reason!r}")
    if len(reason) > REASON_CHARACTERS_MAX:
        raise InvalidValue(f"a reason has at most {REASON_CHARACTERS_MAX:,} characters, not {len(reason):,}")
    if reason and not reason.strip(". \u2026"):
        raise InvalidValue(
            f"{reason!r} is a placeholder, not a reason",
            hint=Hint(
                "Give a few words that a colleague will understand next month: {}.",
                Keyword("reason", "hangs since the deploy"),
            ),
        )
    try:
        reason.encode()
    except UnicodeEncodeError:
        raise InvalidValue("a reason must be valid Unicode") from None


def record(
    batch: WriteBatch,
    identity: ProcessIdentity,
    action: str,
    target: str,
    reason: str | None,
    effects: object,
    kind: Kind = Kind.CHANGE,
) -> None:
    """Add the record of a change to the batch that makes the change; for the arguments see `AuditRecord`.

    Args:
        effects: a row, stored in its JSON form.
    """
    batch.superblock.last_audit += 1
    fields = [batch.now_ms, identity.fields(), action, target, reason, to_json(effects)]
    batch.put(AUDIT, key1(kind + batch.superblock.last_audit), pack(fields))
    _forget(batch, kind)


def _forget(batch: WriteBatch, kind: Kind) -> None:
    """Remove the oldest records beyond the bound of this kind; two at a time, so that a lowered bound is reached."""
    beyond = kind + batch.superblock.last_audit - _KEPT[kind]
    for _ in range(2):
        oldest = next(batch.keys(AUDIT, start=key1(kind)), None)
        if oldest is None or int.from_bytes(oldest, "big") > beyond:
            return
        batch.delete(AUDIT, oldest)


def reason_of(view: ReadView, at_ms: int, *actions: str) -> str | None:
    """The reason of a change, found by its time; None without a reason, or when the record is gone."""
    for _, payload in view.scan_back(AUDIT, b"", key1(Kind.EXPIRY)):
        changed_ms, _, action, _, reason = unpack_first(payload, 5)
        if changed_ms == at_ms and action in actions:
            return str(reason) if reason is not None else None
        if changed_ms < at_ms:
            break
    return None


def changes_by(view: ReadView, process: ProcessIdentity) -> Iterator[AuditRecord]:
    """The changes that a process made, the newest first, as far as the trail reaches back."""
    for key, payload in view.scan_back(AUDIT, b"", key1(Kind.EXPIRY)):
        if ProcessIdentity.of(unpack_first(payload, 2)[1]) == process:
            change = find(view, int.from_bytes(key, "big"))
            if change is not None:
                yield change


def numbers(view: ReadView) -> list[int]:
    """The numbers of all records, the newest first."""
    return sorted((int.from_bytes(key, "big") & ~Kind.EXPIRY for key in view.keys(AUDIT)), reverse=True)


def find(view: ReadView, number: int) -> AuditRecord | None:
    """The record of this number; None if it never existed or is gone."""
    if not 0 < number <= view.superblock.last_audit:
        return None
    for kind in Kind:
        payload = view.get(AUDIT, key1(kind + number))
        if payload is not None:
            changed_ms, identity, action, target, reason, effects = unpack_first(payload, 6)
            return AuditRecord(
                number, changed_ms, ProcessIdentity.of(identity), action, target, reason, effects
            )
    return None
