"""A topic in words: the line with its counts, and the description for those who cannot see the picture."""

from __future__ import annotations

from typing import Any

from txnctl.report.words import description, facts

QUIET: dict[str, Any] = {
    "msgCount": 1, "ledgers": [{}], "readableMessages": 1, "openTransactions": [], "abortedMessages": 0,
    "subscriptions": {}, "maxReadPosition": "1:0", "lastConfirmedEntry": "1:0", "blockedMessages": 0,
    "uncommittedMessages": 0, "ongoingTxnCount": 0, "oldestBlockedMs": None, "asOfMs": 0,
}  # fmt: skip
STUCK = {
    **QUIET, "msgCount": 1300, "ledgers": [{}, {}], "readableMessages": 100, "blockedMessages": 1188,
    "oldestBlockedMs": 1000, "asOfMs": 61_000, "uncommittedMessages": 12, "ongoingTxnCount": 2, "abortedMessages": 3,
    "openTransactions": [{"txnId": "0:7", "holdsFrom": "1:100"}, {"txnId": "0:9", "holdsFrom": "1:500"}],
    "maxReadPosition": "1:99", "lastConfirmedEntry": "2:5",
    "subscriptions": {
        "billing": {"subscriptionIsolationLevel": "READ_COMMITTED", "markDeletePosition": "1:50", "verdict": "blocked"}
    },
}  # fmt: skip


def test_a_quiet_topic_has_few_words() -> None:
    """Nothing is said of what there is not."""
    assert facts(QUIET) == "1 message in 1 ledger; 1 readable; no subscriptions"


def test_what_is_blocked_is_said_with_its_cause() -> None:
    """And for how long."""
    assert facts(STUCK) == (
        "1,300 messages in 2 ledgers; 100 readable; 1,188 messages blocked, the oldest for 1m00s; "
        "12 uncommitted in 2 open transactions; 3 aborted"
    )


def test_the_description_names_ends_holders_and_subscriptions() -> None:
    """In sentences."""
    assert description(STUCK) == (
        "1,300 messages in 2 ledgers. READ_COMMITTED reads up to 1:99 of 2:5. "
        "2 open transactions, the first of them 0:7 from 1:100 on; 1,188 committed messages blocked. "
        "subscription billing: READ_COMMITTED, acknowledged through 1:50, blocked."
    )


def test_many_subscriptions_are_counted() -> None:
    """After the first twenty."""
    each = STUCK["subscriptions"]["billing"]
    text = description({**QUIET, "subscriptions": {f"s{number}": each for number in range(23)}})
    assert "subscription s19:" in text
    assert "s20" not in text
    assert text.endswith("3 more subscriptions.")
