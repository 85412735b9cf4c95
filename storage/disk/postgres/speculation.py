"""A batch before the gate: made on the last commit as this process knows the commit, and stored in one round trip.

A process that alone writes to a store knows every record of the last commit that the next batch needs. The batch is
made without the gate. The function `apply` takes the gate, compares the number of the last commit, and stores the
changes, or refuses the batch because a further commit came first; then the batch is made again inside the gate. So
every batch is made on the commit just before, either way.

Its reads are not those of one moment: a commit between two of them shows half. So what a batch without changes has
found, and each error of a batch, counts only if no further commit had come after the last read.

Recorded reads and issued timestamps come without a commit. Both are counted, and `apply` compares the count too.
"""

from __future__ import annotations

from storage.disk.codec import decoded, unseal
from storage.disk.postgres.binary import as_int
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.layout import LAST
from storage.disk.postgres.session import Session
from storage.disk.postgres.snapshot import Snapshot
from storage.disk.schema import HEADS
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY


class Speculation:
    """The last commit of the store, as this process knows the commit.

    Attributes:
        number: the number of the commit.
        is_stored: whether the batch is the next commit.
    """

    __slots__ = ("_bytes", "_session", "is_stored", "number")

    def __init__(self, session: Session, number: int, superblock: bytes) -> None:
        """Args:
        superblock: the stored superblock of the commit, sealed.
        """
        self._session = session
        self.number = number
        self.is_stored = False
        self._bytes = superblock

    def snapshot(self, reads: KeptReads, number: int) -> Snapshot:
        """The state of the store, unless a further commit has come."""
        return Snapshot(self._session, number, self._bytes, reads)

    def is_overtaken(self) -> bool:
        """Whether a further commit has come, so that reads of before may be halves of two states.

        Raises:
            ServerLost
        """
        (rows,) = self._session.run_steps(((LAST, ()),))
        return not rows or as_int(rows[0][0]) != self.number

    def superblock(self) -> Superblock:
        return decoded(HEADS, SUPERBLOCK_KEY, unseal(HEADS, SUPERBLOCK_KEY, self._bytes), Superblock.decode)
