"""The reaper: abort overdue transactions, and attached transactions whose owner is proven dead.

There is no daemon: every write batch begins with the reaper, which aborts a few transactions. The transaction that the
batch names (`WriteBatch.naming`) is exempt: the coordinator compares its state and deadline once, in the operation.

A look at every lease that owns transactions is due once a second, and with it one at a few of the others, whose records
are removed once their processes are dead. A change that is refused over open transactions does not wait for the look:
the writer asks for those among the holders that are due, and runs the change again without them (docs/decisions/0032).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from storage.disk.codec import U64X2, key1
from storage.disk.schema import LEASE_TXNS, LEASES, TXN_DEADLINES
from storage.disk.superblock import ReapPolicy
from storage.disk.view import ReadView, WriteBatch
from storage.limits import LEASES_LOOKED_AT, REAP_EVERY_NS, REAP_PER_WRITE_MAX
from storage.process.identity import ProcessIdentity
from storage.process.locks import Locks
from storage.txn import record as records
from storage.txn.coordinator import Coordinator, Ended
from storage.values.txn_state import AbortReason, TransactionState

EVERY = -1
"""The `naming` of a batch without reaping at its begin, because the batch itself reaps or ends transactions."""


def overdue(view: ReadView, limit: int = 1 << 62) -> list[int]:
    """Return the open transactions with a passed deadline, the earliest deadline first."""
    passed: list[int] = []
    now_ns = view.now_ns
    for key in view.keys(TXN_DEADLINES):
        deadline_ns, txn_id = U64X2.unpack(key)
        if deadline_ns > now_ns or len(passed) >= limit:
            break
        passed.append(txn_id)
    return passed


def orphaned(view: ReadView, locks: Locks) -> Iterator[int]:
    """Yield the open transactions that are attached to a dead process."""
    for lease in _owners(view):
        if not locks.leases.is_held(lease):
            yield from _owned(view, lease)


def _recorded(view: ReadView, after: int = 0) -> Iterator[int]:
    """Yield the recorded leases behind one."""
    for key in view.keys(LEASES, start=key1(after + 1)):
        yield int.from_bytes(key, "big")


def _owned(view: ReadView, lease: int) -> Iterator[int]:
    """Yield the open transactions that are attached to the process of a lease."""
    for key in view.keys(LEASE_TXNS, key1(lease)):
        yield int.from_bytes(key[8:], "big")


def _owners(view: ReadView) -> Iterator[int]:
    """Yield the leases that own open transactions, one look-up each; most processes own none."""
    lease = 0
    while (record := view.first(LEASE_TXNS, b"", key1(lease + 1))) is not None:
        lease = U64X2.unpack(record[0])[0]
        yield lease


def is_due(view: ReadView, locks: Locks) -> bool:
    """Whether the next write batch would reap a transaction under the store's policy."""
    policy = view.superblock.reap_policy
    if policy == ReapPolicy.MANUAL:
        return False
    if overdue(view, 1):
        return True
    return policy == ReapPolicy.ALL and next(orphaned(view, locks), None) is not None


def next_deadline_ns(view: ReadView) -> int | None:
    """Return the earliest deadline, on the store clock."""
    for key in view.keys(TXN_DEADLINES):
        return int(U64X2.unpack(key)[0])
    return None


def end_owned(
    batch: WriteBatch, coordinator: Coordinator, lease: int, process: ProcessIdentity
) -> list[Ended]:
    """Abort the transactions of a dead lease, before a successor gets the messages or topics of its process."""
    owned = [txn_id for txn_id in _owned(batch, lease) if txn_id != batch.naming]
    return [coordinator.abort(batch, txn_id, process, AbortReason.OWNER_DEAD) for txn_id in owned]


def _is_due(batch: WriteBatch, txn_id: int) -> bool:
    """Whether an open transaction is overdue, or its owner is dead and the policy ends those too."""
    record = records.find(batch, txn_id)
    if record is None or record.state is not TransactionState.OPEN:
        return False
    if record.is_overdue(batch.now_ns):
        return True
    is_orphan = bool(record.lease) and not batch.locks.leases.is_held(record.lease)
    return is_orphan and batch.superblock.reap_policy == ReapPolicy.ALL


class Reaper:
    """The reaper of a process, called at the begin of every write batch."""

    __slots__ = ("_coordinator", "_process", "_turn")

    def __init__(self, coordinator: Coordinator, process: Callable[[], ProcessIdentity]) -> None:
        """Args:
        process: gives the identity of this process, called when a transaction is ended.
        """
        self._coordinator = coordinator
        self._process = process
        self._turn: int | None = None

    def reap_some(self, batch: WriteBatch, is_due: bool) -> int:
        """Abort a few transactions at the begin of a batch: overdue ones and, if `is_due`, those of dead owners.

        Returns:
            The time on the store clock from which the next look for dead owners is due.
        """
        policy = batch.superblock.reap_policy
        if policy == ReapPolicy.MANUAL or batch.naming == EVERY:
            return 0
        # A batch that calls before the look is due has found recorded deadlines.
        if not is_due or batch.has_records(TXN_DEADLINES):
            self._end_overdue(batch, REAP_PER_WRITE_MAX)
        if policy == ReapPolicy.OVERDUE:
            return 0
        if is_due:
            self._end_orphaned(batch, self._in_turn(batch), REAP_PER_WRITE_MAX)
        return batch.now_ns + REAP_EVERY_NS

    def find_due(self, batch: WriteBatch, holders: Sequence[int]) -> list[int]:
        """The transactions among the holders that some next write ends under the store's policy, and no command names.

        A batch that does not reap at its begin ends no holder either.
        """
        if batch.superblock.reap_policy == ReapPolicy.MANUAL or batch.naming == EVERY:
            return []
        return [txn for txn in holders if txn != batch.naming and _is_due(batch, txn)]

    def end(self, batch: WriteBatch, due: Sequence[int]) -> None:
        """Abort transactions that `find_due` has found: they are in the way of the batch's change."""
        for txn_id in due:
            record = records.get(batch, txn_id)
            if record.state is TransactionState.OPEN:
                is_overdue = record.is_overdue(batch.now_ns)
                self._abort(
                    batch, txn_id, AbortReason.TIMED_OUT if is_overdue else AbortReason.OWNER_DEAD, None
                )

    def reap(self, batch: WriteBatch, limit: int, text: str | None) -> list[Ended]:
        """Abort up to `limit` transactions under any policy, for `transactions reap`.

        Args:
            text: the operator's reason, kept in the record of each transaction.
        """
        ended = self._end_overdue(batch, limit, text)
        return ended + self._end_orphaned(batch, _recorded(batch), limit - len(ended), text)

    def _end_overdue(self, batch: WriteBatch, limit: int, text: str | None = None) -> list[Ended]:
        ended: list[Ended] = []
        for txn_id in overdue(batch, limit + 1):
            if txn_id != batch.naming and len(ended) < limit:
                ended.append(self._abort(batch, txn_id, AbortReason.TIMED_OUT, text))
        return ended

    def _in_turn(self, batch: WriteBatch) -> list[int]:
        """The next few recorded leases. The first turn goes by a commit, so that commands begin at different leases."""
        turn = batch.commit % (batch.superblock.last_lease + 1) if self._turn is None else self._turn
        leases = list(islice(_recorded(batch, turn), LEASES_LOOKED_AT))
        leases += islice(_recorded(batch), LEASES_LOOKED_AT - len(leases))
        self._turn = leases[-1] if leases else 0
        return leases

    def _end_orphaned(
        self, batch: WriteBatch, leases: Iterable[int], limit: int, text: str | None = None
    ) -> list[Ended]:
        """Abort transactions of dead processes, and remove the records of leases that own none.

        Args:
            leases: the leases to look at; those that own transactions are looked at in any case.
        """
        ended: list[Ended] = []
        # A lease whose record is lost still owns transactions.
        for lease in sorted({*leases, *_owners(batch)}):
            left = limit - len(ended)
            if batch.locks.leases.is_held(lease):
                continue
            # One more than may be ended: one of them may be exempt.
            owned = list(islice(_owned(batch, lease), left + 1))
            due = [txn_id for txn_id in owned if txn_id != batch.naming][:left]
            ended += [self._abort(batch, txn_id, AbortReason.OWNER_DEAD, text) for txn_id in due]
            if not owned:
                batch.delete(LEASES, key1(lease))
        return ended

    def _abort(self, batch: WriteBatch, txn_id: int, reason: AbortReason, text: str | None) -> Ended:
        return self._coordinator.abort(batch, txn_id, self._process(), reason, text)
