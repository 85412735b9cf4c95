"""An open transaction that holds back a topic, in words."""

from __future__ import annotations

import pytest

from storage.reports.explain import BlockedTopic, blocked_topic
from storage.reports.timeline import IfEnded
from storage.values.txn_id import TxnID
from tests.txnctl.typed_rows import HOLDER, START, blocking
from txnctl.fields.holder import held_up, then, waiting
from txnctl.fields.owner import who


@pytest.mark.parametrize(
    ("labels", "text"),
    [({}, "anna@db-2:48211"), ({"job": "loader", "run": "7"}, "job=loader run=7, anna@db-2:48211")],
)
def test_labels_come_before_the_owner(labels: dict[str, str], text: str) -> None:
    """Its program is left out: there is no room for it."""
    assert who(HOLDER._replace(labels=labels)) == text


def test_only_subscriptions_that_wait_are_named() -> None:
    """With how many messages."""
    assert waiting({"billing": 1797, "idle": 0, "audit": 3}) == "billing 1,797, audit 3"


def test_how_long_the_oldest_waits_is_said_where_it_is_known() -> None:
    """A clock that was set back makes it no less than nothing."""
    assert held_up(1, None, 9) == "1 message blocked"
    assert held_up(1200, 0, 60_000) == "1,200 messages blocked, the oldest for 1m00s"
    assert held_up(2, 9, 0).startswith("2 messages blocked, the")


def link(place: int, following: str | None = None, *, stays: int = 0, skipped: int = 0) -> BlockedTopic:
    """A link of the chain; `0:1` is the one that holds maxReadPosition."""
    row = blocked_topic(blocking("0:7", "1:0", "1:0", "1:0"), TxnID.parse("0:1"))
    return row._replace(
        place=place,
        blocked_next=TxnID.parse(following) if following else None,
        if_ended=IfEnded(START, START, 0, stays),
        frees_where_skipped=skipped,
    )


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (link(1), "nothing stays blocked"),
        (link(1, "0:2"), "0:2 follows"),
        (link(1, "0:2", stays=1403), "1,403 stay blocked behind 0:2"),
        (link(2), "0:1 comes first: ending this one frees nothing yet"),
        (link(3, skipped=12), "0:1 comes first: ending this one frees only 12 where it is skipped"),
    ],
)
def test_what_comes_then(row: BlockedTopic, text: str) -> None:
    """So that nobody ends the wrong one first."""
    assert then(row) == text
