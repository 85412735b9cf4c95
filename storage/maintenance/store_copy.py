"""Copy a store into a new one, record by record: between directories and servers, each way.

The records of one view of the source are written in key order, beside the records of an interrupted run, so that only
different records are written. Then both are compared as read; the copy becomes a new incarnation, is
verified, and at the very end gets its name (docs/decisions/0077-copy-by-record.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage import audit_trail, faults
from storage.disk import stores
from storage.disk.schema import FORMAT_NUMBER
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.errors import CorruptStore
from storage.json_form import Flat
from storage.maintenance.record_copy import Content, copy_records
from storage.maintenance.restore import open_source
from storage.maintenance.upgrade import convert
from storage.reincarnation import Inheritance, Reincarnation, reincarnate
from storage.txn.reaper import EVERY
from storage.values.arguments import check_flags
from storage.values.durability import Durability
from storage.values.named_tuple import NamedTuple

if TYPE_CHECKING:
    from storage.maintenance.copy import Progress
    from storage.verify.problem import Progress as VerifyProgress


class CopyOptions(NamedTuple):
    """The options of a copy.

    Attributes:
        program: the name of this program as other processes see it.
        progress: called with the bytes read of both stores, and an estimate of all.
        verify_progress: called while the copy is verified.
        durability: of the copy, as `Store.create` has it.
        dry_run: build, compare and verify the copy, and then drop it.
    """

    program: str | None = None
    progress: Progress | None = None
    verify_progress: VerifyProgress | None = None
    durability: Durability | None = None
    dry_run: bool = False
    reason: str | None = None


class CopyResult(NamedTuple):
    """A finished copy.

    Attributes:
        source, path: of the original and of the copy; a URL without a password.
        format_before: the format of the source, from which the copy was upgraded on the way.
        is_resumed: whether an earlier run, which was interrupted, had begun the copy.
        written, removed: records that this run wrote, and removed because the source has them no more.
    """

    source: str
    path: str
    format_before: int
    content: Flat[Content]
    is_resumed: bool
    written: int
    removed: int
    reincarnation: Flat[Reincarnation]
    dry_run: bool


def copy_store(
    source: str,
    destination: str,
    options: CopyOptions,
    action: str = "store copy",
) -> CopyResult:
    """Make a new store at `destination` with all records of the store at `source`; each is a directory or a URL.

    The source may be in use, and is read from one view. An interrupted copy goes on in the next call.

    Args:
        action: the action that the audit trail of the copy names.

    Raises:
        AlreadyExists, StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreInUse, StoreFull, OutcomeUnknown
    """
    check_flags(dry_run=options.dry_run)
    audit_trail.check_reason(options.reason)
    with (
        open_source(source, options.program) as original,
        stores.building(destination, original.connection.clock, options.durability) as build,
    ):
        format_before = original.connection.environment.format_number
        copied = copy_records(original, build, options.progress)
        with Engine.open(build.path, program=options.program) as engine:
            incarnation = _begin_incarnation(engine, format_before, action, options.reason)
            _verify(engine, options.verify_progress)
        faults.reach("store.copy.before_install")
        if options.dry_run:
            build.discard()
        else:
            build.install()
        return CopyResult(
            original.connection.path, build.destination, format_before, copied.content, build.is_resumed,
            copied.written, copied.removed, incarnation, options.dry_run,
        )  # fmt: skip


def _begin_incarnation(engine: Engine, format_before: int, action: str, reason: str | None) -> Reincarnation:
    """Upgrade the finished build if need be, and end all that was under way in the source, in one batch."""
    with engine.connection.view() as view:
        inherited = Inheritance.load(view)

    def change(batch: WriteBatch) -> Reincarnation:
        if format_before != FORMAT_NUMBER:
            convert(batch, engine.process, format_before, reason)
        return reincarnate(batch, engine.coordinator, engine.process, inherited, action=action, reason=reason)

    return engine.connection.write(change, naming=EVERY)


def _verify(engine: Engine, progress: VerifyProgress | None) -> None:
    """Raises:
    CorruptStore: the copy breaks a rule between records, as its source does.
    """
    from storage.maintenance.maintenance import Maintenance

    problems = Maintenance(engine).verify_store(full=True, progress=progress)
    if problems:
        first = problems[0]
        raise CorruptStore(
            f"the copy has the same records as its source, and {len(problems):,} problems:"
            f" {first.object}: {first.message}",
            hint="Verify the source: nothing was put at the destination.",
        )
