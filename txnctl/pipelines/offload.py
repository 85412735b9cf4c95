"""The offload job: offload new ledgers of a topic, verify all files if requested, remove files no longer needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.process.clock import SYSTEM_CLOCK
from storage.values.position import Position
from txnctl.pipelines.offload_report import OffloadReport
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.offload import OffloadProgress, manifest_lock, offload
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from storage import Store


@dataclass(frozen=True)
class OffloadOptions:
    """The options of an offload.

    Attributes:
        destination: a path, or a URI of any file system that `pyarrow.fs` reaches.
        verify: read all files again, those of earlier runs included.
        retain_ms: unneeded files are removed when older than this.
    """

    destination: str
    verify: bool
    retain_ms: int


def offload_topic(
    store: Store,
    topic: str,
    options: OffloadOptions,
    on_offloaded: OffloadProgress | None = None,
    on_verified: OffloadProgress | None = None,
) -> OffloadReport:
    """Offload a topic.

    Args:
        on_offloaded, on_verified: called with the number of messages done, and the number of all messages.

    Raises:
        TopicNotFound, InvalidName, InvalidValue, OffloadInvalid, UnknownFormat
    """
    root = Root.of_path(options.destination)
    directory, manifest, added, undecided = offload(store, topic, root, progress=on_offloaded)
    if options.verify:
        upkeep.verify(directory, manifest, on_verified)
    with manifest_lock(store):
        # A concurrent run may have published a newer manifest, whose files are needed too.
        _, named = directory.manifest()
        removed = upkeep.collect(directory, named, SYSTEM_CLOCK.wall_ms() - options.retain_ms)
    return OffloadReport(
        topic=manifest.identity.topic,
        place=directory.where(),
        ledgers=sum(len(file.ledgers) for file in added),
        messages=sum(file.content.rows for file in added),
        bytes=sum(file.content.size for file in added),
        all_ledgers=sum(len(file.ledgers) for file in manifest.files),
        all_messages=sum(file.content.rows for file in manifest.files),
        all_bytes=sum(file.content.size for file in manifest.files),
        files=len(manifest.files),
        through=Position(*manifest.files[-1].last) if manifest.files else None,
        undecided_ledgers=undecided,
        verified=options.verify,
        removed_files=removed,
    )
