"""An open transaction that holds back a topic, in words."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.fields.holder import held_up, then, waiting, who


@pytest.mark.parametrize(
    ("labels", "text"),
    [({}, "anna@db-2:48211"), ({"job": "loader", "run": "7"}, "job=loader run=7, anna@db-2:48211")],
)
def test_labels_come_before_the_owner(labels: dict[str, str], text: str) -> None:
    """Its program is left out: there is no room for it."""
    assert who({"labels": labels, "owner": "anna@db-2:48211 (python load.py)"}) == text


def test_only_subscriptions_that_wait_are_named() -> None:
    """With how many messages."""
    assert waiting({"billing": 1797, "idle": 0, "audit": 3}) == "billing 1,797, audit 3"


def test_how_long_the_oldest_waits_is_said_where_it_is_known() -> None:
    """A clock that was set back makes it no less than nothing."""
    assert held_up({"blockedMessages": 1, "oldestBlockedMs": None, "asOfMs": 9}) == "1 message blocked"
    assert held_up({"blockedMessages": 1200, "oldestBlockedMs": 0, "asOfMs": 60_000}) == (
        "1,200 messages blocked, the oldest for 1m00s"
    )
    assert held_up({"blockedMessages": 2, "oldestBlockedMs": 9, "asOfMs": 0}).startswith(
        "2 messages blocked, the"
    )


def link(place: int, **found: Any) -> dict[str, Any]:
    """A link of the chain; `first` is the one that holds maxReadPosition."""
    row = {
        "place": place,
        "first": "0:1",
        "blockedNext": None,
        "freesWhereSkipped": 0,
        "ifEnded": {"staysBlocked": 0},
    }
    return {**row, **found}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (link(1), "nothing stays blocked"),
        (link(1, blockedNext="0:2"), "0:2 follows"),
        (link(1, blockedNext="0:2", ifEnded={"staysBlocked": 1403}), "1,403 stay blocked behind 0:2"),
        (link(2), "0:1 comes first: ending this one frees nothing yet"),
        (link(3, freesWhereSkipped=12), "0:1 comes first: ending this one frees only 12 where it is skipped"),
    ],
)
def test_what_comes_then(row: dict[str, Any], text: str) -> None:
    """So that nobody ends the wrong one first."""
    assert then(row) == text
