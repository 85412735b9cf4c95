"""Verify a store: every checksum, and the invariants of docs/SEMANTICS.md recomputed from the log.

    quick   structure and counters of topics, transactions and subscriptions, from their records
    full    also every page of the file, the checksum of every record, every count recomputed from the entries, and the
            contents of tables; then a sample of tables is read, and the data file compared before and after

Verification holds one view throughout: a long-lived reader keeps pages from reuse, and is listed by `store readers`.
"""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.schema import ALL, ENTRIES
from storage.disk.view import ReadView
from storage.errors import CorruptStore, PlatformUnsupported, StoreClosed, StoreInvalid, TooManyFiles
from storage.subscription import catalogue as subscriptions
from storage.system_errors import system_refusal
from storage.table import catalogue as tables
from storage.topic import catalogue as topics, state as states
from storage.verify.compaction import check_compaction
from storage.verify.log import Log, read_log
from storage.verify.ownerless import check_ownerless
from storage.verify.problem import Checked, Problem, Progress, Report
from storage.verify.producers import ProducersCheck
from storage.verify.reads import OpenTable, check_reads
from storage.verify.serial_order import check_order
from storage.verify.subscription import SubscriptionCheck
from storage.verify.tables import check_tables
from storage.verify.topic import TopicCheck
from storage.verify.transactions import check_transactions

QUICK = (1, 6, 7, 9, 10, 11, 16, 23)
FULL = (1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17, 18, 19, 20, 23)
"""The invariants that records prove; 13 is checked too, unless another process commits meanwhile."""

_READS = 13


def run(
    connection: Connection,
    open_table: OpenTable,
    *,
    full: bool = True,
    progress: Progress | None = None,
    checked: Checked | None = None,
) -> list[Problem]:
    """Return the problems of a store.

    Args:
        open_table: opens a table by name, for the sample of reads.
        checked: called at the end with the number of each invariant that was checked completely.

    Raises:
        StoreClosed
        TooManyFiles, NotPermitted, StoreFull: the system refuses a call, which is no damage.
        PlatformUnsupported, StoreInvalid: the system lacks something, or memory, which is no damage either.
    """
    problems: list[Problem] = []

    def report(invariant: int | None, label: str, message: str) -> None:
        problems.append(Problem(invariant, label, message))

    try:
        names = _check_commit(connection, report, full, progress)
        if names is None:
            return problems
        damaged = {problem.object for problem in problems}
        names = [name for name in names if f"table {name}" not in damaged]
        invariants = set(FULL if full else QUICK)
        if full and names and check_reads(connection, names, open_table, report):
            invariants.add(_READS)
        if checked is not None:
            for number in sorted(invariants):
                checked(number)
    except (StoreClosed, PlatformUnsupported, TooManyFiles):
        raise
    except CorruptStore as error:
        if not any(problem.message == error.message for problem in problems):
            report(None, str(error.details.get("database", "store")), error.message)
    except AssertionError as error:
        report(None, "store", f"an assertion of the engine does not hold: {error}")
    except (OSError, MemoryError) as error:
        _report_unreadable(connection, error, report)
    except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything; problems found so far must be returned
        report(None, "store", f"checking stopped at damaged data: {type(error).__name__}: {error}")
    return problems


def _report_unreadable(connection: Connection, error: OSError | MemoryError, report: Report) -> None:
    """Report a file that the disk does not give; raise what the system refuses for a reason that is no damage."""
    if isinstance(error, MemoryError):
        raise StoreInvalid(
            f"{connection.path} cannot be checked: the process has no memory left",
            hint="Give the process more memory. This says nothing of the store.",
        ) from error
    refused = system_refusal(f"{connection.path} cannot be checked", error)
    if refused is not None and type(refused) is not StoreInvalid:
        raise refused from error
    report(None, "store", f"the file cannot be read: {error.strerror}")


def _check_commit(
    connection: Connection, report: Report, full: bool, progress: Progress | None
) -> list[str] | None:
    """Check one commit; return the names of its tables, or None where its pages are damaged.

    Records on damaged pages are not read: LMDB trusts its pages, and reading them may end the process.
    """

    def report_page(page: int, message: str) -> None:
        report(None, f"page {page}", message)

    while True:
        with connection.view() as view:
            is_sound = connection.environment.check_pages(view.commit, report_page, progress, full=full)
            if is_sound is None:
                continue  # Two commits came between the view and the look at the meta pages.
            if not is_sound:
                return None
            if full:
                _check_checksums(view, report, progress)
            _check_objects(view, report, full, progress)
            return [table.name for table in tables.every(view)]


def _check_checksums(view: ReadView, report: Report, progress: Progress | None) -> None:
    """Check every record of every database, referenced or not."""
    for database in ALL:
        done = 0
        if database is ENTRIES:
            continue  # the log of each topic reads its entries, header and body
        try:
            for _ in view.scan(database):
                done += 1
                if progress is not None and done % 1000 == 0:
                    progress(database.name, 1000)
        except CorruptStore as error:
            report(None, database.name, error.message)
        if progress is not None:
            progress(database.name, done % 1000)


def _check_objects(view: ReadView, report: Report, full: bool, progress: Progress | None) -> None:
    check_transactions(view, report)
    check_ownerless(view, report)
    if full:
        check_tables(view, report)
        check_order(view, report)
    for topic in topics.every(view):
        state = states.load(view, topic.topic_id)
        log: Log | None = None
        if full:
            log = read_log(view, topic, state, report, progress)
            TopicCheck(view, topic, state, log, report).run()
            check_compaction(view, topic, state, report)
        ProducersCheck(view, topic, state, report).run(log)
        for subscription in subscriptions.every(view, topic.topic_id):
            SubscriptionCheck(view, topic, state, subscription, report).run(log)
