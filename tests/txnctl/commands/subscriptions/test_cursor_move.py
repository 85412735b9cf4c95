"""Moving a cursor: the plan that is asked about, and the sentence about what was done."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.subscriptions.cursor_move import asked, move, skipped_lines

ROW = {
    "topic": "persistent://public/default/orders", "subscription": "billing", "skipped": 2, "dryRun": False,
    "markDeletePositionBefore": "1:4", "markDeletePositionAfter": "1:9",
}  # fmt: skip


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


def run(desk: Any, row: dict[str, Any] = ROW, **options: Any) -> list[bool]:
    """Whether each call of the change was a dry run."""
    calls: list[bool] = []

    def change(*, dry_run: bool) -> dict[str, Any]:
        calls.append(dry_run)
        return row

    asked(desk, change, "Skip?", **options)
    return calls


def test_the_plan_is_shown_before_anything_changes() -> None:
    """And nothing changes where the answer is no."""
    desk = Desk()
    assert run(desk, {**ROW, "messagesWithdrawn": 3, "transactionsAborted": ["0:1"]}) == [True, False]
    assert desk.plans == [
        [
            "skips     2 messages of billing on orders", "moves     markDeletePosition 1:4 -> 1:9",
            "withdraws 3 messages in flight", "aborts    0:1",
        ]
    ]  # fmt: skip
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
    assert run(desk, is_asked=lambda plan: plan["skipped"] > 5) == [True, False]
    assert desk.plans == []


def test_the_sentence() -> None:
    """A dry run says so first."""
    assert list(skipped_lines(Desk(), ROW)) == [  # type: ignore[arg-type]
        "Skipped 2 messages of billing on orders: markDeletePosition 1:4 -> 1:9."
    ]
    lines = list(skipped_lines(Desk(), {**ROW, "dryRun": True}))  # type: ignore[arg-type]
    assert lines[0].startswith("DRY RUN")
    assert lines[-1].startswith("Would skip 2 messages")


def test_a_cursor_that_stays() -> None:
    """Is said to."""
    assert move({"markDeletePositionBefore": "1:4", "markDeletePositionAfter": "1:4"}) == (
        "markDeletePosition stays at 1:4"
    )
