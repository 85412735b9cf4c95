"""Copy the sealed records of a store into a build, and compare both as read.

Records go in key order of each database, in batches. The build may hold records of an interrupted run, of an earlier
view of the source: equal ones are left, so that the build always ends equal to the view that this run reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, Final

from storage import faults
from storage.disk.codec import missing, pack, seal, unpack, unseal
from storage.disk.schema import ALL, ENTRIES, FORMAT_KEY, FORMAT_NUMBER, HEADS, ROWS, STORE, Database
from storage.disk.sealed_records import Change, Record, scan
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY, ReadView
from storage.engine import Engine
from storage.errors import CorruptStore
from storage.topic.entry import HEADER, MESSAGES
from storage.values.named_tuple import NamedTuple

if TYPE_CHECKING:
    from storage.disk.sealed_records import RecordReader, StoreBuild
    from storage.maintenance.copy import Progress
    from storage.process.clock import Clock

BATCH_BYTES = 8 << 20
"""The bytes of records that are written at a time."""
_STEP_BYTES: Final = 1 << 20
_LENGTHS: Final = Struct(">HI")


class Content(NamedTuple):
    """The records of a store as read: their number and bytes, and of these the messages and the rows of tables.

    `checksum` is a digest over database, key, checksum and payload of every record, as hexadecimal text.
    """

    records: int
    bytes: int
    messages: int
    rows: int
    checksum: str


class CopiedRecords(NamedTuple):
    """The content of source and copy, and the records that this run has written and removed."""

    content: Content
    written: int
    removed: int


class ContentTally:
    """The content of one store as far as it was read, by database."""

    def __init__(self, report: Meter | None) -> None:
        self._digests = {database.name: blake2b(digest_size=16) for database in ALL}
        self._counts = dict.fromkeys(self._digests, 0)
        self._bytes = self._messages = 0
        self._report = report

    def read(self, reader: RecordReader, database: Database) -> Iterator[Record]:
        """The records of a database, counted on the way; each seal is checked.

        Raises:
            CorruptStore: the checksum of a record does not agree.
        """
        update, count, is_log = self._digests[database.name].update, 0, database is ENTRIES
        for record in scan(reader, database):
            key, value = record
            payload = unseal(database, key, value)
            update(_LENGTHS.pack(len(key), len(value)) + key + value)
            count += 1
            self._bytes += len(key) + len(value)
            if is_log:
                _, kind, _, messages, *_ = HEADER.unpack_from(payload)
                self._messages += messages if kind == MESSAGES else 0
            if self._report is not None:
                self._report.advance(len(key) + len(value))
            yield record
        self._counts[database.name] += count

    def content(self) -> Content:
        """The sum over all databases."""
        whole = blake2b(digest_size=16)
        for name, digest in self._digests.items():
            whole.update(name.encode() + b"\0" + self._counts[name].to_bytes(8, "big") + digest.digest())
        return Content(
            sum(self._counts.values()),
            self._bytes,
            self._messages,
            self._counts[ROWS.name],
            whole.hexdigest(),
        )

    def differing(self, other: ContentTally) -> list[str]:
        """The names of databases whose content differs."""
        return [
            name for name, digest in self._digests.items() if digest.digest() != other._digests[name].digest()
        ]


class Meter:
    """Reports the bytes read of both stores, of an estimated total, in steps of a megabyte."""

    def __init__(self, progress: Progress, total_bytes: int) -> None:
        self._progress = progress
        self._total = 2 * total_bytes
        self._done = self._reported = 0

    def advance(self, size: int) -> None:
        self._done += size
        if self._done - self._reported >= _STEP_BYTES:
            self._reported = self._done
            self._progress(self._done, max(self._done, self._total))


def copy_records(engine: Engine, build: StoreBuild, progress: Progress | None) -> CopiedRecords:
    """Make the build equal to one view of the store, compare both, and finish the build.

    Raises:
        CorruptStore: a record of the source is damaged, or the build does not agree with it.
        StoreFull, StoreInvalid
    """
    with engine.connection.environment.copy_view() as source:
        meter = None if progress is None else Meter(progress, source.total_bytes)
        copied = ContentTally(meter)
        batches = _Batches(build)
        for database in ALL:
            for key, value in _changes(copied.read(source, database), scan(build, database)):
                batches.gather(database, key, value)
        batches.write_gathered()
        superblock, format_record = source.view.superblock, _format_record(source.view)
    faults.reach("store.copy.before_comparison")
    built = ContentTally(meter)
    for database in ALL:
        for _ in built.read(build, database):
            pass
    if different := copied.differing(built):
        raise CorruptStore(
            f"the copy in {build.path} differs from what was read of {engine.connection.path}, in"
            f" {', '.join(different)}",
            hint="Run the same command again: records that differ are written anew.",
        )
    build.finish(_moved(superblock, engine.connection.environment.clock, build.clock), format_record)
    return CopiedRecords(built.content(), batches.written, batches.removed)


class _Batches:
    """Gathers changes, and writes them when there are enough."""

    def __init__(self, build: StoreBuild) -> None:
        self._build = build
        self._changes: list[Change] = []
        self._bytes = 0
        self.written = self.removed = 0

    def gather(self, database: Database, key: bytes, value: bytes | None) -> None:
        self._changes.append((database, key, value))
        self._bytes += len(key) + (0 if value is None else len(value))
        if value is None:
            self.removed += 1
        else:
            self.written += 1
        if self._bytes >= BATCH_BYTES:
            self.write_gathered()

    def write_gathered(self) -> None:
        if self._changes:
            self._build.write(self._changes)
            self._changes, self._bytes = [], 0
            faults.reach("store.copy.after_batch")


def _changes(source: Iterator[Record], stored: Iterator[Record]) -> Iterator[tuple[bytes, bytes | None]]:
    """The changes that make what is stored equal to the source; both are in key order."""
    at = next(stored, None)
    for key, value in source:
        while at is not None and at[0] < key:
            yield at[0], None
            at = next(stored, None)
        if at is None or at[0] != key:
            yield key, value
            continue
        if at[1] != value:
            yield key, value
        at = next(stored, None)
    while at is not None:
        yield at[0], None
        at = next(stored, None)


def _format_record(view: ReadView) -> bytes:
    """The sealed format record of the copy: the id of the store and the time of its making are the source's."""
    payload = view.get(STORE, FORMAT_KEY)
    if payload is None:
        raise missing(STORE, FORMAT_KEY)
    _, *fields = unpack(payload, 3)
    return seal(STORE, FORMAT_KEY, pack([FORMAT_NUMBER, *fields]))


def _moved(superblock: Superblock, source: Clock, clock: Clock) -> bytes:
    """The sealed superblock, with a store clock that goes on by the clock of the copy.

    What the wall clock of the source disagreed by with its store clock stays a disagreement: no message is removed
    for its age until an operator has looked.
    """
    now_ns, disagreed_ns = superblock.now_ns(source), 0
    if superblock.is_clock_running(source):
        disagreed_ns = source.wall_ns() - now_ns - superblock.wall_offset_ns
    block = Superblock.decode(memoryview(superblock.encode()))
    block.boot_id, block.last_clock_ns = clock.shared_id(), now_ns
    block.clock_offset_ns = now_ns - clock.shared_ns()
    block.wall_offset_ns = clock.wall_ns() - now_ns - disagreed_ns
    return seal(HEADS, SUPERBLOCK_KEY, block.encode())
