"""Trimming of offloaded ledgers: which ledgers of a topic may leave the store, as sound files hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from storage.admin.topics import OffloadedLedgers
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.directory import TopicDirectory
from txnctl.spark.ledger_files.manifest import TopicIdentity
from txnctl.spark.ledger_files.offload import check_same_store, sealed
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from storage import Store


def verified_ledgers(
    store: Store, topic: str, path: str, progress: Callable[[int, int], None] | None = None
) -> OffloadedLedgers:
    """Find the ledgers at the front of a topic that were offloaded and that nothing holds, and read their files again.

    Args:
        path: the root of the files, as in the option offloadPath.
        progress: called with the number of verified messages, and the number of all messages.

    Raises:
        TopicNotFound, InvalidName, InvalidValue, UnknownFormat
        OffloadInvalid: the root or a file is missing or damaged, or the files are of a copy of the store.
    """
    (extent,) = store.reports.topic_extents([topic])
    root = Root.of_path(path)
    root.check_exists()
    directory = TopicDirectory(root, TopicIdentity(store.identity, extent.topic_id, extent.topic))
    _, manifest = directory.manifest()
    check_same_store(extent, manifest, directory)
    stop = extent.before.ledger_id
    for ledger in sealed(extent):
        if ledger.ledger_id not in manifest.ledgers:
            break
        stop = ledger.ledger_id + 1
    place = directory.where()
    trial = store.admin.topics.trim_topic(topic, offloaded=OffloadedLedgers(stop, place), dry_run=True)
    stop = trial.effects.first_position.ledger_id
    needed = [
        file
        for file in manifest.files
        if any(extent.before.ledger_id <= ledger.ledger_id < stop for ledger in file.ledgers)
    ]
    upkeep.verify(directory, replace(manifest, files=tuple(needed)), progress)
    return OffloadedLedgers(stop, place)
