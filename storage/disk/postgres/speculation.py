"""A batch before the gate: made on the last commit as this process knows the commit, and stored in one round trip.

A process that alone writes to a store knows every record of the last commit that the next batch needs. The batch is
made without the gate. The function `apply` takes the gate, compares the number of the last commit, and stores the
changes, or refuses the batch because a further commit came first; then the batch is made again inside the gate. So
every batch is made on the commit just before, either way.

Recorded reads and issued timestamps come without a commit. Both are counted, and `apply` compares the count too.
"""

from __future__ import annotations

from storage.disk.postgres.floors import superblock_of
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.session import Session
from storage.disk.postgres.snapshot import Snapshot
from storage.disk.superblock import Superblock


class Speculation:
    """The last commit of the store, as this process knows the commit.

    Attributes:
        number: the number of the commit.
    """

    __slots__ = ("_bytes", "_session", "number")

    def __init__(self, session: Session, number: int, superblock: bytes) -> None:
        """Args:
        superblock: the stored superblock of the commit, sealed, with the floor behind it.
        """
        self._session = session
        self.number = number
        self._bytes = superblock

    def snapshot(self, reads: KeptReads, number: int) -> Snapshot:
        """The state of the store, unless a further commit has come."""
        return Snapshot(self._session, number, self._bytes, reads, is_proven=False)

    def superblock(self) -> Superblock:
        return superblock_of(self._bytes)
