"""Upkeep of offloaded ledgers: verify files against the manifest, and remove files that nothing names."""

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

RETAIN_MS = 24 * 3600 * 1000
"""Retention of unneeded files, for running queries that read old files."""

_READ_BYTES = 1 << 20


def verify(
    directory: TopicDirectory, manifest: Manifest, report_progress: Callable[[int, int], None] | None = None
) -> None:
    """Read all files of a manifest again, and check checksums and the number of messages of each ledger.

    Args:
        report_progress: called with the number of verified messages, and the number of all messages.

    Raises:
        OffloadInvalid: a file is missing, or differs from the manifest.
    """
    done, total = 0, sum(file.content.rows for file in manifest.files)
    for file in manifest.files:
        problem = _problem(directory, file)
        if problem:
            raise OffloadInvalid(
                f"{directory.where(LEDGERS, file.name)} {problem}",
                hint="Take the file from a copy of the directory. Where the store still has every ledger, remove "
                f"{directory.where()} and offload the topic again.",
                file=file.name,
            )
        done += file.content.rows
        if report_progress is not None:
            report_progress(done, total)


def _problem(directory: TopicDirectory, file: LedgerFile) -> str | None:
    """Describe the damage of a file; None for an intact file."""
    with directory.open_file(LEDGERS, file.name) as source:
        digest = hashlib.sha256()
        while block := source.read(_READ_BYTES):
            digest.update(block)
        if (source.tell(), digest.hexdigest()) != (file.content.size, file.content.sha256):
            return "is damaged: its checksum differs from the manifest"
        source.seek(0)
        messages: Counter[int] = Counter()
        aborted = 0
        for batch in pq.ParquetFile(source).iter_batches(columns=["ledgerId", "txnState"]):
            for ledger_id, count in (
                count_of.values() for count_of in batch["ledgerId"].value_counts().to_pylist()
            ):
                messages[ledger_id] += count
            states = batch["txnState"].value_counts().to_pylist()
            aborted += sum(count_of["counts"] for count_of in states if count_of["values"] == "ABORTED")
    expected = {ledger.ledger_id: ledger.messages for ledger in file.ledgers if ledger.messages}
    if messages != expected or aborted != file.content.aborted:
        return "does not contain the messages that the manifest lists"
    return None


def collect(directory: TopicDirectory, manifest: Manifest, before_ms: int) -> int:
    """Remove unneeded files last written before a time; return how many.

    Unneeded are ledger files that no manifest names (left by a killed process), ranges whose ledgers were all offloaded
    before that time, so that no later plan has chosen them, and exports for a single plan.
    """
    ledgers = directory.files_in(LEDGERS)
    settled = [
        ledger_file
        for ledger_file in manifest.files
        if ledger_file.name in ledgers and _is_older(ledgers[ledger_file.name], before_ms)
    ]
    named = {file.name for file in manifest.files}
    removed = 0
    for kind in TOPIC_DIRECTORIES:
        files = directory.files_in(kind)
        retained = {LEDGERS: named, MANIFESTS: {max(files, default="")}}.get(kind, set())
        for name, info in files.items():
            is_needed = name in retained or (kind == RANGES and not _is_held(name, settled))
            if _is_older(info, before_ms) and not is_needed:
                directory.remove(kind, name)
                removed += 1
    return removed


def collect_snapshots(directory: Directory, before_ms: int) -> None:
    """Remove snapshots of a table written before a time."""
    for name, info in directory.files_in(SNAPSHOTS).items():
        if _is_older(info, before_ms):
            directory.remove(SNAPSHOTS, name)


def _is_older(info: fs.FileInfo, than_ms: int) -> bool:
    return info.mtime_ns is not None and info.mtime_ns // 1_000_000 < than_ms


def _is_held(name: str, files: list[LedgerFile]) -> bool:
    """Report whether these files hold all entries of a range."""
    range_file = RangeFile.parse(name)
    return range_file is not None and all(
        file for file, _ in cover(range_file.after, range_file.through, files)
    )
