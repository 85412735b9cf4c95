"""Looking after offloaded ledgers: see that the files are those that were written, and remove what nothing names."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable

import pyarrow.parquet as pq
from pyarrow import fs

from storage.errors import OffloadInvalid
from txnctl.spark.ledger_files.directory import Directory, TopicDirectory
from txnctl.spark.ledger_files.layout import (
    LEDGERS,
    MANIFESTS,
    RANGES,
    SNAPSHOTS,
    TOPIC_DIRECTORIES,
    RangeFile,
)
from txnctl.spark.ledger_files.manifest import LedgerFile, Manifest, cover

KEEP_MS = 24 * 3600 * 1000
"""For so long files that nobody needs any more are left alone: a running query may read them."""

_PIECE_BYTES = 1 << 20


def verify(
    directory: TopicDirectory, manifest: Manifest, progress: Callable[[int, int], None] | None = None
) -> None:
    """Read all files of a manifest again: their bytes, and how many messages of each ledger are in them.

    Args:
        progress: told how many messages are verified, of how many.

    Raises:
        OffloadInvalid: a file is missing, or is not what was written.
    """
    done, total = 0, sum(file.content.rows for file in manifest.files)
    for file in manifest.files:
        problem = _problem(directory, file)
        if problem:
            raise OffloadInvalid(
                f"{directory.where(LEDGERS, file.name)} {problem}",
                hint=f"Remove {directory.where()} and offload the topic again, from the store or a backup of it.",
                file=file.name,
            )
        done += file.content.rows
        if progress is not None:
            progress(done, total)


def _problem(directory: TopicDirectory, file: LedgerFile) -> str | None:
    """What is wrong with a file, in words; None if nothing is."""
    with directory.open(LEDGERS, file.name) as source:
        digest = hashlib.sha256()
        while piece := source.read(_PIECE_BYTES):
            digest.update(piece)
        if (source.tell(), digest.hexdigest()) != (file.content.size, file.content.sha256):
            return "is not the file that was written: its checksum does not agree"
        source.seek(0)
        messages: Counter[int] = Counter()
        aborted = 0
        for batch in pq.ParquetFile(source).iter_batches(columns=["ledgerId", "txnState"]):
            for ledger_id, count in (each.values() for each in batch["ledgerId"].value_counts().to_pylist()):
                messages[ledger_id] += count
            states = batch["txnState"].value_counts().to_pylist()
            aborted += sum(each["counts"] for each in states if each["values"] == "ABORTED")
    wanted = {ledger.ledger_id: ledger.messages for ledger in file.ledgers if ledger.messages}
    if messages != wanted or aborted != file.content.aborted:
        return "holds other messages than the manifest says"
    return None


def collect(directory: TopicDirectory, manifest: Manifest, before_ms: int) -> int:
    """Remove files last written before a moment that nobody needs any more; how many.

    Those are ledgers no manifest names (somebody was killed), ranges whose ledgers were all offloaded before that
    moment, so that no plan since has chosen them, and what was exported for one plan alone.
    """
    ledgers = directory.names(LEDGERS)
    settled = [
        each for each in manifest.files if each.name in ledgers and _is_older(ledgers[each.name], before_ms)
    ]
    named = {file.name for file in manifest.files}
    removed = 0
    for kind in TOPIC_DIRECTORIES:
        files = directory.names(kind)
        kept = {LEDGERS: named, MANIFESTS: {max(files, default="")}}.get(kind, set())
        for name, info in files.items():
            is_needed = name in kept or (kind == RANGES and not _is_held(name, settled))
            if _is_older(info, before_ms) and not is_needed:
                directory.remove(kind, name)
                removed += 1
    return removed


def collect_snapshots(directory: Directory, before_ms: int) -> None:
    """Remove what was written before a moment for reads of a table."""
    for name, info in directory.names(SNAPSHOTS).items():
        if _is_older(info, before_ms):
            directory.remove(SNAPSHOTS, name)


def _is_older(info: fs.FileInfo, than_ms: int) -> bool:
    return info.mtime_ns is not None and info.mtime_ns // 1_000_000 < than_ms


def _is_held(name: str, files: list[LedgerFile]) -> bool:
    """Whether these files hold all entries of a range."""
    found = RangeFile.parse(name)
    return found is not None and all(file for file, _ in cover(found.after, found.through, files))
