"""Moving a cursor: the plan that is asked about, and the sentence about what was done."""

from __future__ import annotations

from typing import Any

import pytest

from storage.admin.audited_change import Changed, OfSubscription
from storage.admin.subscriptions import MessagesSkipped, SubscriptionSought
from storage.values.position import Position
from storage.values.txn_id import TxnID
from txnctl.commands.subscriptions.cursor_move import asked, move, skipped_lines

BEFORE, AFTER = Position(1, 4), Position(1, 9)
SKIPPED = MessagesSkipped(2, BEFORE, AFTER)
SOUGHT = SubscriptionSought(BEFORE, AFTER, [TxnID.parse("0:1")], 3)


def changed(change: Any, *, dry_run: bool = False) -> Any:
    """A change of billing."""
    return Changed(OfSubscription("persistent://public/default/orders", "billing", change), dry_run)


class Desk:
    """A context of which the operator answers; keeps the plan that he was shown."""

    def __init__(self, *, yes: bool = False, dry_run: bool = False, answer: bool = True) -> None:
        self.yes, self.dry_run, self.answer = yes, dry_run, answer
        self.plans: list[list[str]] = []

    def style(self, text: str, *styles: str) -> str:
        return text

    def confirm(self, question: str, plan: list[str]) -> None:
        self.plans.append(plan)
        if not self.answer:
            raise KeyboardInterrupt


def run(desk: Any, moved: Any = SKIPPED, **options: Any) -> list[bool]:
    """Whether each call of the change was a dry run."""
    calls: list[bool] = []

    def change(*, dry_run: bool) -> Any:
        calls.append(dry_run)
        return changed(moved)

    asked(desk, change, "Skip?", **options)
    return calls


def test_the_plan_is_shown_before_anything_changes() -> None:
    """And nothing changes where the answer is no."""
    desk = Desk()
    assert run(desk) == [True, False]
    assert run(desk, SOUGHT) == [True, False]
    assert desk.plans == [
        ["skips     2 messages of billing on orders", "moves     markDeletePosition 1:4 -> 1:9"],
        ["moves     markDeletePosition 1:4 -> 1:9", "withdraws 3 messages in flight", "aborts    0:1"],
    ]
    with pytest.raises(KeyboardInterrupt):
        run(Desk(answer=False))


@pytest.mark.parametrize(("yes", "dry_run", "calls"), [(True, False, [False]), (False, True, [True])])
def test_nobody_is_asked_who_said_so(yes: bool, dry_run: bool, calls: list[bool]) -> None:
    """By --yes, or where nothing is changed."""
    desk = Desk(yes=yes, dry_run=dry_run)
    assert run(desk) == calls
    assert desk.plans == []


def test_a_plan_may_need_no_question() -> None:
    """As the command decides by it."""
    desk = Desk()
    assert run(desk, is_asked=lambda plan: plan.skipped > 5) == [True, False]
    assert desk.plans == []


def test_the_sentence() -> None:
    """A dry run says so first."""
    assert list(skipped_lines(Desk(), changed(SKIPPED))) == [  # type: ignore[arg-type]
        "Skipped 2 messages of billing on orders: markDeletePosition 1:4 -> 1:9."
    ]
    lines = list(skipped_lines(Desk(), changed(SKIPPED, dry_run=True)))  # type: ignore[arg-type]
    assert lines[0].startswith("DRY RUN")
    assert lines[-1].startswith("Would skip 2 messages")


def test_a_cursor_that_stays() -> None:
    """Is said to."""
    assert move(MessagesSkipped(0, BEFORE, BEFORE)) == "markDeletePosition stays at 1:4"
