"""Conflicts between transactions: recorded with the loser, and in a ring for operators; the errors of losers."""

from __future__ import annotations

from typing import Any

from storage.actions import Action, Hint
from storage.disk.codec import key1, pack, unpack_first
from storage.disk.schema import CONFLICTS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import LostConflict, RequestTooOld, WriteTooOld
from storage.limits import CONFLICTS_MAX
from storage.txn import record as records
from storage.txn.errors import RUN_AGAIN
from storage.txn.record import TransactionRecord
from storage.values.counters import CONFLICTS_LOST
from storage.values.key_text import key_text
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID

PUSH, HELD, READ, VERSION, TOO_OLD = "push", "held", "read", "version", "too-old"
"""Kinds of conflicts that a transaction loses: against a winner that wanted the loser's key, against a winner that held
a key the loser wanted, against a later read, against a later version, against the bounds of time."""


class DoomCause:
    """The conflict that dooms a transaction.

    Attributes:
        winner, winner_version: the winning transaction and its timestamp; 0 where unknown. A conflict of kind READ
            without the timestamp stands for reads that were forgotten: the key may have been read.
        table, key: the key of the conflict; empty if the conflict is over no key.
    """

    __slots__ = ("key", "kind", "table", "winner", "winner_version")

    def __init__(self, kind: str, table: str, key: bytes, winner: int = 0, winner_version: int = 0) -> None:
        self.kind = kind
        self.table = table
        self.key = key
        self.winner = winner
        self.winner_version = winner_version

    @property
    def is_possible_read(self) -> bool:
        """Whether a later read of the key is possible, and not known."""
        return self.kind == READ and not self.winner_version

    def fields(self) -> list[Any]:
        return [self.kind, self.winner, self.winner_version, self.table, self.key]


def _winner_text(txn: int, version: int) -> str:
    if txn:
        return f"transaction {TxnID(txn)}"
    return f"the transaction of timestamp {version}" if version else "a later transaction"


def note(batch: WriteBatch, loser: TransactionRecord, conflict: DoomCause) -> None:
    """Remember a conflict for `tables history`; the oldest makes room."""
    superblock = batch.superblock
    superblock.last_conflict += 1
    batch.counted[CONFLICTS_LOST] += 1
    fields = [batch.now_ms, *conflict.fields(), loser.txn_id, loser.timestamp]
    batch.put(CONFLICTS, key1(superblock.last_conflict), pack(fields))
    if superblock.last_conflict > CONFLICTS_MAX:
        batch.delete(CONFLICTS, key1(superblock.last_conflict - CONFLICTS_MAX))


class ConflictRow(NamedTuple):
    """A recorded conflict: the winner where known, and the loser."""

    number: int
    happened_at_ms: int
    kind: str
    table: str | None
    key: bytes | None
    winner: TxnID | None
    winner_version_ns: int | None
    loser: TxnID
    loser_version_ns: int


class Doom(NamedTuple):
    """The conflict that a transaction lost."""

    kind: str
    winner: TxnID | None
    winner_version_ns: int | None
    table: str | None
    key: bytes | None


def list_conflicts(
    view: ReadView, limit: int | None = None, table: str | None = None, since_ms: int = 0
) -> list[ConflictRow]:
    """Recent conflicts, the newest first, up to the first one before a moment."""
    rows: list[ConflictRow] = []
    for key, payload in view.scan_back(CONFLICTS, b"", key1(view.superblock.last_conflict + 1)):
        at_ms, kind, winner, winner_version, name, table_key, loser, loser_version = unpack_first(payload, 8)
        if at_ms < since_ms:
            break
        if table not in (None, name):
            continue
        if limit is not None and len(rows) >= limit:
            break
        rows.append(ConflictRow(
            number=int.from_bytes(key, "big"), happened_at_ms=at_ms, kind=kind, table=name or None,
            key=table_key or None, winner=TxnID(winner) if winner else None,
            winner_version_ns=winner_version or None, loser=TxnID(loser), loser_version_ns=loser_version,
        ))  # fmt: skip
    return rows


def doom_of(record: TransactionRecord) -> Doom | None:
    """The conflict that a transaction lost, or None."""
    if not record.conflict:
        return None
    kind, winner, version, table, key = record.conflict
    return Doom(kind, TxnID(winner) if winner else None, version or None, table or None, key or None)


def find_lost(view: ReadView, txn_id: int) -> Doom | None:
    """Find the conflict that an ended transaction lost to a different one; None if nothing of the kind ended it.

    The whole transaction may win if tried again. Being older than the versions kept, or than a consumed message, is no
    such conflict: a repetition would take as long, or begin as early.
    """
    record = records.find(view, txn_id)
    doom = None if record is None else doom_of(record)
    return None if doom is None or doom.kind == TOO_OLD else doom


def loss_text(doom: Doom) -> str:
    """Put a lost conflict into words, after the subject: `lost key n of table accounts to transaction 0:7`.

    A read or a version that was met is not always known by its transaction.
    """
    winner = _winner_text(doom.winner.least if doom.winner else 0, doom.winner_version_ns or 0)
    return f"lost key {key_text(doom.key or b'')} of table {doom.table} to {winner}"


def _details(record: TransactionRecord, conflict: DoomCause) -> dict[str, Any]:
    return {
        "transaction": str(record.id), "state": "ABORTED", "table": conflict.table,
        "key": key_text(conflict.key), "winner": str(TxnID(conflict.winner)) if conflict.winner else None,
        "winnerVersion": str(conflict.winner_version) if conflict.winner_version else None,
    }  # fmt: skip


def lost(
    view: ReadView, record: TransactionRecord, conflict: DoomCause, holder: TransactionRecord
) -> LostConflict:
    """The error of a transaction that wanted a key which a stronger transaction holds."""
    labels = " ".join([f"{name}={value}" for name, value in holder.labels.items()])
    idle_s = max(0, view.now_ns - holder.used_ns) // 1_000_000_000
    user = "" if holder.user == holder.owner else f", last used by {holder.user}"
    who = (
        f"{labels + ', ' if labels else ''}{holder.owner}{user}, priority {holder.priority}, "
        f"idle for {idle_s:,} s"
    )
    return LostConflict(
        f"transaction {record.id} is aborted: key {key_text(conflict.key)} of table {conflict.table} is held by "
        f"transaction {holder.id} ({who})",
        hint=Hint(
            "`{}` says whether to wait for that one. {}",
            Action("store.reports.explain_transaction", holder.id),
            RUN_AGAIN,
        ),
        held_by=(holder.txn_id,),
        **_details(record, conflict),
    )


def write_too_old(record: TransactionRecord, conflict: DoomCause) -> WriteTooOld:
    """The error for a write under a key that a later transaction has read or written."""
    what, hint = "was read by" if conflict.kind == READ else "was written by", RUN_AGAIN
    if conflict.is_possible_read:
        what, hint = "may have been read by", Hint("Reads that long ago are forgotten. {}", RUN_AGAIN)
    return WriteTooOld(
        f"key {key_text(conflict.key)} of table {conflict.table} {what} "
        f"{_winner_text(conflict.winner, conflict.winner_version)}, which began after transaction {record.id}: "
        "it is aborted",
        hint=hint,
        **_details(record, conflict),
    )


def too_old(record: TransactionRecord, why: str, hint: str) -> RequestTooOld:
    """The error for a transaction older than the kept versions, or older than a message that it consumed."""
    return RequestTooOld(
        f"transaction {record.id} {why}: it is aborted",
        hint=hint,
        transaction=str(record.id),
        state="ABORTED",
    )
