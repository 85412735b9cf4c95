"""The audit trail: what operators changed.

A record is part of the store transaction that makes the change, so there is none without the other.
"""

from __future__ import annotations

from typing import Any

from storage.codec import key1, pack, unpack
from storage.connection import Connection
from storage.errors import BadInput, NotFound
from storage.limits import REASON_CHARACTERS_MAX
from storage.moment import both
from storage.owner import Owner
from storage.schema import AUDIT
from storage.view import WriteBatch


def record(
    batch: WriteBatch, by: Owner, action: str, target: str, reason: str | None, effects: dict[str, Any]
) -> None:
    """Note a change by an operator, within the batch that makes it."""
    batch.head.last_audit += 1
    fields = [batch.now_ms, by.fields(), action, target, reason, effects]
    batch.put(AUDIT, key1(batch.head.last_audit), pack(fields))


def check_reason(reason: str | None) -> None:
    """Raises:
    BadInput: a reason that is too long to be kept.
    """
    if reason is not None and len(reason) > REASON_CHARACTERS_MAX:
        raise BadInput(f"a reason has at most {REASON_CHARACTERS_MAX:,} characters")


def rows(connection: Connection, limit: int | None = None) -> list[dict[str, Any]]:
    """Changes, the newest first."""
    with connection.view() as view:
        found = [_row(key, payload) for key, payload in view.scan(AUDIT)]
    found.reverse()
    return found if limit is None else found[:limit]


def show(connection: Connection, number: int) -> dict[str, Any]:
    """One change.

    Raises:
        NotFound
    """
    with connection.view() as view:
        payload = view.get(AUDIT, key1(number))
        if payload is None:
            raise NotFound(f"there is no audit record {number}", hint="`txnctl audit list` shows them.")
        return _row(key1(number), payload)


def _row(key: bytes, payload: memoryview) -> dict[str, Any]:
    at_ms, by, action, target, reason, effects = unpack(payload)[:6]
    return {
        "number": int.from_bytes(key, "big"), **both("changed", at_ms), "by": str(Owner.of(by)), "action": action,
        "target": target, "reason": reason, "effects": effects,
    }  # fmt: skip
