"""Limits in words: `txnctl/output/limit_lines.py`."""

from __future__ import annotations

import pytest

from storage.admin.limit_forecast import LetGo
from storage.subscription.hard_trimming import Loss
from txnctl.output import limit_lines

NOTHING = LetGo(0, 0, 0, 0, 0, 0, 0, has_more=False)


@pytest.mark.parametrize("dry_run", [False, True])
def test_limits_that_let_go_of_nothing_say_so(dry_run: bool) -> None:
    (line,) = limit_lines.let_go(NOTHING, dry_run=dry_run)
    assert line.endswith("let go of nothing now.")
    assert ("would" in line) is dry_run


def test_each_kind_has_a_line() -> None:
    lines = list(limit_lines.let_go(LetGo(2, 30, 1024, 4, 1, 1, 2, has_more=True), dry_run=False))
    assert lines == [
        "They let go of at least 2 ledgers now: 30 messages, 1.0 KiB.",
        "  4 messages not acknowledged by a subscription, and lost to it",
        "  1 message past their time to live, acknowledged for a subscription",
        "  1 subscription without a consumer, deleted",
        "  2 open transactions in the way, aborted",
    ]


def test_a_limit_of_nothing_is_not_no_limit() -> None:
    for of in (limit_lines.limit_time, limit_lines.limit_size):
        assert of(None) == "no limit"
        assert of(0) not in ("no limit", of(1))
    assert limit_lines.limit_hard(None) == limit_lines.limit_hard("off")


def test_each_subscription_is_named_with_its_loss() -> None:
    losses, expired = [Loss("slow", 3)], [Loss("late", 1)]
    assert list(limit_lines.losses(losses, expired, dry_run=True)) == [
        "  subscription slow loses 3 messages",
        "  subscription late expires 1 message",
    ]
