"""`txnctl pipeline offload`: closed ledgers of a topic as Parquet files."""

from __future__ import annotations

from txnctl.cli.decorators import argument, effect, example, option, output, reads_store
from txnctl.cli.value_types import DURATION_MS, TOPIC
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size
from txnctl.pipelines.offload_report import OffloadReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from txnctl.cli.context import Context
    from txnctl.output.progress import ProgressLine

OFFLOADED = fields_of(
    OffloadReport,
    {
        "topic": "The topic's full name.",
        "place": "The directory of its files.",
        "ledgers": "Ledgers that came with this run.",
        "messages": "Messages that came.",
        "bytes": Help("Bytes that came.", kind="size", heading="SIZE"),
        "all_ledgers": "Ledgers that are there now.",
        "all_messages": "Messages that are there now.",
        "all_bytes": Help("Bytes that are there now.", kind="size"),
        "files": "Files that the manifest names.",
        "through": Help("The last position that is there; null if there is none.", kind="text"),
        "undecided_ledgers": "Closed ledgers that wait for an open transaction to end.",
        "verified": "Whether all files were read again.",
        "removed_files": "Files removed that nobody needed any more.",
    },
)

_SETUP = ("txnctl topics create orders --ledger-entries 1", "printf 'one\\ntwo\\n' | txnctl produce orders")


class Counting:
    """The progress line of one count, as a context manager, begun when the job first says how much there is."""

    def __init__(self, context: Context, label: str) -> None:
        self._context = context
        self._label = label
        self._bar: ProgressLine | None = None
        self._done = 0

    def __call__(self, done: int, total: int) -> None:
        """So many of so many messages."""
        if self._bar is None:
            self._bar = self._context.progress(self._label, total=total)
        self._bar.advance(done - self._done)
        self._done = done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)


@argument("topic", type=TOPIC, help="The topic.")
@argument("destination", metavar="DEST", help="A directory, or a URI such as s3://bucket/directory.")
@option("--verify", is_flag=True, help="Read all files again, and compare them with the manifest.")
@option(
    "--keep",
    type=DURATION_MS,
    default=24 * 3_600_000,
    help="Leave files alone that nobody needs any more while they are younger; running queries may read them. "
    "[default: 24h]",
)
@reads_store
@effect("writes")
@output(OFFLOADED, name_field="place")
@example("txnctl pipeline offload orders offloaded", setup=_SETUP)
@example("txnctl pipeline offload orders offloaded --verify", setup=_SETUP)
def offload(context: Context, topic: str, destination: str, verify: bool, keep: int) -> None:
    """Write the closed ledgers of a topic to Parquet files.

    Clusters read the files in place of the store, which only the local machine can open: --offload-path of the jobs,
    and the option offloadPath of format("txnctl"). A ledger is offloaded once closed, when every transaction inside
    has ended. DEST may be on any file system that PyArrow reaches. Needs neither Java nor Spark.

    Changes nothing in the store, may run at any time, several at once too, and continues after the last run: a
    manifest names the files that are complete.
    """
    from txnctl.spark.runtime import requirements

    requirements.require_package("pyarrow")
    from txnctl.pipelines import offload as job

    options = job.OffloadOptions(destination, verify, retain_ms=keep)
    with Counting(context, "Offload") as offloaded, Counting(context, "Verify") as verified:
        report = job.offload_topic(context.store, topic, options, offloaded, verified)
    context.show(report, table=_offloaded)


def _offloaded(report: OffloadReport) -> Iterator[str]:
    if report.ledgers:
        came = f"{plural(report.ledgers, 'ledger')} with {plural(report.messages, 'message')}"
        yield f"Offloaded {came} ({size(report.bytes)}) to {report.place}."
    else:
        yield f"No closed ledger that is not in {report.place}."
    if report.through is not None:
        total = f"{plural(report.all_ledgers, 'ledger')} with {plural(report.all_messages, 'message')}"
        files = f"{plural(report.files, 'file')} ({size(report.all_bytes)})"
        yield f"There now: {total} in {files}, up to {report.through}."
    if report.verified:
        yield "Every file is as it was written."
    if report.undecided_ledgers:
        yield f"{plural(report.undecided_ledgers, 'closed ledger')} more, once the open transactions have ended."
