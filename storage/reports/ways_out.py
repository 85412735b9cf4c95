"""The ways out of an open transaction: continue or look at the owner, wait for the deadline, or abort. Pure.

Advice (`advice.py`) names one of the ways; an operator who knows more may take another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from storage.actions import Action, Hint, inspect, resume
from storage.reports.transactions import TransactionRow
from storage.txn.owner_state import living_process
from storage.values.durations import short_duration
from storage.values.named_tuple import NamedTuple
from storage.values.timestamps import rfc3339
from storage.values.txn_state import TransactionState


class WayOut(NamedTuple):
    """A way out of a transaction.

    Attributes:
        choice: continue, look, wait or abort.
        means: a hint with the action and its effect.
        action: the call that begins the way.
    """

    choice: str
    means: str
    action: Action


def ways_out_of(row: TransactionRow, reap_policy: str) -> list[WayOut]:
    """The ways out of a transaction; none out of an ended, overdue or orphaned one.

    Args:
        reap_policy: of the store: all, overdue or manual.
    """
    if row.state is not TransactionState.OPEN or row.overdue or row.orphaned:
        return []
    return list(_choices(row, reap_policy))


def _choices(row: TransactionRow, reap_policy: str) -> Iterator[WayOut]:
    living = living_process(row)
    if living is not None:
        owner = living.process
        if living.state == "stopped":
            way = resume(owner.pid, owner.host)
            yield WayOut("continue", Hint("`{}` lets process {} go on where it was.", way, owner.pid), way)
        look = inspect(owner.pid, owner.host)
        who = f"{owner.user}@{owner.host} what {owner.program} waits for"
        yield WayOut("look", Hint("`{}` shows process {}; ask {}.", look, owner.place, who), look)
    yield _wait(row, reap_policy)
    abort = Action("store.admin.transactions.abort_transaction", row.txn_id, dry_run=True)
    means = Hint(
        "`{}` shows what an abort changes; its next use then fails (transaction-not-open).",
        abort,
    )
    yield WayOut("abort", means, abort)


def _wait(row: TransactionRow, reap_policy: str) -> WayOut:
    left_ms = max(row.deadline_in_ms or 0, 0)
    wait = Action("store.reports.wait_for_transaction", row.txn_id, timeout=(left_ms // 60_000 + 1) * 60)
    ends = "the next writer aborts it" if reap_policy != "manual" else "it can only be aborted"
    at = rfc3339((row.as_of_at_ms + left_ms) // 1000 * 1000)
    left = short_duration(left_ms)
    return WayOut("wait", Hint("`{}`: its deadline is at {}, in {}; then {}.", wait, at, left, ends), wait)
