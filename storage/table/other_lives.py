"""Versions that a table never had: of another incarnation of the store, or of a former table of the name.

A follower keeps the last version that it has read outside the store. After a restore the version may be one that the
original issued behind the backup, and after a re-creation one of the deleted table: the changes since then would leave
the follower with rows that the table never had. So the versions of each such life are noted as one interval.
"""

from __future__ import annotations

from typing import Final

from storage.disk.codec import pack, unpack
from storage.disk.schema import STORE
from storage.disk.view import ReadView, WriteBatch
from storage.errors import RequestTooOld
from storage.limits import FORMER_TABLES
from storage.values.named_tuple import NamedTuple
from storage.values.timestamps import rfc3339

_INCARNATIONS: Final = b"incarnations"
_FORMER_TABLES: Final = b"former-tables"
_NS_PER_MS: Final = 1_000_000


class OtherLife(NamedTuple):
    """Versions above `known` and below `first`, which were issued elsewhere, if at all.

    Attributes:
        table: the name of a deleted table; "" for the versions of an incarnation.
    """

    known: int
    first: int
    table: str = ""


def note_incarnation(batch: WriteBatch, known: int) -> None:
    """Note that versions above `known` and below the next timestamp, which is issued, are of an earlier incarnation."""
    _note(batch, _INCARNATIONS, OtherLife(known, batch.timestamp()))


def begins(view: ReadView) -> list[int]:
    """The first timestamps of the incarnations of the store but the first one, the latest first."""
    return [life.first for life in _lives(view, _INCARNATIONS)]


def note_deleted(batch: WriteBatch, table: str, created_ms: int) -> None:
    """Note the versions of a table that is deleted; of the last `FORMER_TABLES` tables."""
    life = OtherLife(created_ms * _NS_PER_MS - 1, batch.timestamp(), table)
    _note(batch, _FORMER_TABLES, life, FORMER_TABLES)


def _note(batch: WriteBatch, key: bytes, life: OtherLife, limit: int | None = None) -> None:
    kept = [life, *_lives(batch, key)][:limit]
    batch.put(STORE, key, pack([list(row) for row in kept]))


def _lives(view: ReadView, key: bytes) -> list[OtherLife]:
    """The lives of a record, the latest first."""
    payload = view.get(STORE, key)
    return [] if payload is None else [OtherLife(*row) for row in unpack(payload)]


def check_version(view: ReadView, table: str, version: int) -> None:
    """Check a version that a caller has kept, or a time.

    Raises:
        RequestTooOld: the version is of another life; the error names the first version of this one.
    """
    for life in (*_lives(view, _INCARNATIONS), *_lives(view, _FORMER_TABLES)):
        if life.known < version < life.first and life.table in ("", table):
            raise _never_issued(table, version, life)


def _never_issued(table: str, version: int, life: OtherLife) -> RequestTooOld:
    known, first = (rfc3339(timestamp // _NS_PER_MS) for timestamp in (life.known, life.first))
    why = (
        f"was deleted at {first} and created again"
        if life.table
        else f"was restored as of {known} and goes on from {first}"
    )
    return RequestTooOld(
        f"{'table' if life.table else 'the store of table'} {table} {why}: version {version} is from before that",
        hint="Read the whole table at a version, then the changes after that one.",
        table=table,
        oldestVersion=str(life.first),
    )
