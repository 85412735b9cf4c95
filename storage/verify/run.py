"""Checking a store: every checksum, and the invariants of docs/SEMANTICS.md recomputed from the log.

    quick   structure and counters of topics, transactions and subscriptions, from their records
    full    also every record's checksum, everything that can be recounted from the entries, and what is written in
            tables; then it reads some of them, and looks whether the file is still the same

It holds one view, however long it takes: an old reader keeps pages from reuse, and `store readers` shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from storage.disk.connection import Connection
from storage.disk.schema import ALL, ENTRIES
from storage.disk.view import ReadView
from storage.errors import CorruptStore, StoreClosed
from storage.subscription import catalogue as subscriptions
from storage.table import catalogue as tables
from storage.topic import catalogue as topics, state
from storage.verify.log import Log, read_log
from storage.verify.order import check_order
from storage.verify.producers import check_producers
from storage.verify.reads import OpenTable, check_reads
from storage.verify.subscription import check_subscription
from storage.verify.tables import check_tables
from storage.verify.topic import check_topic
from storage.verify.transactions import check_transactions

Report = Callable[[int | None, str, str], None]
"""(number of the invariant or None, object, what is wrong)"""

Progress = Callable[[str, int], None]
"""(what is being checked, how many more records or entries are done)"""


Checked = Callable[[int], None]
"""(number of an invariant that was checked to its end)"""


class Problem(NamedTuple):
    """A violated invariant, the object, and the message; the invariant is None for damaged records."""

    invariant: int | None
    object: str
    message: str


QUICK = (1, 6, 7, 9, 10, 11, 16, 23)
FULL = (1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17, 18, 19, 20, 23)
"""The invariants that are checked, as far as records tell; 13 also, where nobody else writes meanwhile."""


def run(
    connection: Connection,
    open_table: OpenTable,
    *,
    full: bool = True,
    progress: Progress | None = None,
    checked: Checked | None = None,
) -> list[Problem]:
    """The problems of a store.

    Args:
        checked: told the number of each invariant that was checked, when all is done.
    """
    problems: list[Problem] = []

    def report(invariant: int | None, what: str, message: str) -> None:
        problems.append(Problem(invariant, what, message))

    try:
        with connection.view() as view:
            if full:
                _check_checksums(view, report, progress)
            _check_objects(view, report, full, progress)
            names = [each.name for each in tables.every(view)]
        found = set(FULL if full else QUICK)
        if full and names and check_reads(connection, names, open_table, report):
            found.add(13)
        if checked is not None:
            for number in sorted(found):
                checked(number)
    except StoreClosed:
        raise
    except CorruptStore as error:
        if not any(problem.message == error.message for problem in problems):
            report(None, str(error.details.get("database", "store")), error.message)
    except AssertionError as error:
        report(None, "store", f"an assertion of the engine does not hold: {error}")
    except Exception as error:  # noqa: BLE001 - whatever damaged bytes raise, what was found before is not lost
        report(None, "store", f"checking stopped at damaged data: {type(error).__name__}: {error}")
    return problems


def _check_checksums(view: ReadView, report: Report, progress: Progress | None) -> None:
    """Every record of every database, whether anything refers to it or not."""
    for database in ALL:
        done = 0
        if database is ENTRIES:
            continue  # its records are read, header and body, with the log of their topic
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
    if full:
        check_tables(view, report)
        check_order(view, report)
    for topic in topics.every(view):
        head = state.load(view, topic.topic_id)
        log: Log | None = None
        if full:
            log = read_log(view, topic.topic_id, head, report, topic.name, progress)
            check_topic(view, topic, head, log, report)
        check_producers(view, topic, head, log, report)
        for subscription in subscriptions.every(view, topic.topic_id):
            check_subscription(view, topic, head, subscription, log, report)
