"""The report of the offload job, apart from the job: the fields of the command are known without PyArrow."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Position


class OffloadReport(NamedTuple):
    """The files of a topic after an offload.

    Attributes:
        topic: full name.
        place: address of the directory.
        ledgers, messages, bytes: offloaded by this run.
        all_ledgers, all_messages, all_bytes, files: in the manifest now.
        through: the last offloaded position; None for an empty manifest.
        undecided_ledgers: closed ledgers that wait for an open transaction.
        verified: whether all files were read again.
        removed_files: how many unneeded files were removed.
    """

    topic: str
    place: str
    ledgers: int
    messages: int
    bytes: int
    all_ledgers: int
    all_messages: int
    all_bytes: int
    files: int
    through: Position | None
    undecided_ledgers: int
    verified: bool
    removed_files: int
