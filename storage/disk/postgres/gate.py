"""The writer gate of a store on a server: an advisory lock, held until the end of a transaction of the server.

The server queues waiting sessions in order of arrival, and frees the lock at the end of the transaction or session. A
client that is stopped inside the gate is ended by the server after `GATE_IDLE_S`
(`idle_in_transaction_session_timeout`), before writers with the default lock timeout give up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from storage.disk.postgres.binary import as_int
from storage.disk.postgres.floors import superblock_of
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.layout import LOCK_GATE, OPEN
from storage.disk.postgres.session import BEGIN, ROLLBACK, OnSlow, Row, Session, Statement, Step
from storage.disk.postgres.snapshot import Snapshot
from storage.disk.superblock import Superblock
from storage.errors import CorruptStore, WriterBusy
from storage.limits import LOCK_TIMEOUT_S
from storage.process.writer_gate import OnWait

if TYPE_CHECKING:
    from storage.disk.environment import HolderProcess
    from storage.disk.postgres.environment import PostgresEnvironment

GATE_IDLE_S: Final = LOCK_TIMEOUT_S - 1
"""How long a client inside the gate may be silent. Batches take a tenth of a second."""
KEEP_IDLE_SHORT: Final[Statement] = (
    b"keep_idle_short", f"SET idle_in_transaction_session_timeout = {int(GATE_IDLE_S * 1000)}".encode()
)  # fmt: skip


class GatePass:
    """One pass of the gate, by one thread.

    Attributes:
        number: the number of the last commit.
        server_us: the server's clock, in microseconds.
        reads: the state of the read cache, for `ReadTables.enter`.
        is_open: whether the transaction has not ended.
    """

    __slots__ = ("_bytes", "_session", "is_open", "number", "reads", "server_us")

    def __init__(self, session: Session, opened: Row) -> None:
        self._session = session
        self.number = as_int(opened[0])
        self._bytes = cast("bytes", opened[1])
        self.server_us, self.reads = as_int(opened[2]), opened[3:]
        self.is_open = True

    def snapshot(self, reads: KeptReads, number: int | None = None) -> Snapshot:
        """The state of the store inside the gate, for a batch that becomes commit `number`, or for a look."""
        return Snapshot(self._session, self.number if number is None else number, self._bytes, reads)

    def superblock(self) -> Superblock:
        return superblock_of(self._bytes)

    def leave(self) -> None:
        """Roll an open transaction back."""
        if self.is_open and self._session.failed is None:
            self.is_open = False
            self._session.post(((ROLLBACK, ()),))


class GateWait:
    """A wait for the gate: the time limit, and the callback for a long wait.

    Attributes:
        timeout_s: how long to wait.
    """

    __slots__ = ("_on_wait", "timeout_s")

    def __init__(self, timeout_s: float, on_wait: OnWait | None) -> None:
        self._on_wait = on_wait
        self.timeout_s = timeout_s

    @property
    def on_slow(self) -> OnSlow | None:
        """Called after a second of waiting; None where nobody wants to hear of the wait."""
        return None if self._on_wait is None else self._note

    def _note(self, waited_s: float, holder: HolderProcess | None) -> None:
        """Name the holder; there is none while this process waits for a standby."""
        if self._on_wait is not None and holder is not None:
            self._on_wait(holder.holder, waited_s)

    def busy_here(self) -> WriterBusy:
        """The error for a batch of a second thread of this process that did not end in time."""
        return WriterBusy(
            f"another thread of this process held the writer gate for {self.timeout_s:g} s", hint="Try again."
        )


def enter(environment: PostgresEnvironment, session: Session, wait: GateWait) -> GatePass:
    """Enter the gate, waiting if need be; an interrupt (Ctrl-C) ends the wait.

    Raises:
        WriterBusy: the gate was not free in time.
        CorruptStore, ServerLost
    """
    steps: Sequence[Step] = ((BEGIN, ()), (LOCK_GATE, (environment.lock_class,)), (OPEN, ()))
    try:
        rows = session.run_steps(steps, timeout_s=wait.timeout_s, on_slow=wait.on_slow, may_cancel=True)[2]
    except BaseException:
        if session.failed is None:
            session.post(((ROLLBACK, ()),))
        raise
    if not rows:
        raise CorruptStore(f"{environment.path} has no commit any more", hint="Restore a backup.")
    return GatePass(session, rows[0])
