"""Offloading: closed, decided ledgers of a topic become Parquet files that a manifest names.

A ledger's file is written first and counts once the manifest names it: a killed process leaves at most an unnamed file,
which is collected later, and the next run continues. Every offload runs on the store's host: a kernel lock on the
store's directory serializes updates of the manifest. Of two processes that write the same ledger, the second finds the
ledger in the manifest and removes its own file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from storage import Position, Store
from storage.errors import InvalidValue, OffloadInvalid, TopicNotFound
from txnctl.output.shell import line
from txnctl.spark.ledger_files.directory import TopicDirectory
from txnctl.spark.ledger_files.layout import LEDGERS, token
from txnctl.spark.ledger_files.manifest import LedgerFile, Manifest, OffloadedLedger, Span, TopicIdentity
from txnctl.spark.ledger_files.range_export import TopicSpan, export_range
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from storage.reports.extents import Extent
    from storage.topic.log import LedgerInfo

FILE_BYTES = 256 * 1024 * 1024
"""Neighbouring small ledgers share a file up to this size in the store; a ledger is never split."""

OffloadProgress = Callable[[int, int], None]
"""Called with the number of messages written, and the number of all messages."""


class Offloaded(NamedTuple):
    """A topic after offloading.

    Attributes:
        added: the new files.
        undecided: closed ledgers that wait for an open transaction.
    """

    directory: TopicDirectory
    manifest: Manifest
    added: list[LedgerFile]
    undecided: int


def sealed(extent: Extent) -> list[LedgerInfo]:
    """Return the immutable ledgers: closed, with every transaction in them decided."""
    return [
        ledger
        for ledger in extent.ledgers
        if ledger.closed_ms is not None and (ledger.ledger_id, ledger.entries - 1) <= extent.max_read
    ]


def offload(
    store: Store, topic: str, root: Root, within: Span | None = None, progress: OffloadProgress | None = None
) -> Offloaded:
    """Offload the sealed ledgers of a topic that no manifest names yet.

    Args:
        within: only ledgers with an entry after the first position, up to and including the second.

    Raises:
        TopicNotFound, InvalidName, InvalidValue, OffloadInvalid, UnknownFormat
    """
    check_has_directory(store)
    extent = store.reports.topic_extents([topic])[0]
    directory = TopicDirectory(root, TopicIdentity(store.identity, extent.topic_id, extent.topic))
    _, manifest = directory.manifest()
    check_same_store(extent, manifest, directory)
    known = manifest.ledgers
    pending = [
        ledger for ledger in sealed(extent) if ledger.ledger_id not in known and _touches(ledger, within)
    ]
    done, total = 0, sum(ledger.messages for ledger in pending)

    def advance(messages: int) -> None:
        nonlocal done
        done += messages
        if progress is not None:
            progress(done, total)

    if pending:
        directory.make_directories()
    added = []
    for ledgers in group_ledgers(pending):
        file = _write_ledgers(store, directory, ledgers, advance)
        manifest, is_named = _name_in_manifest(store, directory, file)
        added += [file] if is_named else []
    undecided = sum(ledger.closed_ms is not None for ledger in extent.ledgers) - len(sealed(extent))
    return Offloaded(directory, manifest, added, undecided)


def _touches(ledger: LedgerInfo, within: Span | None) -> bool:
    return within is None or (
        (ledger.ledger_id, ledger.entries - 1) > within[0] and (ledger.ledger_id, -1) < within[1]
    )


def check_same_store(extent: Extent, manifest: Manifest, directory: TopicDirectory) -> None:
    """Check that this store is the one in the manifest: two copies of a store that diverged must not mix ledgers.

    Raises:
        OffloadInvalid: an offloaded ledger differs from the ledger of the same id in this store.
    """
    known = manifest.ledgers
    for ledger in extent.ledgers:
        if known.get(ledger.ledger_id, OffloadedLedger.of(ledger)) != OffloadedLedger.of(ledger):
            raise OffloadInvalid(
                f"ledger {ledger.ledger_id} of {extent.topic} differs from the one in {directory.where()}: "
                "two copies of a store have both been written to",
                hint=f"Offload this store to another directory. `{line('store restore', 'SRC', to='COPY')}` gives a "
                "copy an identity of its own.",
                ledger=ledger.ledger_id,
            )


def group_ledgers(ledgers: list[LedgerInfo]) -> Iterator[list[LedgerInfo]]:
    """Group neighbouring ledgers into files of at most `FILE_BYTES`."""
    group: list[LedgerInfo] = []
    room = FILE_BYTES
    for ledger in ledgers:
        if group and (ledger.ledger_id != group[-1].ledger_id + 1 or ledger.bytes > room):
            yield group
            group, room = [], FILE_BYTES
        group.append(ledger)
        room -= ledger.bytes
    if group:
        yield group


def _write_ledgers(
    store: Store, directory: TopicDirectory, ledgers: list[LedgerInfo], progress: Callable[[int], None]
) -> LedgerFile:
    """Write the file of some ledgers, not named by a manifest yet."""
    topic = directory.identity.topic
    first, last = ledgers[0].ledger_id, ledgers[-1].ledger_id
    name = f"{first}-{last}-{token()}.parquet"
    with directory.writing(LEDGERS, name) as sink:
        whole_ledgers = TopicSpan(topic, (Position(first, -1), Position(last, ledgers[-1].entries - 1)))
        content = export_range(store, whole_ledgers, sink, progress)
        if content.rows != sum(ledger.messages for ledger in ledgers):
            raise TopicNotFound(f"{topic} was deleted while its ledgers {first} to {last} were offloaded")
    return LedgerFile(name, content, tuple(map(OffloadedLedger.of, ledgers)))


def _name_in_manifest(store: Store, directory: TopicDirectory, file: LedgerFile) -> tuple[Manifest, bool]:
    """Publish a manifest with the file; if its ledgers are named already, remove the file and return False.

    Raises:
        OffloadInvalid: the file was collected before it was named.
    """
    with manifest_lock(store):
        number, before = directory.manifest()
        manifest = before.with_file(file)
        if manifest is not before:
            # Collection holds the lock too: a file present now stays once a manifest names it.
            directory.open_file(LEDGERS, file.name).close()
            directory.publish(number + 1, manifest)
            return manifest, True
    directory.remove(LEDGERS, file.name)
    return manifest, False


def check_has_directory(store: Store) -> None:
    """Raises:
    InvalidValue: the store is on a server.
    """
    if not store.connection.environment.has_directory:
        raise InvalidValue(
            f"ledgers are offloaded from a store in a directory, and {store.path} is on a server",
            hint="Jobs on every host read from the server itself.",
        )


@contextmanager
def manifest_lock(store: Store) -> Iterator[None]:
    """Hold the kernel lock on the store's directory, which is released with the process.

    Raises:
        InvalidValue: the store is on a server, and has no directory.
    """
    check_has_directory(store)
    descriptor = os.open(store.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
