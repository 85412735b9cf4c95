"""An open store's connection, transaction coordinator and reaper, passed as one value to every room above.

`Store` makes an engine and keeps it; reports, administration and maintenance receive the engine instead of the store.
Restoring and compacting open a second engine on a copy.
"""

from __future__ import annotations

import os
from functools import cache, cached_property
from typing import TYPE_CHECKING

from storage.disk.connection import Connection
from storage.disk.schema import COMPACTIONS, PART_SUBSCRIPTION, PART_TOPIC, PURGES
from storage.limits import LOCK_TIMEOUT_S, TRIM_TOPICS_LOOKED_AT
from storage.process.clock import SYSTEM_CLOCK, Clock, nanoseconds
from storage.topic import retention
from storage.values.arguments import check_flags

if TYPE_CHECKING:
    from storage.disk.view import WriteBatch
    from storage.process.identity import ProcessIdentity
    from storage.process.locks import Locks
    from storage.process.writer_gate import OnWait
    from storage.subscription.topic_upkeep import Upkeep
    from storage.subscription.trimming import Force
    from storage.txn.compaction import Compactor
    from storage.txn.coordinator import Coordinator
    from storage.txn.participant import Participant
    from storage.txn.reaper import Reaper


class Engine:
    """One process's access to a store. Made by `Engine.open`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        # All handles of a process share the writer, which calls the upkeep of the first one also when that is closed.
        self._writer = connection.environment.writer
        if not connection.read_only and self._writer.prologue is None:
            self._writer.prologue = self.upkeep
            self._writer.holder_ends = self.reaper
            self._writer.make_room = self._make_room

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        lock_timeout: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,
        program: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> Engine:
        """Open an existing store; args and raises as `Store.open`."""
        check_flags(read_only=read_only)
        engine = cls(
            Connection(
                os.fspath(path), clock, read_only=read_only,
                lock_timeout_s=nanoseconds(lock_timeout, "a lock timeout") / 1e9, on_wait=on_wait, program=program,
            )
        )  # fmt: skip
        if not read_only and engine.connection.environment.is_moved:
            engine._begin_incarnation()
        return engine

    def _begin_incarnation(self) -> None:
        """End all that was under way on the earlier server of the store, before anything else is done.

        Raises:
            CommitsLost: the server lacks commits that this process has seen; the handle is closed.
        """
        from storage.reincarnation import Inheritance, reincarnate
        from storage.txn.reaper import EVERY

        environment = self.connection.environment
        with self.connection.view() as view:
            inherited = Inheritance.load(view)

        def change(batch: WriteBatch) -> int:
            reason = environment.adopt_server(batch)
            if reason is not None:
                reincarnate(
                    batch, self.coordinator, self.process, inherited, action="failover", reason=reason,
                    how="failover",
                )  # fmt: skip
            return batch.superblock.incarnation

        try:
            environment.end_move(self.connection.write(change, naming=EVERY))
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.connection.close()

    @property
    def locks(self) -> Locks:
        """The lock file, which holds the writer gate and the leases of living processes."""
        return self.connection.environment.locks

    @property
    def process(self) -> ProcessIdentity:
        """The identity under which this process writes."""
        return self.connection.identity

    @cached_property
    def coordinator(self) -> Coordinator:
        """The coordinator, with topics, subscriptions and tables as its participants."""
        from storage.txn.coordinator import Coordinator

        return Coordinator(_participant)

    @cached_property
    def reaper(self) -> Reaper:
        """The reaper, which runs before every write of this process."""
        from storage.txn.reaper import Reaper

        return Reaper(self.coordinator, lambda: self.connection.identity)

    @cached_property
    def force(self) -> Force:
        """The means by which a hard limit of this process's writes ends transactions."""
        from storage.subscription.hard_trimming import TxnEnds
        from storage.subscription.trimming import Force

        return Force(TxnEnds(self.coordinator, lambda: self.connection.identity))

    @cached_property
    def topic_upkeep(self) -> Upkeep:
        """The upkeep of topics, which holds them to their limits on the way of this process's writes."""
        from storage.subscription.topic_upkeep import Upkeep

        return Upkeep(self.force)

    @cached_property
    def compactor(self) -> Compactor:
        """The compactor, which compacts topics beyond their threshold on the way of this process's writes."""
        from storage.txn.compaction import Compactor

        return Compactor()

    def upkeep(self, batch: WriteBatch, is_due: bool) -> int:
        """At the begin of a write: end due transactions, trim and compact topics; return when it is due again."""
        due_ns = self.reaper.reap_some(batch, is_due)
        if not is_due or not self._may_remove(batch):
            return due_ns
        has_more = False
        if batch.has_records(COMPACTIONS) and not self._writer.uses_reserve:
            has_more = self.compactor.compact_some(batch)
        if batch.has_records(PURGES):
            has_more |= self._purge_some(batch)
        if retention.are_set(batch):
            has_more |= self.topic_upkeep.keep_some(batch, TRIM_TOPICS_LOOKED_AT)
        return batch.now_ns if has_more else due_ns

    def _make_room(self, batch: WriteBatch, topic_id: int) -> bool:
        return self.topic_upkeep.make_room(batch, topic_id)

    def _purge_some(self, batch: WriteBatch) -> bool:
        from storage.subscription import subscription_purge

        return subscription_purge.step(batch)

    def _may_remove(self, batch: WriteBatch) -> bool:
        from storage.txn.reaper import EVERY

        return batch.naming != EVERY and self._writer.trims_on_the_way

    def end_owned(self, batch: WriteBatch, lease: int) -> None:
        """Within a batch, end the transactions of a lease whose process is dead."""
        from storage.txn import reaper

        reaper.end_owned(batch, self.coordinator, lease, self.connection.identity)


@cache
def _participant(kind: int) -> Participant:
    """The participant for a kind of transaction part. Loaded on use: few commands need all three."""
    if kind == PART_TOPIC:
        from storage.txn.uncommitted_entries import UncommittedEntries

        return UncommittedEntries()
    if kind == PART_SUBSCRIPTION:
        from storage.subscription.pending_decision import PendingAcks

        return PendingAcks()
    from storage.table.intent import TableIntents

    return TableIntents()
