"""The server of an open store, compared with the store's record, and with the commits that this process has seen.

A server that differs from the record is a promoted standby or a copy: the store begins a new incarnation there before
the first write. A process that has seen commits which the server lacks is told so, once
(docs/decisions/0081-identity-of-the-server.md).
"""

from __future__ import annotations

from storage.disk.postgres.binary import as_int
from storage.disk.postgres.floors import superblock_of
from storage.disk.postgres.layout import OPEN
from storage.disk.postgres.server_record import (
    SeenCommit,
    ServerRecord,
    StoreKey,
    commits_lost,
    forget_seen,
    note_seen,
    seen_of,
)
from storage.disk.postgres.server_state import Identity, ServerState
from storage.disk.postgres.session import Session
from storage.disk.schema import SERVER_KEY, STORE
from storage.disk.view import WriteBatch
from storage.errors import ServerUnreachable


class KnownServer:
    """See the module. Used by the thread that opens the store, and inside the writer gate.

    Attributes:
        is_moved: whether the store has to begin a new incarnation before the first write.
    """

    __slots__ = (
        "_identity",
        "_incarnation",
        "_last_seen",
        "_lost",
        "_record",
        "_seen_as",
        "_shown",
        "is_moved",
    )

    def __init__(self, shown: str, record: ServerRecord) -> None:
        """Args:
        shown: the URL of the store without a password.
        record: of the store.
        """
        self._shown = shown
        self._record = record
        self._identity: Identity = record.server
        self._seen_as: StoreKey = shown, b""
        self._incarnation = self._last_seen = 0
        self._lost: int | None = None
        self.is_moved = False

    def look(self, batches: Session, views: Session, *, read_only: bool) -> None:
        """Check the server of both sessions, for writing too unless told, and compare the server with what is known.

        Raises:
            ServerUnreachable, StoreUnsafe
            CommitsLost: the store is read only; a writer is told by `end_move`.
        """
        state = ServerState.read(batches)
        state.check_primary(self._shown)
        if not read_only:
            state.check_writable(self._shown, is_replicated=self._record.is_replicated)
        if ServerState.read(views).identity != state.identity:
            raise ServerUnreachable(
                f"{self._shown} was found on two servers at once: a failover is under way", hint="Try again."
            )
        ((opened,),) = batches.run_steps(((OPEN, ()),))
        superblock = superblock_of(opened[1] or b"")
        self._identity = state.identity
        self._seen_as = self._shown, superblock.store_id
        self._incarnation, self._last_seen = superblock.incarnation, as_int(opened[0])
        seen, now = seen_of(self._seen_as), SeenCommit(self._incarnation, self._last_seen)
        self._lost = None if seen is None else self._record.kept_of(seen, now)
        is_other = self._record.server != state.identity or self._lost is not None
        self.is_moved = is_other and not read_only
        if read_only:
            self._refuse_lost()

    def adopt(self, batch: WriteBatch) -> str | None:
        """As `Environment.adopt_server`."""
        before, now = self._record, self._identity
        incarnation = batch.superblock.incarnation
        if incarnation != self._incarnation:
            return None
        batch.put(STORE, SERVER_KEY, before.moved(now, incarnation, batch.commit - 1).encode())
        if (before.system, before.timeline) == (now.system, now.timeline):
            return f"the store was copied within its server, from {before.place or 'an early build'} to {now.place}"
        return (
            f"the server changed from {before.system}, timeline {before.timeline}, to {now.system},"
            f" timeline {now.timeline}"
        )

    def end_move(self, incarnation: int) -> None:
        """As `Environment.end_move`.

        Raises:
            CommitsLost
        """
        self._incarnation, self.is_moved = incarnation, False
        self._refuse_lost()

    def _refuse_lost(self) -> None:
        """Tell of lost commits, once."""
        kept, self._lost = self._lost, None
        seen = None if kept is None else forget_seen(self._seen_as)
        if kept is not None and seen is not None:
            raise commits_lost(self._shown, seen, kept)

    def note_commit(self, number: int) -> None:
        """Note that this process has seen a commit."""
        if number > self._last_seen:
            self._last_seen = number

    def note_seen(self) -> None:
        """Leave the highest commit seen to later handles of this process: this handle ends."""
        note_seen(self._seen_as, SeenCommit(self._incarnation, self._last_seen))
