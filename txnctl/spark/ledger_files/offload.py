"""Offloading: closed, decided ledgers of a topic become Parquet files that a manifest names.

A ledger's file is written first and counts once the manifest names it, so that whoever is killed on the way leaves
nothing but a file that is collected later, and the next one goes on where he stopped. Everybody who offloads runs on
the store's host: a kernel lock on its directory lets one after the other replace the manifest. Two that offload the
same ledger at once both write it; the second finds it named and removes its own.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from storage import Store
from storage.errors import OffloadInvalid, TopicNotFound
from txnctl.spark.ledger_files.directory import TopicDirectory
from txnctl.spark.ledger_files.layout import LEDGERS, token
from txnctl.spark.ledger_files.manifest import LedgerFile, Manifest, OffloadedLedger, Span, TopicIdentity
from txnctl.spark.ledger_files.range_export import export
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from storage.reports.extents import Extent
    from storage.topic.log import LedgerInfo

FILE_BYTES = 256 * 1024 * 1024
"""Neighbouring small ledgers share a file up to this size in the store; a ledger is never split."""

Progress = Callable[[int, int], None]
"""Told how many messages are written, of how many."""


class Offloaded(NamedTuple):
    """A topic after offloading.

    Attributes:
        added: the files that came.
        undecided: closed ledgers that have to wait for an open transaction.
    """

    directory: TopicDirectory
    manifest: Manifest
    added: list[LedgerFile]
    undecided: int


def sealed(extent: Extent) -> list[LedgerInfo]:
    """The ledgers of which nothing will ever change: closed, and every transaction in them decided."""
    return [
        each
        for each in extent.ledgers
        if each.closed_ms is not None and (each.ledger_id, each.entries - 1) <= extent.max_read
    ]


def offload(
    store: Store, topic: str, root: Root, within: Span | None = None, progress: Progress | None = None
) -> Offloaded:
    """Offload the sealed ledgers of a topic that are not yet.

    Args:
        within: only ledgers with an entry after the first position, up to and including the second.

    Raises:
        TopicNotFound, InvalidName, InvalidValue, OffloadInvalid, UnknownFormat
    """
    extent = store.reports.topic_extents([topic])[0]
    directory = TopicDirectory(root, TopicIdentity(store.identity, extent.topic_id, extent.topic))
    _, manifest = directory.manifest()
    check_same_store(extent, manifest, directory)
    known = manifest.ledgers
    wanted = [each for each in sealed(extent) if each.ledger_id not in known and _touches(each, within)]
    done, total = 0, sum(each.messages for each in wanted)

    def advance(messages: int) -> None:
        nonlocal done
        done += messages
        if progress is not None:
            progress(done, total)

    if wanted:
        directory.make()
    added = []
    for ledgers in grouped(wanted):
        file = _written(store, directory, ledgers, advance)
        manifest, is_named = _named(store, directory, file)
        added += [file] if is_named else []
    undecided = sum(each.closed_ms is not None for each in extent.ledgers) - len(sealed(extent))
    return Offloaded(directory, manifest, added, undecided)


def _touches(ledger: LedgerInfo, within: Span | None) -> bool:
    return within is None or (
        (ledger.ledger_id, ledger.entries - 1) > within[0] and (ledger.ledger_id, -1) < within[1]
    )


def check_same_store(extent: Extent, manifest: Manifest, directory: TopicDirectory) -> None:
    """A copy of a store that both went on writing would mix its ledgers with those of the other.

    Raises:
        OffloadInvalid: a ledger that was offloaded is another one in this store.
    """
    known = manifest.ledgers
    for each in extent.ledgers:
        if known.get(each.ledger_id, OffloadedLedger.of(each)) != OffloadedLedger.of(each):
            raise OffloadInvalid(
                f"ledger {each.ledger_id} of {extent.topic} is not the one in {directory.where()}: two copies of a "
                "store have both been written to",
                hint="Offload this one to another place. `txnctl store restore` makes copies that are told apart.",
                ledger=each.ledger_id,
            )


def grouped(ledgers: list[LedgerInfo]) -> Iterator[list[LedgerInfo]]:
    """Neighbouring ledgers, as many as make a file."""
    group: list[LedgerInfo] = []
    room = FILE_BYTES
    for each in ledgers:
        if group and (each.ledger_id != group[-1].ledger_id + 1 or each.bytes > room):
            yield group
            group, room = [], FILE_BYTES
        group.append(each)
        room -= each.bytes
    if group:
        yield group


def _written(
    store: Store, directory: TopicDirectory, ledgers: list[LedgerInfo], progress: Callable[[int], None]
) -> LedgerFile:
    """The file of some ledgers, which nothing names yet."""
    topic = directory.identity.topic
    first, last = ledgers[0].ledger_id, ledgers[-1].ledger_id
    name = f"{first}-{last}-{token()}.parquet"
    with directory.writing(LEDGERS, name) as sink:
        content = export(
            store, topic, ((first, -1), (last, ledgers[-1].entries - 1)), sink, progress=progress
        )
        if content.rows != sum(each.messages for each in ledgers):
            raise TopicNotFound(f"{topic} was deleted while its ledgers {first} to {last} were offloaded")
    return LedgerFile(name, content, tuple(map(OffloadedLedger.of, ledgers)))


def _named(store: Store, directory: TopicDirectory, file: LedgerFile) -> tuple[Manifest, bool]:
    """The manifest that names these ledgers, and whether in this file; if not, the file is removed.

    Raises:
        OffloadInvalid: the file was collected before it was named.
    """
    with one_at_a_time(store):
        number, before = directory.manifest()
        manifest = before.with_file(file)
        if manifest is not before:
            # Whoever collects holds the lock too: what is there now stays, once it is named.
            directory.open(LEDGERS, file.name).close()
            directory.publish(number + 1, manifest)
            return manifest, True
    directory.remove(LEDGERS, file.name)
    return manifest, False


@contextmanager
def one_at_a_time(store: Store) -> Iterator[None]:
    """Hold the kernel lock on the store's directory, which ends with the process whatever happens."""
    descriptor = os.open(store.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
