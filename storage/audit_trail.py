"""The audit trail: what operators changed, and which transactions expired.

A record is part of the store transaction that makes the change, so there is none without the other. Records are
numbered together. The trail is bounded: each new record removes the oldest of its kind that lies further back than
its kind is kept, so that a store which reaps often neither grows for ever nor forgets what operators did.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from storage.disk.codec import key1, pack, unpack
from storage.disk.schema import AUDIT
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue
from storage.json_form import JsonObject, to_json
from storage.limits import AUDIT_CHANGES_KEPT, AUDIT_EXPIRIES_KEPT, REASON_CHARACTERS_MAX
from storage.process.identity import ProcessIdentity


class Kind(IntEnum):
    """What the record is of; its value is added to the number in the key, so that each kind is a range of keys."""

    CHANGE = 0
    EXPIRY = 1 << 63


_KEPT = {Kind.CHANGE: AUDIT_CHANGES_KEPT, Kind.EXPIRY: AUDIT_EXPIRIES_KEPT}


def check_reason(reason: str | None) -> None:
    """That a reason which somebody gives for a change can be kept.

    Raises:
        InvalidValue: it is too long, or no Unicode text.
    """
    if reason is None:
        return
    if len(reason) > REASON_CHARACTERS_MAX:
        raise InvalidValue(f"a reason has at most {REASON_CHARACTERS_MAX:,} characters, not {len(reason):,}")
    if reason and not reason.strip(". \u2026"):
        raise InvalidValue(
            f"{reason!r} is no reason: it only stands for one",
            hint="Say why, in a few words that will be understood next month: --reason 'hangs since the deploy'.",
        )
    try:
        reason.encode()
    except UnicodeEncodeError:
        raise InvalidValue("a reason is text, and this is no valid Unicode") from None


def record(
    batch: WriteBatch,
    by: ProcessIdentity,
    action: str,
    target: str,
    reason: str | None,
    effects: object,
    kind: Kind = Kind.CHANGE,
) -> None:
    """Note a change, within the batch that makes it.

    Args:
        reason: given by the operator; for an expiry, the code of its reason.
        effects: a row, stored in its JSON form.
    """
    batch.superblock.last_audit += 1
    fields = [batch.now_ms, by.fields(), action, target, reason, to_json(effects)]
    batch.put(AUDIT, key1(kind + batch.superblock.last_audit), pack(fields))
    _forget(batch, kind)


def _forget(batch: WriteBatch, kind: Kind) -> None:
    """Remove the oldest of this kind if it is out of bounds; two, so that a lowered bound is reached some day."""
    beyond = kind + batch.superblock.last_audit - _KEPT[kind]
    for _ in range(2):
        oldest = next(batch.keys(AUDIT, start=key1(kind)), None)
        if oldest is None or int.from_bytes(oldest, "big") > beyond:
            return
        batch.delete(AUDIT, oldest)


def reason_of(view: ReadView, at_ms: int, *actions: str) -> str | None:
    """What was given as the reason of a change, by its moment; None if nothing was, or it is no longer kept."""
    for _, payload in view.scan_back(AUDIT, b"", key1(Kind.EXPIRY)):
        changed_ms, _by, action, _target, reason = unpack(payload)[:5]
        if changed_ms == at_ms and action in actions:
            return str(reason) if reason is not None else None
        if changed_ms < at_ms:
            break
    return None


def numbers(view: ReadView) -> list[int]:
    """The numbers of all records, the newest first."""
    return sorted((int.from_bytes(key, "big") & ~Kind.EXPIRY for key in view.keys(AUDIT)), reverse=True)


class AuditRow(NamedTuple):
    """A record; `effects` is an object in JSON form, as stored."""

    number: int
    changed_at_ms: int
    by: ProcessIdentity
    action: str
    target: str
    reason: str | None
    effects: JsonObject


def find(view: ReadView, number: int) -> AuditRow | None:
    """The record of a number, or None."""
    if not 0 < number <= view.superblock.last_audit:
        return None
    for kind in Kind:
        payload = view.get(AUDIT, key1(kind + number))
        if payload is not None:
            at_ms, by, action, target, reason, effects = unpack(payload)[:6]
            return AuditRow(number, at_ms, ProcessIdentity.of(by), action, target, reason, effects)
    return None
