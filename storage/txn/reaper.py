"""Reaping: end transactions whose deadline has passed, and attached ones whose owner is proven dead.

There is no daemon: every write batch begins here, and ends a few. The transaction that the batch names
(`WriteBatch.naming`) is never reaped here: the coordinator compares its state and deadline once, in the operation.
"""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.codec import U64X2, key1
from storage.disk.schema import LEASE_TXNS, LEASES, TXN_DEADLINES
from storage.disk.superblock import ReapPolicy
from storage.disk.view import ReadView, WriteBatch
from storage.limits import REAP_EVERY_NS, REAP_PER_WRITE_MAX
from storage.process.identity import ProcessIdentity
from storage.process.lock_file import LockFile
from storage.txn.coordinator import Coordinator, Ended
from storage.values.txn_state import AbortReason

EVERY = -1
"""The `naming` of a batch that must not be preceded by reaping, because its change reaps or ends transactions."""


def overdue(view: ReadView, limit: int = 1 << 62) -> list[int]:
    """Open transactions whose deadline has passed, the longest ago first."""
    passed: list[int] = []
    now_ns = view.now_ns
    for key in view.keys(TXN_DEADLINES):
        deadline_ns, txn_id = U64X2.unpack(key)
        if deadline_ns > now_ns or len(passed) >= limit:
            break
        passed.append(txn_id)
    return passed


def orphaned(view: ReadView, lock_file: LockFile) -> list[int]:
    """Open transactions that are attached to a dead process."""
    ownerless: list[int] = []
    for key in view.keys(LEASES):
        lease = int.from_bytes(key, "big")
        if not lock_file.leases.is_held(lease):
            ownerless.extend(int.from_bytes(owned[8:], "big") for owned in view.keys(LEASE_TXNS, key))
    return ownerless


def is_due(view: ReadView, lock_file: LockFile) -> bool:
    """Whether the next writer would reap a transaction, by the store's policy; asked by waiting producers."""
    policy = view.superblock.reap_policy
    if policy == ReapPolicy.MANUAL:
        return False
    return bool(overdue(view, 1) or (policy == ReapPolicy.ALL and orphaned(view, lock_file)))


def next_deadline_ns(view: ReadView) -> int | None:
    """The most urgent deadline, on the store clock."""
    for key in view.keys(TXN_DEADLINES):
        return int(U64X2.unpack(key)[0])
    return None


def end_owned(batch: WriteBatch, coordinator: Coordinator, lease: int, process: ProcessIdentity) -> None:
    """End the transactions of a dead owner of a lease, before anything the owner held is given away."""
    for key in list(batch.keys(LEASE_TXNS, key1(lease))):
        txn_id = int.from_bytes(key[8:], "big")
        if txn_id != batch.naming:
            coordinator.abort(batch, txn_id, process, AbortReason.OWNER_DEAD)


class Reaper:
    """The reaping at the begin of every write batch of a process."""

    __slots__ = ("_coordinator", "_due_ns", "_process")

    def __init__(self, coordinator: Coordinator, process: Callable[[], ProcessIdentity]) -> None:
        """Args:
        process: gives the identity of this process, called when a transaction is ended.
        """
        self._coordinator = coordinator
        self._due_ns = 0
        self._process = process

    def reap_some(self, batch: WriteBatch) -> int:
        """End a few transactions at the begin of a batch; look for dead owners once a second.

        Returns:
            The store clock from which a batch calls again; before, a batch calls only while a deadline is recorded.
        """
        policy = batch.superblock.reap_policy
        if policy == ReapPolicy.MANUAL or batch.naming == EVERY:
            return 0
        now_ns = batch.now_ns
        is_due = now_ns >= self._due_ns
        # A batch that calls before the time has found deadlines.
        if not is_due or batch.count(TXN_DEADLINES):
            self._end_overdue(batch, REAP_PER_WRITE_MAX)
        if policy == ReapPolicy.OVERDUE:
            return 0
        if is_due:
            if not batch.dry_run:
                # A dry run is dropped: the next batch has to look again.
                self._due_ns = now_ns + REAP_EVERY_NS
            self._end_orphaned(batch, REAP_PER_WRITE_MAX)
        return self._due_ns

    def reap(self, batch: WriteBatch, limit: int) -> list[Ended]:
        """End up to `limit`, whatever the policy: `transactions reap`."""
        ended = self._end_overdue(batch, limit)
        return ended + self._end_orphaned(batch, limit - len(ended))

    def _end_overdue(self, batch: WriteBatch, limit: int) -> list[Ended]:
        ended: list[Ended] = []
        for txn_id in overdue(batch, limit + 1):
            if txn_id != batch.naming and len(ended) < limit:
                ended.append(self._abort(batch, txn_id, AbortReason.TIMED_OUT))
        return ended

    def _end_orphaned(self, batch: WriteBatch, limit: int) -> list[Ended]:
        ended: list[Ended] = []
        for key in list(batch.keys(LEASES)):
            if batch.lock_file.leases.is_held(int.from_bytes(key, "big")):
                continue
            owned = [int.from_bytes(name[8:], "big") for name in batch.keys(LEASE_TXNS, key)]
            due = [txn_id for txn_id in owned if txn_id != batch.naming][: limit - len(ended)]
            ended += [self._abort(batch, txn_id, AbortReason.OWNER_DEAD) for txn_id in due]
            if not owned:
                batch.delete(LEASES, key)
        return ended

    def _abort(self, batch: WriteBatch, txn_id: int, reason: AbortReason) -> Ended:
        return self._coordinator.abort(batch, txn_id, self._process(), reason)
