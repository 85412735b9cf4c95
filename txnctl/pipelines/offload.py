"""The job that offloads a topic: what is not yet, then a look at all of it, then what nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage.process.clock import SYSTEM_CLOCK
from storage.values.position import Position
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.offload import Progress, offload, one_at_a_time
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from storage import Store


def run(
    store: Store,
    topic: str,
    destination: str,
    *,
    is_verified: bool,
    keep_ms: int,
    offloaded: Progress | None = None,
    verified: Progress | None = None,
) -> dict[str, Any]:
    """Offload a topic; what came, and what there is now.

    Args:
        destination: a path, or a URI of any file system that `pyarrow.fs` reaches.
        is_verified: read all files again, those of earlier runs too.
        keep_ms: files that nobody needs any more are removed when they are older than this.
        offloaded, verified: told messages done, of how many.

    Raises:
        TopicNotFound, InvalidName, InvalidValue, OffloadInvalid, UnknownFormat
    """
    directory, manifest, added, undecided = offload(store, topic, Root.of(destination), progress=offloaded)
    if is_verified:
        upkeep.verify(directory, manifest, verified)
    with one_at_a_time(store):
        # Others may have offloaded more in the meantime, which is needed too.
        _, named = directory.manifest()
        removed = upkeep.collect(directory, named, SYSTEM_CLOCK.wall_ms() - keep_ms)
    return {
        "topic": manifest.identity.topic,
        "place": directory.where(),
        "ledgers": sum(len(file.ledgers) for file in added),
        "messages": sum(file.content.rows for file in added),
        "bytes": sum(file.content.size for file in added),
        "allLedgers": sum(len(file.ledgers) for file in manifest.files),
        "allMessages": sum(file.content.rows for file in manifest.files),
        "allBytes": sum(file.content.size for file in manifest.files),
        "files": len(manifest.files),
        "through": str(Position(*manifest.files[-1].last)) if manifest.files else None,
        "undecidedLedgers": undecided,
        "verified": is_verified,
        "removedFiles": removed,
    }
