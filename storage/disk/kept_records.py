"""Kept records: the superblock, states and cursors of the last commit, decoded, for the next batch of the process.

Every commit of a topic reads, checks and decodes the few records that the commit before has encoded. A committed batch
leaves them here instead. The next batch takes them if no commit of any process came in between, which the numbers of
LMDB's transactions tell. A batch that comes to nothing may have changed the objects, so it leaves none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from storage.disk.schema import CURSORS, HEADS, Database

if TYPE_CHECKING:
    from storage.disk.superblock import Superblock
    from storage.disk.view import OpenRecord

Records = dict[tuple[Database, bytes], "tuple[OpenRecord, memoryview | bytes | None]"]
"""Open records by database and key, each with the payload that is stored, or None."""

_KEPT: Final = (HEADS, CURSORS)
_RECORDS_MAX: Final = 64


class KeptRecords:
    """See the module.

    Attributes:
        superblock: as committed.
        records: records as committed, at most 64.
    """

    __slots__ = ("_environment", "_number", "records", "superblock")

    def __init__(self, environment: Any, number: int, superblock: Superblock, records: Records) -> None:
        """Args:
        environment, number: LMDB's environment, and the number of the committed transaction in it.
        """
        self._environment = environment
        self._number = number
        self.superblock = superblock
        kept = {name: records[name] for name in records if name[0] in _KEPT and records[name][1]}
        self.records: Records = kept if len(kept) <= _RECORDS_MAX else {}

    def precede(self, environment: Any, number: int) -> bool:
        """Whether the transaction of LMDB of this number is the next after the commit."""
        return number == self._number + 1 and environment is self._environment
