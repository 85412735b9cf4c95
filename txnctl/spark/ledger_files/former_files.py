"""Former files: offloaded by an earlier incarnation of a restored store, of ledgers that both incarnations share.

A restored store has a new identity, and so a new directory. Ledgers that were trimmed before the backup have files
in the directory of the earlier incarnation alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from txnctl.spark.ledger_files.directory import TopicDirectory
from txnctl.spark.ledger_files.manifest import LedgerFile, TopicIdentity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import Store
    from storage.reports.extents import Extent
    from txnctl.spark.ledger_files.root import Root


class PlacedFile(NamedTuple):
    """A file of offloaded ledgers, and the directory of the file.

    Attributes:
        file: with the ledgers that may be read; statistics describe the whole file.
        is_part: whether the file has further ledgers.
    """

    directory: TopicDirectory
    file: LedgerFile
    is_part: bool = False


def former_files(store: Store, extent: Extent, root: Root) -> list[PlacedFile]:
    """Find the files of trimmed ledgers in the directories of earlier incarnations, the latest incarnation first.

    Raises:
        OffloadInvalid, UnknownFormat
    """
    placed = []
    for ancestor in store.reports.topic_descent(extent.topic) if extent.is_trimmed else ():
        directory = TopicDirectory(root, TopicIdentity(ancestor.identity, extent.topic_id, extent.topic))
        stop = min(ancestor.first_own, extent.before.ledger_id)
        for file in directory.manifest()[1].files:
            shared = tuple(ledger for ledger in file.ledgers if ledger.ledger_id < stop)
            if shared:
                is_part = len(shared) < len(file.ledgers)
                placed.append(PlacedFile(directory, replace(file, ledgers=shared), is_part))
    return placed


def placed_files(
    store: Store, extent: Extent, directory: TopicDirectory, own: Sequence[LedgerFile]
) -> list[PlacedFile]:
    """The files of a topic in the order of their ledgers: the store's own files, and former files with further ledgers.

    Args:
        directory: of the store's own files.

    Raises:
        OffloadInvalid, UnknownFormat
    """
    files = [PlacedFile(directory, file) for file in own]
    known = {ledger.ledger_id for file in own for ledger in file.ledgers}
    for placed in former_files(store, extent, directory.root):
        ledgers = {ledger.ledger_id for ledger in placed.file.ledgers}
        if not ledgers <= known:
            files.append(placed)
            known |= ledgers
    return sorted(files, key=lambda placed: placed.file.after)
