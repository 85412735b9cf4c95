"""The facts and the activity of a store for `doctor` and `check`, read in a forked process.

LMDB trusts every page, so that a read of a damaged one can end the process. These commands are run when something is
wrong: the death of the reading process is a finding. A walk over all pages, as `store verify` makes, would take more
than a second a gigabyte. An error of ours is raised anew where it is reported: the parent reads the store itself then.
"""

from __future__ import annotations

from storage.actions import Action, Hint
from storage.errors import CorruptStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from storage.reports.activity import StoreActivity
    from storage.reports.overview import Overview
    from storage.reports.reports import Reports
    from txnctl.cli.context import Context

    T = TypeVar("T")


def overview_of(context: Context) -> Overview:
    """The overview of the command's store.

    Raises:
        CorruptStore: reading the store ended a process.
        as `Context.open_store`
    """
    return _reported(context, lambda reports: reports.store_overview())


def overview_and_activity(context: Context) -> tuple[Overview, StoreActivity]:
    """The overview and the activity of the command's store.

    Raises:
        as `overview_of`
    """
    return _reported(context, lambda reports: (reports.store_overview(), reports.store_activity()))


def _reported(context: Context, report: Callable[[Reports], T]) -> T:
    def read() -> T:
        with context.open_store(context.store_path, read_only=True) as store:
            return report(store.reports)

    if context.store_directory is None:  # A server has no page that could end the process.
        return read()
    data = _read_apart(context.store_path, read)
    if not data:
        return read()
    import pickle

    result: T = pickle.loads(data)
    return result


def _read_apart(path: str, read: Callable[[], object]) -> bytes:
    """Call `read` in a forked process; return the pickled result, nothing where it raised an error.

    Raises:
        CorruptStore: the process died of a signal that a damaged page causes.
    """
    import os
    import signal

    from txnctl.cli.python_child import is_fault

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _answer(read, writing)
    os.close(writing)
    try:
        with open(reading, "rb") as pipe:
            data = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if is_fault(status):
        raise CorruptStore(
            f"{path} is damaged: reading it ended a process by {signal.Signals(-status).name}",
            hint=Hint(
                "Run `{}` to name the damage, then restore a backup.",
                Action("store.maintenance.verify_store", full=True),
            ),
        )
    return data if status == 0 else b""


def _answer(read: Callable[[], object], writing: int) -> None:
    """In the child: write the pickled result into a pipe, and end. LMDB's complaint on standard error is dropped."""
    import os
    import pickle

    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        data = pickle.dumps(read())
        with open(writing, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        os._exit(status)
